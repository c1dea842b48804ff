"""Messages of agents as people read them, whatever framework wrote them.

They are recognised by their shape alone: a role (or type) and a content, as OpenAI, Anthropic,
LangChain and most others have it, or parts with a kind, as Pydantic AI and Google have it. So none
of those libraries is needed to read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.short_repr import brief

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "function": "tool",
    "request": "user",
    "response": "assistant",
}
_WHERE = ("messages", "history", "conversation", "chat_history", "all_messages", "items", "input")
_DEEPEST = 3
_LONGEST = 10_000


@dataclass(frozen=True)
class RequestedCall:
    """A tool call that a message asks for."""

    name: str
    arguments: str


@dataclass(frozen=True)
class Message:
    """Who said what."""

    role: str
    text: str
    calls: list[RequestedCall] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        calls = [{"name": call.name, "arguments": call.arguments} for call in self.calls]
        return {"role": self.role, "text": self.text, "calls": calls}


def messages_in(state: Any, depth: int = 0) -> list[Message]:
    """Return the messages of a state: those under the usual names, else the first list of them."""
    if isinstance(state, (list, tuple)):
        found = [message_of(each) for each in state]
        return [each for each in found if each is not None] if any(found) else []
    if not isinstance(state, Mapping) or depth > _DEEPEST:
        return []
    usual = [state[name] for name in _WHERE if name in state]
    for part in (*usual, *state.values()):
        if isinstance(part, (list, tuple, Mapping)):
            messages = messages_in(part, depth + 1)
            if messages:
                return messages
    return []


def message_of(value: Any) -> Message | None:
    """Return the message that a value is; None if it is none."""
    if not isinstance(value, Mapping):
        return None
    if isinstance(value.get("message"), Mapping):  # wrapped, as in transcripts
        return message_of(value["message"])
    role = _word(value, "role", "type", "kind", "source")
    if role is None:
        return None
    kind = _word(value, "type")
    if kind == "function_call":
        return Message("assistant", "", [_call(value)])
    if kind == "function_call_output":
        return Message("tool", _text(value.get("output")))
    content = value.get("content", value.get("parts"))
    if content is None and "tool_calls" not in value:
        return None
    calls = [*_calls(value.get("tool_calls")), *_calls(content)]
    return Message(_ROLES.get(role, role), _text(content), calls)


def _calls(value: Any) -> Iterator[RequestedCall]:
    for each in value if isinstance(value, (list, tuple)) else ():
        if not isinstance(each, Mapping):
            continue
        kind = _word(each, "type", "part_kind")
        if isinstance(each.get("function"), Mapping):
            yield _call(each["function"])
        elif isinstance(each.get("function_call"), Mapping):
            yield _call(each["function_call"])
        elif kind in ("tool_call", "tool_use", "tool-call") or ("name" in each and "args" in each):
            yield _call(each)


def _call(value: Mapping[str, Any]) -> RequestedCall:
    name = _word(value, "name", "tool_name") or "?"
    given: Any = next((value[key] for key in ("arguments", "args", "input") if key in value), {})
    return RequestedCall(name, given if isinstance(given, str) else _json(given))


def _text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, (list, tuple)):
        return "\n".join(filter(None, map(_text_of_part, content)))
    return _json(content)


def _text_of_part(part: Any) -> str:
    if not isinstance(part, Mapping):
        return _text(part)
    kind = _word(part, "type", "part_kind")
    if isinstance(part.get("text"), str):
        return str(part["text"])
    if kind in ("tool_call", "tool_use", "tool-call") or "function_call" in part:
        return ""  # shown as a call
    if isinstance(part.get("thinking"), str):
        return f"({part['thinking']})"
    if "content" in part:
        return _text(part["content"])
    return f"[{kind or 'part'}]"


def _word(value: Mapping[str, Any], *names: str) -> str | None:
    """Return the first of these fields that is a text."""
    return next((each for name in names if isinstance(each := value.get(name), str) and each), None)


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=brief)
    except (TypeError, ValueError, RecursionError):  # keys that JSON has no word for, large numbers
        return brief(value, _LONGEST)
