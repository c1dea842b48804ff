"""The tool calls that checkpoints and journals tell of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.parts import parts_of
from holdfast.session.recorded import calls_between, calls_in
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.effects import Effect


def calls_of(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return all calls up to a checkpoint, the oldest first."""
    return client.runtime.run(calls_in(client.runtime.engine, _kept(client, info)))


def calls_after(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return calls that were made after a head, and are in no checkpoint yet."""
    from holdfast.session.replay import unfinished

    return client.runtime.run(unfinished(client.runtime.engine, info))


def calls_since(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return the calls between the checkpoint before and this one."""
    parents = client.store.query(Query(ids=[info.parent_id])) if info.parent_id else []
    if not parents or not _kept(client, info):  # the first, or what was before is pruned
        return calls_of(client, info)
    return [call for call in calls_behind(client, parents[0], info) if not call.abandoned]


def calls_behind(
    client: SyncClient, before: CheckpointInfo, info: CheckpointInfo, noted: Sequence[Effect] = ()
) -> list[Effect]:
    """Return the calls that a checkpoint, or what is noted on it, tells of beside another's."""
    earlier, later = _kept(client, before), _kept(client, info)
    return client.runtime.run(calls_between(client.runtime.engine, earlier, later, noted))


def _kept(client: SyncClient, info: CheckpointInfo) -> Sequence[Any]:
    kept: Sequence[Any] = parts_of(client, info, "effects")["effects"]
    return kept
