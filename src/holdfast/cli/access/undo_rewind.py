"""Takes back a rewind: what it would do is shown, and then done."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.directories import elsewhere, folder_for
from holdfast.cli.exits import OK, Refused
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.client.with_files import snapshot_of
from holdfast.coding_agents.keeping import REWOUND_FROM
from holdfast.errors import TranscriptError
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.undoing import WayBack, WentBack
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo


def undo_rewind(
    client: SyncClient,
    session: SessionInfo,
    mark: CheckpointInfo,
    options: Namespace,
    terminal: Terminal,
) -> int:
    """Lead back from the rewind that ended at a checkpoint of a session."""
    try:
        return _undo(client, session, mark, options, terminal)
    except TranscriptError as error:  # of before files are put back
        raise TranscriptError(
            f"{error}. The files are as they were found; they alone can be put back: holdfast "
            f"rewind {clean(str(mark.metadata[REWOUND_FROM]))} --files"
        ) from error


def _undo(
    client: SyncClient,
    session: SessionInfo,
    mark: CheckpointInfo,
    options: Namespace,
    terminal: Terminal,
) -> int:
    from holdfast.cli.output.rewind_preview import say_how_to_go_on
    from holdfast.coding_agents import undoing
    from holdfast.coding_agents.rewinding import APART, project_of
    from holdfast.workspace import Workspace

    if APART in mark.metadata:
        raise Refused(
            f"session {clean(mark.session_id)!r} began in a directory of its own: what it came "
            "from is there as it was, and nothing was put back"
        )
    at_head = snapshot_of(client, session.head) or snapshot_of(client, mark)
    if at_head is None:
        raise Refused(f"the head of session {session.session_id!r} has no files")
    folder = folder_for(client, session, at_head, options.workspace)
    if folder is None:
        raise Refused(f"{elsewhere(session, at_head)}: name it with --workspace DIR")
    with Workspace(folder, store=client) as workspace:
        back = undoing.look_back(client, session, mark, workspace)
        if not terminal.json:
            _preview(back, workspace.path, terminal)
        now = project = None
        if not options.dry_run:
            terminal.confirm(f"Undo the rewind of {clean(back.target.session_id)}?")
            project = project_of(client, session, Path(workspace.path))
            now = undoing.carry_back(client, back, workspace, project)
    if terminal.json:
        terminal.emit(_json(back, now, str(folder)))
    elif now is not None:
        terminal.line(
            f"session {clean(now.session_id)} goes on from {now.checkpoint_id}; `holdfast undo` "
            "leads back again"
        )
        say_how_to_go_on(now.resume, None, project, terminal)
    return OK


def _preview(back: WayBack, folder: str, terminal: Terminal) -> None:
    from holdfast.cli.access.rollback_preview import preview_files

    terminal.line(
        f"session {clean(back.target.session_id)} goes on from {step_of(back.target)}, where the "
        "rewind was begun"
    )
    preview_files(back.files, folder, terminal)
    if back.is_gone:
        terminal.line("  its conversation is not there any more: it is written as a new session")


def _json(back: WayBack, now: WentBack | None, folder: str) -> dict[str, Any]:
    """Return what is or would be done, in the shape of a rewind."""
    from holdfast.cli.output.rewind_preview import files_json

    cut = back.cut
    path = None if now is None or now.path is None else str(now.path)
    return {
        "agent_id": back.session.agent_id,
        "session_id": back.session.session_id,
        "target": back.target.checkpoint_id,
        "from": back.session.head.checkpoint_id,
        "new_session_id": None if now is None else now.session_id,
        "checkpoint_id": None if now is None else now.checkpoint_id,
        "dry_run": now is None,
        "files": files_json(back.files),
        "workspace": folder,
        "conversation": None if cut is None else {"path": path, "entries": len(cut.entries)},
        "note": None,
        "prompt": None,
        "resume": None if now is None else now.resume,
    }
