"""``holdfast rollback``: take a session back to a checkpoint."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.access.directories import add_workspace
from holdfast.cli.access.given_functions import add_import, imported
from holdfast.cli.access.going_back import check_stems_from, prepared
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.rollback_preview import Terms, as_json, preview
from holdfast.cli.exits import OK, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_checkpoint, add_session, count
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Adds a checkpoint that goes on from the one you name; nothing is removed, and `holdfast "
        "undo` leads\nback. Files are put back too, if the session has any: in the directory "
        "where it worked on this\nmachine, wherever you are, or in the one you name with "
        "--workspace.\n\nCalls since then that can be undone are, but only by their own "
        "functions: name the module that\ndefines them with --import, or roll back in the program "
        "itself (run.rollback). Calls that cannot be\nundone stay done; that has to be accepted.",
        "holdfast rollback @-",
        "holdfast rollback tests-pass --session fix-42",
        "holdfast rollback 019a9563e5d2 --scope state --yes",
        "holdfast rollback @- --workspace ~/site",
    )
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument("--steps", type=count, metavar="N", help="go back so many checkpoints (1)")
    parser.add_argument(
        "--scope", choices=("all", "state", "files"), default="all", help="what goes back (all)"
    )
    add_common(parser)
    parser.set_defaults(run=run)


def add_common(parser: Parser) -> None:
    """Add the options that a rollback and its undoing have in common."""
    add_workspace(parser)
    add_import(parser)
    parser.add_argument(
        "--accept-irreversible", action="store_true", help="go back past calls that stay done"
    )
    parser.add_argument(
        "--takeover",
        action="store_true",
        help="take the session from a process that was not heard of for long",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")


def run(options: Namespace, terminal: Terminal) -> int:
    """Take a session back to the checkpoint that is meant."""
    with open_client(options) as client:
        session, target = _meant(client, options)
        return go_back(client, session, target, options, terminal)


def go_back(
    client: SyncClient,
    session: SessionInfo,
    target: CheckpointInfo,
    options: Namespace,
    terminal: Terminal,
    is_undo: bool = False,
) -> int:
    """Show what would be done, ask, and do it."""
    terms = Terms(
        options.scope,
        options.accept_irreversible,
        options.takeover,
        options.workspace,
        imported(options.modules),
    )
    with prepared(client, session, target, terms, is_undo) as going:
        if not terminal.json:
            preview(going.preview, terminal)
        if options.dry_run:
            if terminal.json:
                terminal.emit(as_json(going.preview, None))
            return OK
        asked = "Undo the rollback of" if is_undo else "Roll back"
        terminal.confirm(f"{asked} {session.session_id}?")
        done = going.carry_out()
    if terminal.json:
        terminal.emit(as_json(going.preview, done))
        return OK
    terminal.line(f"the head is {done.checkpoint_id} now; `holdfast undo` leads back")
    for effect_id, problem in done.problems.items():
        terminal.line(f"could not be undone: {effect_id[:8]}: {clean(problem)}")
    return OK


def _meant(client: SyncClient, options: Namespace) -> tuple[SessionInfo, CheckpointInfo]:
    """Return the session, and the checkpoint it goes back to."""
    names = Names(client)
    if options.checkpoint is not None and options.steps is not None:
        raise UsageError("give a checkpoint or --steps, not both")
    if options.checkpoint is None:
        session = names.session(options.session)
        steps = 1 if options.steps is None else options.steps
        own = _own(client, session)
        if not 0 < steps < len(own):
            raise UsageError(f"--steps is a number from 1 to {len(own) - 1} here")
        return session, own[steps]
    target = names.checkpoint(options.checkpoint, options.session)
    session = names.session(options.session or f"{target.agent_id}/{target.session_id}")
    check_stems_from(names, target, session, options.checkpoint)
    return session, target


def _own(client: SyncClient, session: SessionInfo) -> list[CheckpointInfo]:
    chain = [session.head, *client.ancestors(session.head.checkpoint_id)]
    mine = (session.agent_id, session.session_id)
    return [info for info in chain if (info.agent_id, info.session_id) == mine]
