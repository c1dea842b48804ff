"""What waits for a person: calls of unknown end, approvals, questions of graphs, and offers."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.langgraph_threads import asked_json
from holdfast.cli.access.questions import question_json
from holdfast.core.json_form import to_json

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question
    from holdfast.session.unknown import UnknownCall
    from holdfast.verbs.interrupts import OpenInterrupt


@dataclass(frozen=True)
class Waiting:
    """What waits in a store."""

    unknown: list[UnknownCall]
    approvals: list[Question]
    interrupts: list[OpenInterrupt]
    offers: dict[str, int]
    """How many, by the agent they were made to."""

    def as_json(self) -> dict[str, Any]:
        """Return the same in JSON."""
        return {
            "unknown": [call_json(each) for each in self.unknown],
            "approvals": [question_json(each) for each in self.approvals],
            "interrupts": asked_json(self.interrupts),
            "offers": self.offers,
        }


def what_waits(client: SyncClient) -> Waiting:
    """Return all that waits for a person in a store."""
    return Waiting(
        client.unknown_effects(), client.pending(), client.interrupts(), _open_offers(client)
    )


def _open_offers(client: SyncClient) -> dict[str, int]:
    return dict(sorted(Counter(offer.to_agent for offer in client.inbox()).items()))


def call_json(call: UnknownCall) -> dict[str, Any]:
    """Return a call of unknown end in JSON."""
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
