"""What waits for a person: approvals, calls of unknown end, questions of graphs, and offers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from holdfast.cli.access.langgraph_threads import asked_json
from holdfast.cli.access.questions import question_json
from holdfast.cli.access.waiting import call_json
from holdfast.cli.output.offers import offer_json
from holdfast.ui.numbers import exact, text_of
from holdfast.ui.reading import DAMAGE, LARGEST_VALUE, for_a_moment, small
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.sessions import sessions_with_unknown
from holdfast.ui.shapes import INBOX

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.session.approval import Question

T = TypeVar("T")
_MOST = 500
"""How many of a kind are given."""
_DECIDED = 1_000_000
"""Who approves of a call decides of every character of it."""


def inbox(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return all that waits for a person in the store."""
    return for_a_moment(client.store, "inbox", lambda: _inbox(client))


def _inbox(client: SyncClient) -> dict[str, Any]:
    damaged: list[str] = []
    approvals = _tried(client.pending, damaged)
    unknown = _tried(lambda: _unknown_calls(client, damaged), damaged)
    interrupts = _tried(client.interrupts, damaged)
    offers = _tried(client.inbox, damaged)
    return {
        "approvals": [_question(each) for each in approvals[:_MOST]],
        "unknown": [{**_small(call_json(each)), "text": str(each)} for each in unknown[:_MOST]],
        "interrupts": [_small(each) for each in asked_json(interrupts[:_MOST])],
        "offers": [_small(offer_json(each)) for each in offers[:_MOST]],
        "total": sum(map(len, (approvals, unknown, interrupts, offers))),
        "damaged": damaged,
    }


def _tried(read: Callable[[], list[T]], damaged: list[str]) -> list[T]:
    """Return what is read; what is damaged hides nothing of another kind, and is told."""
    try:
        return read()
    except DAMAGE as error:
        damaged.append(str(error))
        return []


def _unknown_calls(client: SyncClient, damaged: list[str]) -> list[Any]:
    try:
        return client.unknown_effects()
    except DAMAGE as error:
        damaged.append(str(error))
    keys = sorted(sessions_with_unknown(client))
    return [call for key in keys for call in client.unknown_effects(*key)]


def _question(asked: Question) -> dict[str, Any]:
    """Return a call to be decided of, with texts of its arguments that can be edited."""
    told = question_json(asked)
    return {
        **_small(told, _DECIDED),
        "text": str(asked),
        "args_text": text_of(told["args"]),
        "kwargs_text": text_of(told["kwargs"]),
    }


def _small(data: dict[str, Any], most: int = LARGEST_VALUE) -> dict[str, Any]:
    return {name: _bounded(value, most) for name, value in data.items()}


def _bounded(value: Any, most: int) -> Any:
    """Return arguments one by one, each as it is or as it begins."""
    if isinstance(value, list):
        return [small(exact(each), most) for each in value]
    if isinstance(value, dict) and "$type" not in value:
        return {name: small(exact(each), most) for name, each in value.items()}
    return small(exact(value), most)


ROUTES = (Route("inbox", inbox, "What waits for a person", {}, INBOX),)
"""The addresses of this family."""
