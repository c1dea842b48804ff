"""Google ADK: the contents of a session's events."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.google_parts import read_part, snake, write_part
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part, by_role

_ASKS = ("adk_request_confirmation", "adk_request_credential", "adk_request_input")
"""Calls by which ADK asks people, which no model made."""


def _extract(state: Any) -> Native | None:
    events = state.get("events") if isinstance(state, Mapping) else None
    if not isinstance(events, (list, tuple)) or "last_update_time" not in state:
        return None
    live = _not_rewound(events)
    return Native(live, interrupts=_interrupts(live))


def _not_rewound(events: Sequence[Any]) -> list[Any]:
    """Return the events that no later rewind took back."""
    live: list[Any] = []
    for event in events:
        fields = snake(event) if isinstance(event, Mapping) else {}
        actions = fields.get("actions")
        own = snake(actions) if isinstance(actions, Mapping) else {}
        before = own.get("rewind_before_invocation_id")
        if not before:
            live.append(event)
            continue
        at = next((i for i, each in enumerate(live) if _invocation(each) == before), len(live))
        del live[at:]
    return live


def _invocation(event: Any) -> Any:
    return snake(event).get("invocation_id") if isinstance(event, Mapping) else None


def _parts(event: Any) -> tuple[str, list[Any]] | None:
    """Return who said what in an event, or in a content alone; None if nothing is said in it."""
    if not isinstance(event, Mapping):
        return None
    fields = snake(event)
    content = fields.get("content", fields if "parts" in fields else None)
    if not isinstance(content, Mapping):
        return None
    own = snake(content)
    given = own.get("parts")
    role = own.get("role") or ("user" if fields.get("author") == "user" else "model")
    role = "assistant" if role == "model" else "user"
    return role, list(given) if isinstance(given, (list, tuple)) else []


def _asked(part: Any) -> Mapping[str, Any] | None:
    """Return a call by which ADK asks people, or the answer to one."""
    fields = snake(part) if isinstance(part, Mapping) else {}
    for kind in ("function_call", "function_response"):
        value = fields.get(kind)
        if isinstance(value, Mapping) and value.get("name") in _ASKS:
            return {**value, "kind": kind}
    return None


def _interrupts(events: Sequence[Any]) -> list[dict[str, Any]]:
    """Return what people were asked and have not answered."""
    asked: dict[Any, dict[str, Any]] = {}
    for event in events:
        for part in (_parts(event) or ("", []))[1]:
            ask = _asked(part)
            own_id = None if ask is None else ask.get("id")
            if ask is None or not isinstance(own_id, str):
                continue
            if ask["kind"] == "function_response":
                asked.pop(own_id, None)
                continue
            given = snake(ask["args"]) if isinstance(ask.get("args"), Mapping) else {}
            call = given.get("original_function_call")
            approves = ask["name"] == _ASKS[0]
            asked[own_id] = {
                "id": own_id,
                "reason": "tool_approval" if approves else str(ask["name"]),
                "tool_call_id": call.get("id") if isinstance(call, Mapping) else None,
            }
    return list(asked.values())


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, event in enumerate(messages):
        path = f"$.messages[{i}]"
        said = _parts(event)
        if said is None:
            if not isinstance(event, Mapping):
                lost.add(path, "is no event of google_adk")
            continue
        role, given = said
        read = (_part(each, lost, f"{path}.content.parts[{j}]") for j, each in enumerate(given))
        found += by_role(role, read)
    return found


def _part(given: Any, lost: Lost, path: str) -> Part | None:
    if _asked(given) is None:
        return read_part(given, lost, path)
    lost.add(path, "a question of google_adk to people, or the answer to one")
    return None


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it as instruction")
    found = []
    for i, message in enumerate(conversation.messages):
        path, role = f"$.messages[{i}]", message["role"]
        if role == "system":
            lost.add(path, "a late system prompt is what a user says, in <system> tags")
        content = []
        for j, part in enumerate(message["parts"]):
            if role == "system" and part["type"] == "text":
                content.append({"text": f"<system>\n{part['content']}\n</system>"})
                continue
            made = write_part(part, lost, f"{path}.parts[{j}]")
            if made is not None:
                content.append(made)
        if content:
            own = {"role": "model" if role == "assistant" else "user", "parts": content}
            # What another agent said is told as a report: these were said here, so by nobody else.
            found.append({"author": "user", "content": own})
    return found


def _state(messages: list[Any], conversation: Conversation) -> Any:
    own: dict[str, Any] = {"app_name": None, "user_id": None, "id": None, "state": {}}
    return {**own, "events": messages, "last_update_time": 0.0}


def _place(state: Any, session_id: str, checkpoint_id: str) -> tuple[Any, dict[str, Any]]:
    """Give events ids and a time, and turns the ids of invocations, made of Holdfast's own."""
    at = (uuid.UUID(checkpoint_id).int >> 80) / 1000
    events, turn = [], 0
    for i, event in enumerate(state["events"]):
        content = event.get("content") if isinstance(event, Mapping) else None
        role, given = _parts(event) or ("", [])
        answers = any("function_response" in part for part in given if isinstance(part, Mapping))
        turn += content is not None and role == "user" and not answers
        own = {
            "id": f"{checkpoint_id}-{i}",
            "invocation_id": f"carried-{turn}-{checkpoint_id}",
            "timestamp": at,
        }
        events.append({**own, **event})
    placed = {**state, "id": session_id, "events": events, "last_update_time": at}
    return placed, {"native_session_id": session_id}


FORM = Form("google_adk", _extract, _read, _write, _state, place=_place)
