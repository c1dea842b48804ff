"""What was said from one checkpoint to the next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.errors import AdapterError, CheckpointNotFoundError, SerializationError

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.cli.output.messages import Known, MessageChanges
    from holdfast.model import CheckpointInfo


def spoken_in(client: LazyClient, infos: Sequence[CheckpointInfo]) -> dict[str, MessageChanges]:
    """Return what was said in each of some checkpoints since the one before it, if anything."""
    from holdfast.cli.output.messages import said_since

    known: dict[str, Known | None] = {}
    for checkpoint_id in {i: None for info in infos for i in (info.checkpoint_id, info.parent_id)}:
        if checkpoint_id is not None:
            known[checkpoint_id] = _known(client, checkpoint_id)
    found = {}
    for info in infos:
        now, before = known[info.checkpoint_id], known.get(info.parent_id or "")
        if now is not None:
            changes = said_since(before, now)
            if changes:
                found[info.checkpoint_id] = changes
    return found


def _known(client: LazyClient, checkpoint_id: str) -> Known | None:
    from holdfast.cli.output.messages import Known

    try:
        return Known.of(client.restore(checkpoint_id, on_unknown="raw"))
    except (AdapterError, CheckpointNotFoundError, SerializationError):
        return None  # it is pruned, or holds no conversation: the rest can be told
