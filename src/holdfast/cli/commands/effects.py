"""``holdfast effects``: the calls of a session, and what became of them."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.values import short
from holdfast.cli.parsing import Parser, add_session
from holdfast.core.json_form import to_json
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "A call that was begun and of whose end nothing is known is `unknown`: the program that "
        "resumes the\nsession decides of it (run.unknown_effects()), or you do: holdfast resolve.",
        "holdfast effects",
        "holdfast effects fix-42 --unknown",
    )
    add_session(parser, positional=True)
    parser.add_argument("--unknown", action="store_true", help="only calls of unknown end")
    parser.add_argument(
        "--standing", action="store_true", help="only what is done and no rollback undoes by itself"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """List the calls of a session."""
    from holdfast.cli.access.calls import calls_after, calls_of

    with open_client(options) as client:
        session = Names(client).session(options.session)
        found = [*calls_of(client, session.head), *calls_after(client, session.head)]
    if options.unknown:
        found = [call for call in found if call.status == "started"]
    if options.standing:
        found = [call for call in found if call.stands()]
    if terminal.json:
        shown = [{**to_json(each.as_dict()), "standing": each.stands()} for each in found]
        terminal.emit({"session_id": session.session_id, "effects": shown})
        return OK
    for call in found:
        ended = {"started": "unknown"}.get(call.status, call.status)
        style = {"done": "good", "failed": "bad", "denied": "bad"}.get(call.status, "warn")
        result = "" if call.output is None else f" -> {short(call.output, 40)}"
        undone = " (undone)" if call.compensated else ""
        terminal.line(
            f"{terminal.paint(call.id[:8], 'id')}  {terminal.paint(f'{ended:<7}', style)}  "
            f"{call.kind:<12}  {clean(str(call))}{result}{undone}"
        )
    if not found:
        terminal.line("no such calls")
    return OK
