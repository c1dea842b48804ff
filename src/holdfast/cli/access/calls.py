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
    engine, run, kept = client.runtime.engine, client.runtime.run, _kept(client, info)
    ids = [info.parent_id] if kept and info.parent_id else []
    parents = client.store.query(Query(ids=ids)) if ids else []
    if not parents:  # the first, or what was before is pruned
        return run(calls_in(engine, kept))
    behind = run(calls_between(engine, _kept(client, parents[0]), kept))
    return [call for call in behind if not call.abandoned]


def calls_behind(
    client: SyncClient, before: CheckpointInfo, info: CheckpointInfo, noted: Sequence[Effect]
) -> list[Effect]:
    """Return the calls that a checkpoint, or what is noted on it, tells of beside another's."""
    earlier, later = _kept(client, before), _kept(client, info)
    return client.runtime.run(calls_between(client.runtime.engine, earlier, later, noted))


def _kept(client: SyncClient, info: CheckpointInfo) -> Sequence[Any]:
    kept: Sequence[Any] = parts_of(client, info, "effects")["effects"]
    return kept
