"""Whether a session is past a RunState that it is given: an approval may be delivered twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation.frameworks import openai_agents

_APPROVED = "mcp_approval_response"


def is_past(decided: Mapping[str, Any], messages: Sequence[Any]) -> bool:
    """Return whether a conversation has gone on from the JSON of a RunState.

    The calls that wait in the state have their answers there, more of them than in the state, as
    some models use an id again. A state in which none waits is the beginning of the conversation.
    """
    native = openai_agents.extract({"items": [], "run": {"state": decided}})
    assert native is not None
    told, known = _answers(native.messages), _answers(messages)
    calls = _calls(native.messages)
    waiting = [call_id for call_id, times in calls.items() if times > told[call_id]]
    if waiting:
        return all(known[each] > told[each] for each in waiting)
    size = len(native.messages)
    begins = [_shape(item) for item in messages[:size]]
    return size < len(messages) and begins == [_shape(item) for item in native.messages]


def is_same_moment(decided: Mapping[str, Any], kept: Mapping[str, Any] | None) -> bool:
    """Return whether two states are of one moment, but for what was decided."""
    parts = ("original_input", "generated_items")
    return kept is not None and all(decided.get(part) == kept.get(part) for part in parts)


def _kind(item: Any) -> str:
    return str(item.get("type") or "message") if isinstance(item, Mapping) else ""


def _calls(messages: Sequence[Any]) -> Counter[str]:
    """Return how often each id is that of a call which a program answers."""
    requests = [item["id"] for item in messages if _kind(item) == "mcp_approval_request"]
    made = [item.get("call_id") for item in messages if _kind(item).endswith("_call")]
    return Counter([*requests, *(call_id for call_id in made if call_id is not None)])


def _answers(messages: Sequence[Any]) -> Counter[str]:
    approved = [item["approval_request_id"] for item in messages if _kind(item) == _APPROVED]
    given = [item.get("call_id") for item in messages if _kind(item).endswith("_output")]
    return Counter([*approved, *(call_id for call_id in given if call_id is not None)])


def _shape(item: Any) -> Any:
    """Return what tells an item apart in every form that the SDK gives it."""
    if not isinstance(item, Mapping):
        return item
    role = item.get("role")
    return _kind(item), role, item.get("call_id"), item.get("content") if role == "user" else None
