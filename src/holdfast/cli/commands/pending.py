"""``holdfast pending``: calls that wait for a decision."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.langgraph_threads import asked_json, asked_lines
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.questions import SHORT, question_json
from holdfast.cli.exits import OK
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Calls of runs that wait for approval, and questions that LangGraph threads stopped at, "
        "each with\nwhat answers it.",
        "holdfast pending",
        "holdfast pending --agent coder --json",
    )
    parser.add_argument("--agent", metavar="NAME", help="only those of this agent")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """List the calls and questions that wait."""
    with open_client(options) as client:
        found = client.pending(options.agent)
        asked = client.interrupts(options.agent)
    if terminal.json:
        pending = [question_json(each) for each in found]
        terminal.emit({"pending": pending, "interrupts": asked_json(asked)})
        return OK
    for each in found:
        until = "" if each.expires_at is None else f", until {each.expires_at:%H:%M:%S} UTC"
        terminal.line(
            f"{terminal.paint(each.effect_id[:SHORT], 'id')}  {each.kind:<12}  "
            f"{terminal.paint(clean(str(each)), 'name')}  "
            f"{clean(each.session_id)}, {age(each.asked_at)}{until}"
        )
    if found:
        terminal.line("holdfast approve ID, or holdfast deny ID -m REASON")
    for line in asked_lines(asked, terminal):
        terminal.line(line)
    if not found and not asked:
        terminal.line("no call waits for approval")
    return OK
