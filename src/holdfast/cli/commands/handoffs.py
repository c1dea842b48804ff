"""``holdfast handoff`` and ``holdfast inbox``: offers between agents."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, span
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.core.json_form import to_json
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.verbs.handoff import Offer


def handoff(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "The offer is the next checkpoint of the session. One worker of the other agent takes it.",
        "holdfast handoff reviewer",
        "holdfast handoff reviewer fix-42@ --ttl 2d",
    )
    parser.add_argument("target", metavar="AGENT", help="who it is offered to")
    add_checkpoint(parser)
    add_session(parser)
    parser.add_argument("--contract", metavar="NAME", help="what both sides call the state's shape")
    parser.add_argument("--ttl", metavar="TIME", help="gone after this time, such as 30m or 2d")
    parser.set_defaults(run=_handoff)


def _handoff(options: Namespace, terminal: Terminal) -> int:
    ttl = None if options.ttl is None else span(options.ttl)
    with open_client(options) as client:
        info = Names(client).checkpoint(options.checkpoint, options.session)
        made = client.handoff(info.checkpoint_id, options.target, options.contract, ttl)
        offer = client.offer(made)
    if terminal.json:
        terminal.emit({"offer": _json(offer)})
    else:
        step = step_of(info)
        terminal.line(f"offered {step} of {clean(info.session_id)} to {clean(options.target)}")
        terminal.line(f"the offer is {made}")
    return OK


def inbox(parser: Parser) -> None:
    """Set up the command."""
    parser.explain("", "holdfast inbox reviewer", "holdfast inbox reviewer --all --json")
    parser.add_argument("agent", metavar="AGENT", help="whose")
    parser.add_argument("--all", action="store_true", help="also those that are taken or settled")
    parser.set_defaults(run=_inbox)


def _inbox(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        offers = client.inbox(options.agent, every=options.all)
    if terminal.json:
        terminal.emit({"agent_id": options.agent, "offers": [_json(each) for each in offers]})
        return OK
    for each in offers:
        terminal.line(
            f"{terminal.paint(each.checkpoint_id, 'id')}  from {clean(each.from_agent)}/"
            f"{clean(each.from_session)}  {age(each.offered_at)}  {_stands(each)}"
        )
    if not offers:
        terminal.line(f"nothing is offered to {clean(options.agent)}")
    return OK


def _stands(offer: Offer) -> str:
    if offer.outcome is not None:
        return offer.outcome + (f": {clean(offer.reason)}" if offer.reason else "")
    return "open" if offer.is_open() else f"taken by {clean(offer.worker or 'a worker')}"


def _json(offer: Offer) -> dict[str, Any]:
    times = ("offered_at", "expires_at", "claimed_until")
    data = {name: getattr(offer, name) for name in offer.__dataclass_fields__}
    data["schema"] = None if offer.schema is None else to_json(offer.schema)
    for name in times:
        data[name] = None if data[name] is None else data[name].isoformat()
    return {**data, "open": offer.is_open()}
