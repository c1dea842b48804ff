"""Files that were put back when a session was opened: shown in the log, and taken back."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.cli.access.session_run import SessionFiles, opened
from holdfast.cli.exits import OK, Refused
from holdfast.cli.output.terminal import Terminal
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.recovery import Recovery
    from holdfast.stores.base import SessionInfo, Store
    from holdfast.workspace import Restored

UNDONE = "recovery_undone"
"""The tag of a checkpoint that took back what a recovery did: the tree that led back."""
_LOOKED_AT = 1000


def recoveries_of(store: Store, infos: Sequence[CheckpointInfo]) -> dict[str, list[Recovery]]:
    """Where files were put back, by the checkpoint at which the session was opened."""
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
    """The last one since the last rollback that was not taken back; ``chain`` is newest first."""
    since = list(chain[: chain.index(back) + 1] if back is not None else chain)[:_LOOKED_AT]
    undone = {info.metadata.get(UNDONE) for info in since}
    found = recoveries_of(client.store, since)
    for info in since:
        for each in reversed(found.get(info.checkpoint_id, [])):
            if each.undo_tree not in undone and _is_kept(client, each.undo_tree):
                return each
    return None


def _is_kept(client: SyncClient, tree: str) -> bool:
    """Whether a tree is still there: what leads back is kept for a month."""
    from holdfast.errors import CheckpointNotFoundError
    from holdfast.workspace.pins import Pins

    try:
        Pins(client.store, "any").resolve(tree)
    except CheckpointNotFoundError:
        return False
    return True


def undo_recovery(
    client: SyncClient,
    session: SessionInfo,
    recovery: Recovery,
    options: Namespace,
    terminal: Terminal,
) -> int:
    """Make the files what they were found as, with a checkpoint of its own."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.cli.access.trees import snapshot_of
    from holdfast.workspace import Workspace

    at_head = snapshot_of(client, session.head)
    if at_head is None:
        raise Refused(f"the head of session {session.session_id!r} has no files")
    folder = folder_for(client, session, at_head, options.workspace)
    if folder is None:
        raise Refused(f"{elsewhere(session, at_head)}: name it with --workspace DIR")
    with Workspace(folder, store=client) as workspace:
        planned = workspace.restore(recovery.undo_tree, dry_run=True)
        if not terminal.json:
            _preview(session, planned, workspace.path, terminal)
        now = None
        if not options.dry_run:
            terminal.confirm(f"Undo what was put back in {workspace.path}?")
            files = SessionFiles(workspace, at_head.as_value())
            with opened(client, session, files, options.takeover) as run:
                planned = workspace.restore(recovery.undo_tree)
                captured = files.capture()
                tags = {UNDONE: recovery.undo_tree}
                run._runtime.run(run._session.recapture("files as they were found", captured, tags))
                now = run.head
    if terminal.json:
        terminal.emit(_json(session, recovery, planned, workspace.path, now))
    elif now is not None:
        terminal.line(f"the head is {now} now; `holdfast restore {planned.undo_tree}` leads back")
    return OK


def _preview(session: SessionInfo, planned: Restored, folder: str, terminal: Terminal) -> None:
    from holdfast.cli.access.rollback_preview import preview_files

    terminal.line(
        f"session {clean(session.session_id)} gets its files back as they were found after a crash"
    )
    preview_files(planned, folder, terminal)


def _json(
    session: SessionInfo, recovery: Recovery, done: Restored, folder: str, now: str | None
) -> dict[str, object]:
    """What is or would be done, in the shape of any undo."""
    return {
        "agent_id": session.agent_id,
        "session_id": session.session_id,
        "from": session.head.checkpoint_id,
        "target": recovery.checkpoint_id,
        "checkpoint_id": now,
        "dry_run": now is None,
        "changes": 0,
        "files": {"written": list(done.written), "removed": list(done.removed)},
        "workspace": folder,
        "undone": [],
        "remaining": [],
        "problems": {},
    }
