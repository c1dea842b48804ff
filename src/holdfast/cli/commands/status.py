"""``holdfast status``: which store this is, what is in it, and what waits."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.access.questions import SHORT
from holdfast.cli.access.waiting import Waiting, what_waits
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many, size
from holdfast.cli.output.values import short
from holdfast.cli.parsing import Parser
from holdfast.stores.discovery import StoreLocation
from holdfast.system.terminal_text import clean, cut

_LISTED = 10
_ROOM = 60


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "What waits for a person comes first: calls of unknown end, calls that wait for approval, "
        "questions\nthat graphs stopped at, and offers.",
        "holdfast status",
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Say what waits, which store this is and what is in it."""
    location = location_of(options)
    with open_location(location) as client:
        stats = client.stats()
        sessions = client.sessions(limit=1)
        waiting = what_waits(client)
        name = client.store.name
    if terminal.json:
        terminal.emit(
            {
                "url": location.shown,
                "source": location.source,
                "checkpoints": stats.checkpoints,
                "sessions": stats.sessions,
                "stored_bytes": stats.stored_bytes,
                "head": checkpoint_json(sessions[0].head) if sessions else None,
                "pending": len(waiting.approvals),
                "offers": waiting.offers,
                "waiting": waiting.as_json(),
            }
        )
        return OK
    _show(waiting, terminal)
    terminal.line(f"store     {clean(name)} ({_how(location)})")
    terminal.line(
        f"holds     {many(stats.checkpoints, 'checkpoint')} of "
        f"{many(stats.sessions, 'session')}, {size(stats.stored_bytes)}"
    )
    if sessions:
        head = sessions[0].head
        step = step_of(head)
        terminal.line(f"newest    {clean(head.session_id)}: {step}, {age(head.created_at)}")
    return OK


def _how(location: StoreLocation) -> str:
    is_nearest = location.folder is not None and not location.is_linked
    return "the nearest upwards" if is_nearest else f"from {location.source}"


def _show(waiting: Waiting, terminal: Terminal) -> None:
    """Say what waits, each with the command that ends it."""
    for call in _first(waiting.unknown, "calls of unknown end", terminal):
        _line(
            terminal,
            "unknown",
            call.effect_id,
            f"{call}",
            f"{call.session_id}, begun {call.started_at:%H:%M:%S} UTC, {age(call.started_at)}",
        )
    if waiting.unknown:
        terminal.line("          holdfast resolve ID --done VALUE, --failed or --retry")
    for asked in _first(waiting.approvals, "calls that wait for approval", terminal):
        about = f"{asked.session_id}, {age(asked.asked_at)}"
        _line(terminal, "approval", asked.effect_id, f"{asked}", about)
    if waiting.approvals:
        terminal.line("          holdfast approve ID, or holdfast deny ID")
    for each in _first(waiting.interrupts, "questions of graphs", terminal):
        where = f"{each.session_id}, {each.node}" if each.node else each.session_id
        _line(terminal, "asked", each.interrupt_id or "", short(each.value, _ROOM), where)
        terminal.line(f"          answer with {clean(each.resume)}")
    for agent, number in waiting.offers.items():
        terminal.line(f"offered   {number} to {clean(agent)}: holdfast inbox {clean(agent)}")


def _first(every: list[Any], what: str, terminal: Terminal) -> list[Any]:
    if len(every) > _LISTED:
        terminal.line(f"          {len(every)} {what}, the first {_LISTED}:")
    return every[:_LISTED]


def _line(terminal: Terminal, word: str, its_id: str, call: str, about: str) -> None:
    mark = "…" if terminal.unicode else "..."
    name = terminal.paint(cut(clean(call), _ROOM, mark), "name")
    shown = terminal.paint(clean(its_id[:SHORT]), "id")
    terminal.line(f"{terminal.paint(f'{word:<8}', 'warn')}  {shown}  {name}  {clean(about)}")
