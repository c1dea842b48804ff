"""``holdfast inbox``: what was offered to an agent."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.offers import offer_json, standing_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age
from holdfast.cli.parsing import Parser
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain("", "holdfast inbox reviewer", "holdfast inbox reviewer --all --json")
    parser.add_argument("agent", metavar="AGENT", help="whose")
    parser.add_argument("--all", action="store_true", help="also those that are taken or settled")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """List the offers."""
    with open_client(options) as client:
        offers = client.inbox(options.agent, every=options.all)
    if terminal.json:
        terminal.emit({"agent_id": options.agent, "offers": [offer_json(each) for each in offers]})
        return OK
    for each in offers:
        terminal.line(
            f"{terminal.paint(each.checkpoint_id, 'id')}  from {clean(each.from_agent)}/"
            f"{clean(each.from_session)}  {age(each.offered_at)}  {standing_of(each)}"
        )
    if not offers:
        terminal.line(f"nothing is offered to {clean(options.agent)}")
    return OK
