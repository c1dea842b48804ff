"""The tool calls that checkpoints and journals tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.cli.access.parts import parts_of
from holdfast.session.history import calls_in
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.effects import Effect


def calls_of(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return all calls up to a checkpoint, the oldest first."""
    return calls_in(parts_of(client, info, "effects")["effects"])


def calls_after(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return calls that were made after a head, and are in no checkpoint yet."""
    from holdfast.session.replay import unfinished

    return client.runtime.run(unfinished(client.runtime.engine, info))


def calls_since(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return the calls between the checkpoint before and this one."""
    calls = calls_of(client, info)
    parents = client.store.query(Query(ids=[info.parent_id])) if info.parent_id else []
    if not calls or not parents:  # the first, or what was before is pruned
        return calls
    known = {call.id for call in calls_of(client, parents[0])}
    return [call for call in calls if call.id not in known and not call.abandoned]
