"""``holdfast undo``: take back the last rollback or rewind, or what was put back after a crash."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.rewind_points import current
from holdfast.cli.access.undo_rewind import undo_rewind
from holdfast.cli.access.what_to_undo import recovery_undo, what_to_undo
from holdfast.cli.commands.rollback import add_common, go_back
from holdfast.cli.exits import OK, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_session
from holdfast.coding_agents.recorded import program_of
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
    with open_client(options) as client:
        names = Names(client)
        if options.named is not None and options.session not in (None, options.named):
            raise UsageError("name the session once: behind the command, or with --session")
        named = options.session or options.named
        session = names.session(named)
        if named is None and program_of(session.head):
            session = current(names) or session  # others may work in other directories
        meant = what_to_undo(client, names, session, is_named=named is not None)
        if meant.recovery is not None:
            return _undo_recovery(client, meant.session, meant.recovery, options, terminal)
        assert meant.target is not None
        if meant.kind == "rewind":
            return undo_rewind(client, meant.session, meant.target, options, terminal)
        options.scope = "all"
        return go_back(client, meant.session, meant.target, options, terminal, is_undo=True)


def _undo_recovery(
    client: SyncClient,
    session: SessionInfo,
    recovery: Recovery,
    options: Namespace,
    terminal: Terminal,
) -> int:
    """Make the files what they were found as, with a checkpoint of its own."""
    with recovery_undo(client, session, recovery, options.workspace) as undo:
        if not terminal.json:
            _preview(session, undo.planned, undo.folder, terminal)
        now = None
        if not options.dry_run:
            terminal.confirm(f"Undo what was put back in {undo.folder}?")
            now = undo.carry_out(options.takeover)
    if terminal.json:
        terminal.emit(undo.as_json(now))
    elif now is not None:
        back = undo.planned.undo_tree
        terminal.line(f"the head is {now} now; `holdfast restore {back}` leads back")
    return OK


def _preview(session: SessionInfo, planned: Restored, folder: str, terminal: Terminal) -> None:
    from holdfast.cli.access.rollback_preview import preview_files

    terminal.line(
        f"session {clean(session.session_id)} gets its files back as they were found after a crash"
    )
    preview_files(planned, folder, terminal)
