"""Files that were put back when a session was opened: shown in the log, and taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.recovery import Recovery
    from holdfast.stores.base import Store

UNDONE = "recovery_undone"
"""The tag of a checkpoint that took back what a recovery did: the tree that led back."""
_LOOKED_AT = 1000


def recoveries_of(store: Store, infos: Sequence[CheckpointInfo]) -> dict[str, list[Recovery]]:
    """Return where files were put back, by the checkpoint at which the session was opened."""
    ids = [info.checkpoint_id for info in infos]
    # Most have none, and what would read them takes long to import.
    noted = store.notes(ids) if ids else []
    ids = sorted({note.scope for note in noted if note.key.startswith("recovered/")})
    found: dict[str, list[Recovery]] = {}
    if not ids:
        return found
    from holdfast.client import SyncClient
    from holdfast.session.recovery import recoveries

    client = SyncClient(store)
    for each in client.runtime.run(recoveries(client.runtime.engine, ids)):
        found.setdefault(each.checkpoint_id, []).append(each)
    return found


def last_recovery(
    client: SyncClient, chain: Sequence[CheckpointInfo], back: CheckpointInfo | None
) -> Recovery | None:
    """Return the last one since the last rollback that stands; ``chain`` is newest first."""
    since = list(chain[: chain.index(back) + 1] if back is not None else chain)[:_LOOKED_AT]
    undone = {info.metadata.get(UNDONE) for info in since}
    found = recoveries_of(client.store, since)
    for info in since:
        for each in reversed(found.get(info.checkpoint_id, [])):
            if each.undo_tree not in undone and _is_kept(client, each.undo_tree):
                return each
    return None


def _is_kept(client: SyncClient, tree: str) -> bool:
    """Return whether a tree is still there: what leads back is kept for a month."""
    from holdfast.errors import CheckpointNotFoundError
    from holdfast.workspace.pins import Pins

    try:
        Pins(client.store, "any").resolve(tree)
    except CheckpointNotFoundError:
        return False
    return True
