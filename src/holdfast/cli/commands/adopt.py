"""``holdfast adopt``: have a session go on from the head of another."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.access.adopting import Adopting, adopting
from holdfast.cli.access.directories import add_workspace
from holdfast.cli.access.naming import Names, name_of
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.rollback_preview import preview_files
from holdfast.cli.exits import OK, NotFound
from holdfast.cli.output.checkpoints import origins_of, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser
from holdfast.stores.base import Query
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.stores.base import SessionInfo


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "A fork, or the session of a strategy, came out well: the session it began from goes on "
        "from there, with\nits state and files. Nothing is removed; `holdfast rollback` leads "
        "back to where it was.",
        "holdfast adopt fix-42.1",
        "holdfast adopt trip.plane-5e066a28 --into trip --yes",
    )
    parser.add_argument("other", metavar="SESSION", help="the session that came out well")
    parser.add_argument(
        "--into", metavar="SESSION", help="which one goes on from it (where it was forked from)"
    )
    add_workspace(parser)
    parser.add_argument(
        "--takeover",
        action="store_true",
        help="take the session from a process that was not heard of for long",
    )
    parser.add_argument("--dry-run", action="store_true", help="only say what would be done")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show what would be done, ask, and do it."""
    with open_client(options) as client:
        names = Names(client)
        other = names.session(options.other)
        session = _origin(names, other) if options.into is None else names.session(options.into)
        with adopting(client, session, other, options.workspace) as going:
            if not terminal.json:
                _preview(going, terminal)
            made = None
            if not options.dry_run:
                terminal.confirm(f"Have {session.session_id} go on from {other.session_id}?")
                made = going.carry_out(options.takeover)
    if terminal.json:
        terminal.emit(going.as_json(made))
    elif made is not None:
        back = session.head.checkpoint_id
        terminal.line(f"the head is {made} now; `holdfast rollback {back}` leads back")
    return OK


def _origin(names: Names, other: SessionInfo) -> SessionInfo:
    """Return the session that another one was forked from."""
    query = Query(agent_id=other.agent_id, session_id=other.session_id, oldest_first=True, limit=1)
    for parent in origins_of(names.store, names.store.query(query)).values():
        return names.session_of(parent.agent_id, parent.session_id)
    raise NotFound(
        f"session {other.session_id!r} was forked from no other: say which one adopts it, with "
        "--into"
    )


def _preview(going: Adopting, terminal: Terminal) -> None:
    session, other = going.session, going.other
    terminal.line(
        f"session {clean(name_of(session))} goes on from {step_of(other.head)} of "
        f"{clean(name_of(other))}"
    )
    terminal.line(f"  state  {many(going.changes, 'change')}")
    if going.planned is not None:
        preview_files(going.planned, going.folder or "", terminal)
