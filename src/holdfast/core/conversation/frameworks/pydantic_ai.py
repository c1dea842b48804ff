"""Pydantic AI: requests and responses of parts, as ``ModelMessagesTypeAdapter`` writes them.

System prompts are written as parts of the first request, which go to the model whatever the agent
that goes on has for instructions of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.pydantic_ai_content import (
    content_of,
    item_of,
    items_of,
    read_reasoning,
    result_content,
    result_of,
    written_reasoning,
)
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part

_PROVIDER = "pydantic_ai"
_ERRORS = ("failed", "retried")
_EPOCH = "1970-01-01T00:00:00Z"
"""When a message was said that is carried here: nobody knows, and it is not sent to models."""


def _extract(state: Any) -> Native | None:
    if not isinstance(state, Mapping):
        return None
    if isinstance(state.get("entries"), (list, tuple)) and isinstance(state.get("record"), Mapping):
        record = state["record"]
        return Native(
            _line(state["entries"], record.get("head_id")),
            interrupts=_interrupts(record.get("deferred_tool_requests")),
        )
    messages = state.get("messages")
    if not isinstance(messages, (list, tuple)) or not all(map(_is_message, messages)):
        return None
    return Native(messages, interrupts=_interrupts(state.get("deferred")))


def _is_message(message: Any) -> bool:
    return isinstance(message, Mapping) and message.get("kind") in ("request", "response")


def _line(entries: Sequence[Any], head_id: Any) -> list[Any]:
    """Return the messages that lead to an entry of a stored conversation."""
    by_id = {entry.get("id"): entry for entry in entries if isinstance(entry, Mapping)}
    found: list[Any] = []
    while isinstance(head_id, str) and head_id in by_id and len(found) <= len(by_id):
        found.append(by_id[head_id].get("message"))
        head_id = by_id[head_id].get("parent_id")
    return found[::-1]


def _interrupts(deferred: Any) -> list[dict[str, Any]]:
    """Return the calls that wait for an approval, or for a result from elsewhere."""
    if not isinstance(deferred, Mapping):
        return []
    metadata = deferred.get("metadata")
    told = metadata if isinstance(metadata, Mapping) else {}
    return [
        {
            "id": call["tool_call_id"],
            "reason": reason,
            "tool_call_id": call["tool_call_id"],
            "message": None,
            "metadata": told.get(call["tool_call_id"]),
        }
        for kind, reason in (("approvals", "tool_approval"), ("calls", "external_call"))
        for call in deferred.get(kind) or ()
        if isinstance(call, Mapping) and isinstance(call.get("tool_call_id"), str)
    ]


# Reading


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    instructions: str | None = None
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        given = message.get("parts") if isinstance(message, Mapping) else None
        if not isinstance(message, Mapping) or not isinstance(given, (list, tuple)):
            lost.add(path, "is no request or response of parts")
            continue
        said = message.get("instructions")
        instructions = said if isinstance(said, str) and said else instructions
        is_request = message.get("kind") == "request"
        for j, part in enumerate(given):
            where = f"{path}.parts[{j}]"
            if not isinstance(part, Mapping):
                lost.add(where, "is no part of a message")
            elif is_request:
                found += _asked(part, lost, where)
            else:
                found += _answered(part, lost, where)
    return _with_instructions(found, instructions)


def _with_instructions(messages: list[Message], instructions: str | None) -> list[Message]:
    """Return messages that begin with the instructions that were sent last.

    An agent sends those it has then with every request; those before are no part of the talk.
    """
    if instructions is None:
        return messages
    told = parts.text(instructions)
    leading = []
    for message in messages:
        if message["role"] != "system":
            break
        leading += message["parts"]
    return messages if told in leading else [{"role": "system", "parts": [told]}, *messages]


def _asked(part: Mapping[str, Any], lost: Lost, path: str) -> list[Message]:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "system-prompt":
        return [{"role": "system", "parts": [parts.text(content)]}] if content else []
    if kind == "user-prompt":
        return [{"role": "user", "parts": items_of(content, lost, f"{path}.content")}]
    name = part.get("tool_name")
    if kind == "tool-return" or (kind == "retry-prompt" and name is not None):
        is_error = kind == "retry-prompt" or part.get("outcome") in _ERRORS
        response, media = result_of(content, lost, f"{path}.content")
        call_id = part.get("tool_call_id")
        answer = parts.tool_call_response(
            call_id, response, name=name, is_error=is_error, parts=media
        )
        return [{"role": "tool", "parts": [answer]}]
    if kind in ("retry-feedback", "retry-prompt"):
        said = content if isinstance(content, str) else parts.json_text(content)
        return [{"role": "user", "parts": [parts.text(said)]}]
    lost.add(path, f"what Pydantic AI notes for itself ({str(kind)[:40]})")
    return []


def _answered(part: Mapping[str, Any], lost: Lost, path: str) -> list[Message]:
    found = _answer_part(part, lost, path)
    return [] if found is None else [{"role": "assistant", "parts": [found]}]


def _answer_part(part: Mapping[str, Any], lost: Lost, path: str) -> Part | None:
    kind, content = part.get("part_kind"), part.get("content")
    if kind == "text":
        if part.get("citations"):
            lost.add(f"{path}.citations", "notes of a provider on a text")
        return parts.text(content) if content else None
    if kind == "thinking":
        return read_reasoning(part)
    if kind == "tool-call":
        name = part.get("tool_name")
        return parts.tool_call(part.get("tool_call_id"), str(name), part.get("args"))
    if kind == "file" and isinstance(content, Mapping):
        return item_of(content, lost, f"{path}.content")
    if not isinstance(kind, str) or not kind:
        lost.add(path, "is no part of a message")
        return None
    return {**part, "type": f"{_PROVIDER}_{kind}"}  # what a provider ran itself, say


# Writing


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    found: list[Any] = []
    for j, part in enumerate(() if lost.first else conversation.system_instructions):
        _add(found, "request", _system(part, lost, f"$.system_instructions[{j}]"))
    for i, message in enumerate(conversation.messages):
        role, path = message["role"], f"$.messages[{i}]"
        inner = [(part, f"{path}.parts[{j}]") for j, part in enumerate(message["parts"])]
        if role == "user":
            _add(found, "request", _prompt(inner, lost))
            continue
        write = {"system": _system, "tool": _result, "assistant": _said}[role]
        for part, where in inner:
            kind = "response" if role == "assistant" else "request"
            _add(found, kind, write(part, lost, where))
    return found


def _add(messages: list[Any], kind: str, part: dict[str, Any] | None) -> None:
    if part is None:
        return
    if not messages or messages[-1]["kind"] != kind:
        own = {"instructions": None} if kind == "request" else {"timestamp": _EPOCH}
        messages.append({"kind": kind, "parts": [], **own})
    messages[-1]["parts"].append(part)


def _system(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    if part["type"] != "text":
        lost.add(path, f"a part {part['type'][:60]} of a system prompt")
        return None
    return {"part_kind": "system-prompt", "content": part["content"], "timestamp": _EPOCH}


def _prompt(inner: list[tuple[Part, str]], lost: Lost) -> dict[str, Any] | None:
    items = [item for part, path in inner if (item := content_of(part, lost, path)) is not None]
    if not items:
        return None
    content = items[0] if len(items) == 1 and isinstance(items[0], str) else items
    return {"part_kind": "user-prompt", "content": content, "timestamp": _EPOCH}


def _result(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    return {
        "part_kind": "tool-return",
        "tool_name": part["name"],
        "tool_call_id": part["id"],
        "content": result_content(part, lost, path),
        "outcome": "failed" if part.get("is_error") else "success",
        "timestamp": _EPOCH,
    }


def _said(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"part_kind": "text", "content": part["content"]}
    if kind == "reasoning":
        return written_reasoning(part)
    if kind == "tool_call":
        return {
            "part_kind": "tool-call",
            "tool_name": part["name"],
            "args": part["arguments"],
            "tool_call_id": part["id"],
        }
    if kind == "blob":
        return {"part_kind": "file", "content": content_of(part, lost, path)}
    if kind.startswith(f"{_PROVIDER}_") and part.get("part_kind") == kind[len(_PROVIDER) + 1 :]:
        return {name: value for name, value in part.items() if name != "type"}
    lost.add(path, f"a part {kind[:60]} of an assistant")
    return None


# The state


def _state(messages: list[Any], conversation: Conversation) -> Any:
    last = messages[-1] if messages else None
    is_answered = last is None or (
        last["kind"] == "response"
        and not any(part["part_kind"] == "tool-call" for part in last["parts"])
    )
    prompts = [
        part["content"]
        for message in messages
        for part in message["parts"]
        if part["part_kind"] == "user-prompt"
    ]
    return {
        "messages": messages,
        "prompt": prompts[-1] if prompts and not is_answered else None,
        "finished": is_answered,
        "usage": None,
        "deferred": None,
        "given": None,
    }


FORM = Form("pydantic_ai", _extract, _read, _write, _state, runs_pending=True)
