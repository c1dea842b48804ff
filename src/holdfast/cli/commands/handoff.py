"""``holdfast handoff``: offer a checkpoint to another agent."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.offers import offer_json
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import span
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.cli.tool_names import add_tool_names, tool_names_of
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "The offer is the next checkpoint of the session. One worker of the other agent takes it.",
        "holdfast handoff reviewer",
        "holdfast handoff reviewer fix-42@ --ttl 2d",
        "holdfast handoff reviewer --to-framework pydantic_ai",
    )
    parser.add_argument("target", metavar="AGENT", help="who it is offered to")
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument("--contract", metavar="NAME", help="what both sides call the state's shape")
    parser.add_argument("--ttl", metavar="TIME", help="gone after this time, such as 30m or 2d")
    parser.add_argument(
        "--to-framework", metavar="NAME", help="the framework that the other agent goes on in"
    )
    add_tool_names(parser)
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Make the offer."""
    ttl = None if options.ttl is None else span(options.ttl)
    with open_client(options) as client:
        info = Names(client).checkpoint(options.checkpoint, options.session)
        made = client.handoff(
            info.checkpoint_id,
            options.target,
            options.contract,
            ttl,
            to_framework=options.to_framework,
            tool_names=tool_names_of(options),
        )
        offer = client.offer(made)
    if terminal.json:
        terminal.emit({"offer": offer_json(offer)})
    else:
        step = step_of(info)
        terminal.line(f"offered {step} of {clean(info.session_id)} to {clean(options.target)}")
        terminal.line(f"the offer is {made}")
    return OK
