"""Messages in the state of a program of one's own, recognised by their shape alone.

A role (or type) and a content, as OpenAI, Anthropic, LangChain and most others have it, or parts
with a kind, as Pydantic AI and Google have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.blocks import word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part
from holdfast.errors import InvalidArgumentError

_ROLES = {
    "human": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "model": "assistant",
    "agent": "assistant",
    "bot": "assistant",
    "function": "tool",
    "request": "user",
    "response": "assistant",
    "developer": "system",
}
_KNOWN = ("system", "user", "assistant", "tool")
_WHERE = ("messages", "history", "conversation", "chat_history", "all_messages", "items", "input")
_DEEPEST = 3
_MOST = 10_000
"""Parts of a state that are looked at before it is said to hold no messages."""
_KINDS = {"user-prompt": "user", "system-prompt": "system"}
_ANSWERS = ("tool-return", "retry-prompt", "builtin-tool-return")


def _extract(state: Any) -> Native | None:
    found = _Search().messages_in(state, 0)
    return None if found is None else Native(found)


class _Search:
    """Looks for messages: under the usual names, else the first list of them."""

    def __init__(self) -> None:
        self.left = _MOST

    def messages_in(self, state: Any, depth: int) -> Sequence[Any] | None:
        self.left -= 1
        if self.left < 0:
            return None
        if isinstance(state, (list, tuple)):
            return state if any(map(_is_message, state[:_MOST])) else None
        if not isinstance(state, Mapping) or depth > _DEEPEST:
            return None
        usual = [state[name] for name in _WHERE if name in state]
        for part in (*usual, *state.values()):
            if isinstance(part, (list, tuple, Mapping)):
                found = self.messages_in(part, depth + 1)
                if found is not None:
                    return found
        return None


def _is_message(value: Any) -> bool:
    if not isinstance(value, Mapping):
        return False
    inner = value.get("message")
    if isinstance(inner, Mapping):  # wrapped, as in transcripts
        value = inner
    if word(value, "role", "type", "kind", "source") is None:
        return False
    if value.get("type") in ("function_call", "function_call_output"):
        return True
    has_content = value.get("content", value.get("parts")) is not None
    return has_content or "tool_calls" in value


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        if not _is_message(message):
            lost.add(path, "has not the shape of a message")
            continue
        inner = message.get("message")
        fields = inner if isinstance(inner, Mapping) else message
        found += _message(fields, lost, path)
    return found


def _message(fields: Mapping[str, Any], lost: Lost, path: str) -> list[Message]:
    kind = word(fields, "type")
    if kind == "function_call":
        call = blocks.call_of(fields) or parts.tool_call(None, "?", fields.get("arguments"))
        return [{"role": "assistant", "parts": [call]}]
    if kind == "function_call_output":
        inner = _parts(fields.get("output"), lost, f"{path}.output")
        answer = blocks.response_of(word(fields, "call_id", "id"), inner)
        return [{"role": "tool", "parts": [answer]}]
    given = word(fields, "role", "type", "kind", "source") or ""
    role = _ROLES.get(given, given)
    named: Message = {} if role in _KNOWN else {"name": role}
    role = role if role in _KNOWN else "user"
    if role == "tool":
        return [{"role": "tool", "parts": [_answer(fields, lost, path)]}]
    content = fields.get("content", fields.get("parts"))
    each = content if isinstance(content, (list, tuple)) else [content]
    found: list[Message] = []
    for i, block in enumerate(each):
        own = _KINDS.get(_kind(block), role)
        inner = _parts(block, lost, f"{path}.content[{i}]")
        if found and found[-1]["role"] == own:
            found[-1]["parts"] += inner
        else:
            found.append({"role": own, "parts": inner, **named})
    calls = fields.get("tool_calls")
    known = {part.get("id") for message in found for part in message["parts"]} - {None}
    for i, block in enumerate(calls if isinstance(calls, (list, tuple)) else ()):
        asked = blocks.call_of(block) if isinstance(block, Mapping) else None
        if asked is None:
            lost.add(f"{path}.tool_calls[{i}]", "is a call without a name")
        elif asked.get("id") not in known:
            found[-1]["parts"].append(asked)
    return found


def _answer(fields: Mapping[str, Any], lost: Lost, path: str) -> Part:
    inner = _parts(fields.get("content", fields.get("parts")), lost, f"{path}.content")
    answers = [part for part in inner if part["type"] == "tool_call_response"]
    if answers:
        return answers[0]
    is_error = fields.get("status") == "error" or fields.get("is_error") is True
    call_id = word(fields, "tool_call_id", "tool_use_id")
    name = word(fields, "name", "tool_name")
    return blocks.response_of(call_id, inner, name=name, is_error=is_error)


def _kind(block: Any) -> str:
    return (word(block, "type", "part_kind") if isinstance(block, Mapping) else None) or ""


def _parts(content: Any, lost: Lost, path: str) -> list[Part]:
    if content is None:
        return []
    if isinstance(content, (list, tuple)):
        each = enumerate(content)
        return [part for i, block in each for part in _parts(block, lost, f"{path}[{i}]")]
    if not isinstance(content, Mapping):
        return [parts.text(content if isinstance(content, str) else parts.json_text(content))]
    part = _part(content, lost, path)
    return [] if part is None else [part]


def _part(block: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    kind = _kind(block)
    called = next((block[key] for key in _CALLS if isinstance(block.get(key), Mapping)), None)
    if called is not None or kind in _CALLED or {"name", "args"} <= block.keys():
        call = blocks.call_of(block if called is None else {**block, **called})
        return call or parts.tool_call(None, "?", None)
    given = next((block[key] for key in _RESULTS if isinstance(block.get(key), Mapping)), None)
    if given is not None:
        said = given.get("response")
        return parts.tool_call_response(word(given, "id"), said, name=word(given, "name"))
    if kind in _ANSWERS:
        inner = _parts(block.get("content"), lost, f"{path}.content")
        name = word(block, "tool_name")
        is_error = kind == "retry-prompt"
        call_id = word(block, "tool_call_id")
        return blocks.response_of(call_id, inner, name=name, is_error=is_error)
    if isinstance(block.get("text"), str):
        return parts.text(block["text"])
    if isinstance(block.get("thinking"), str) and kind != "thinking":
        return parts.reasoning(block["thinking"])
    inline = next((block[key] for key in _INLINE if isinstance(block.get(key), Mapping)), None)
    data = None if inline is None else word(inline, "data")
    if inline is not None and data is not None:
        return parts.blob(data, word(inline, "mime_type", "mimeType"))
    if kind in blocks.KNOWN:
        return blocks.part_of(block, lost, path, "custom")
    if isinstance(block.get("content"), str):
        said = block["content"]
        return parts.reasoning(said) if kind == "thinking" else parts.text(said)
    return {**block, "type": f"custom_{kind or 'part'}"}


_CALLS = ("function", "function_call", "functionCall")
_CALLED = ("tool_call", "tool_use", "tool-call", "builtin-tool-call")
_RESULTS = ("function_response", "functionResponse")
_INLINE = ("inline_data", "inlineData")


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    raise InvalidArgumentError("messages are only read by their shape, never written so")


def _state(messages: list[Any], conversation: Conversation) -> Any:
    raise InvalidArgumentError("messages are only read by their shape, never written so")


BY_SHAPE = Form("custom", _extract, _read, _write, _state)
