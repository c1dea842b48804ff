"""``holdfast undo``: take back the last rollback or rewind, or what was put back after a crash."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.recoveries import UNDONE, last_recovery
from holdfast.cli.access.rewind_points import current, main_session
from holdfast.cli.access.session_run import SessionFiles, opened
from holdfast.cli.access.undo_marks import is_mark, later_mark
from holdfast.cli.access.undo_rewind import undo_rewind
from holdfast.cli.commands.rollback import add_common, go_back
from holdfast.cli.exits import OK, Refused, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_session
from holdfast.coding_agents.recorded import program_of
from holdfast.coding_agents.undoing import last_rewind
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.recovery import Recovery
    from holdfast.stores.base import SessionInfo
    from holdfast.workspace import Restored


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The session goes on from where the rollback was begun. Calls that were undone stay "
        "undone.\nAn undo can be undone too. Where files were put back after a crash since, that "
        "is undone instead:\nthey are then as they were found.\n\nOf a rewind the files are put "
        "back to what they were, and the command is printed that goes on with\nthe session that "
        "was left. If the program has removed its conversation, that is written as a new one."
        "\nOf coding agents the newest rewind or rollback in this directory is meant; with "
        "SESSION, the newest\nthat was begun from it or ended in it.",
        "holdfast undo",
        "holdfast undo fix-42 --yes",
        "holdfast undo --session fix-42",
    )
    add_session(parser, positional=True)
    parser.add_argument(
        "--session", dest="named", metavar="SESSION", help="the same, as other commands take it"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Take back what a rollback, or else a recovery, did last."""
    from holdfast.session.rollback import ROLLED_BACK_FROM

    with open_client(options) as client:
        names = Names(client)
        if options.named is not None and options.session not in (None, options.named):
            raise UsageError("name the session once: behind the command, or with --session")
        named = options.session or options.named
        session = names.session(named)
        if named is None and program_of(session.head):
            session = current(names) or session  # others may work in other directories
        chain = [session.head, *client.ancestors(session.head.checkpoint_id)]
        if program_of(session.head):
            own = next(filter(is_mark, chain), None)
            mark = later_mark(client, names, session, own, is_named=named is not None)
            if mark is not None:
                session = main_session(names, mark)
                chain = [mark, *client.ancestors(mark.checkpoint_id)]
        back = next((info for info in chain if ROLLED_BACK_FROM in info.metadata), None)
        rewound = last_rewind(chain)
        if rewound is not None and (back is None or chain.index(rewound) < chain.index(back)):
            main = main_session(names, session.head)
            return undo_rewind(client, main, rewound, options, terminal)
        if (recovery := last_recovery(client, chain, back)) is not None:
            return _undo_recovery(client, session, recovery, options, terminal)
        if back is None:
            raise Refused(f"session {session.session_id!r} has no rollback or rewind to undo")
        target = names.checkpoint(str(back.metadata[ROLLED_BACK_FROM]))
        options.scope = "all"
        return go_back(client, session, target, options, terminal, is_undo=True)


def _undo_recovery(
    client: SyncClient,
    session: SessionInfo,
    recovery: Recovery,
    options: Namespace,
    terminal: Terminal,
) -> int:
    """Make the files what they were found as, with a checkpoint of its own."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.client.with_files import snapshot_of
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
    """Return what is or would be done, in the shape of any undo."""
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
