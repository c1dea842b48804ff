"""The tool calls that checkpoints and journals tell of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.session.history import calls_in

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.effects import Effect


def calls_of(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return all calls up to a checkpoint, the oldest first."""
    return calls_in(client.restore(info.checkpoint_id, on_unknown="raw").effects)


def calls_after(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return calls that were made after a head, and are in no checkpoint yet."""
    from holdfast.session.replay import unfinished

    return client.runtime.run(unfinished(client.runtime.engine, info))


def calls_since(client: SyncClient, info: CheckpointInfo) -> list[Effect]:
    """Return the calls between the checkpoint before and this one."""
    from holdfast.errors import CheckpointNotFoundError

    calls = calls_of(client, info)
    if not calls or info.parent_id is None:
        return calls
    try:
        parent = client.restore(info.parent_id, on_unknown="raw")
    except CheckpointNotFoundError:  # pruned
        return calls
    known = {call.id for call in calls_in(parent.effects)}
    return [call for call in calls if call.id not in known and not call.abandoned]
