"""What waits for a person: calls of unknown end, approvals, questions of graphs, and offers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.langgraph_threads import asked_json
from holdfast.cli.commands.approvals import question_json
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age
from holdfast.cli.output.values import short
from holdfast.core.json_form import to_json
from holdfast.stores.base import Query
from holdfast.system.terminal_text import clean, cut

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question
    from holdfast.session.unknown import UnknownCall
    from holdfast.verbs.interrupts import OpenInterrupt

SHORT = 8
_LISTED = 10
_ROOM = 60


@dataclass(frozen=True)
class Waiting:
    """What waits in a store."""

    unknown: list[UnknownCall]
    approvals: list[Question]
    interrupts: list[OpenInterrupt]
    offers: dict[str, int]
    """How many, by the agent they were made to."""

    def as_json(self) -> dict[str, Any]:
        """The same in JSON."""
        return {
            "unknown": [call_json(each) for each in self.unknown],
            "approvals": [question_json(each) for each in self.approvals],
            "interrupts": asked_json(self.interrupts),
            "offers": self.offers,
        }


def what_waits(client: SyncClient) -> Waiting:
    """All that waits for a person in a store."""
    return Waiting(
        client.unknown_effects(), client.pending(), client.interrupts(), _open_offers(client)
    )


def _open_offers(client: SyncClient) -> dict[str, int]:
    targets = {i.handoff_target for i in client.store.query(Query()) if i.handoff_target}
    counted = {agent: len(client.inbox(agent)) for agent in sorted(targets)}
    return {agent: number for agent, number in counted.items() if number}


def show(waiting: Waiting, terminal: Terminal) -> None:
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


def call_json(call: UnknownCall) -> dict[str, Any]:
    """A call of unknown end in JSON."""
    return {
        "id": call.effect_id,
        "agent_id": call.agent_id,
        "session_id": call.session_id,
        "tool": call.tool,
        "kind": call.kind,
        "args": to_json(list(call.args)),
        "kwargs": to_json(call.kwargs),
        "started_at": call.started_at.isoformat(),
        "reason": call.reason,
    }
