"""LangGraph: LangChain's messages in the channel ``messages``."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.blocks import word
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part
from holdfast.core.kinds.objects import PYDANTIC
from holdfast.core.raw import Raw

_ROLES = {"human": "user", "ai": "assistant", "system": "system", "tool": "tool"}
_ROLES |= {"AIMessageChunk": "assistant", "HumanMessageChunk": "user", "function": "tool"}
_ROLES |= {"ToolMessageChunk": "tool", "SystemMessageChunk": "system", "developer": "system"}
_CLASSES = {
    "human": "langchain_core.messages.human:HumanMessage",
    "ai": "langchain_core.messages.ai:AIMessage",
    "system": "langchain_core.messages.system:SystemMessage",
    "tool": "langchain_core.messages.tool:ToolMessage",
}
_PROVIDER = "langchain"
_SEALED = {"type": "sealed"}
"""Stands for messages that the serializer of a thread has encrypted."""
_BLOCKS = {"image": "image", "audio": "audio", "video": "video", "document": "file"}
_GREGORIAN = 0x01B21DD213814000
"""The 100-ns ticks from 1582, where UUIDs of version 6 count from, to 1970."""


def _extract(state: Any) -> Native | None:
    values = state.get("values") if isinstance(state, Mapping) else None
    if not isinstance(values, Mapping) or not isinstance(state.get("checkpoint"), Mapping):
        return None
    messages = values.get("messages")
    if not isinstance(messages, (list, tuple)):
        return None
    sealed = state.get("sealed")
    is_sealed = isinstance(sealed, Mapping) and "messages" in sealed
    return Native([_SEALED] if is_sealed else messages)


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        inner = message.get("data") if isinstance(message, Mapping) else None
        fields = inner if isinstance(inner, Mapping) else message
        kind = word(fields, "type", "role") if isinstance(fields, Mapping) else None
        role = _ROLES.get(kind or "", kind)
        if role == "chat":
            role = word(fields, "role")
        if role not in ("user", "assistant", "system", "tool"):
            is_sealed = message == _SEALED
            why = "messages that only the serializer of their thread reads"
            lost.add(path, why if is_sealed else f"a message of the type {str(kind)[:40]!r}")
            continue
        found.append({"role": role, "parts": _parts(role, fields, lost, path)})
    return found


def _parts(role: str, fields: Mapping[str, Any], lost: Lost, path: str) -> list[Part]:
    content = blocks.parts_of(fields.get("content"), lost, f"{path}.content", _PROVIDER)
    if role == "tool":
        call_id = word(fields, "tool_call_id")
        if fields.get("artifact") is not None:
            lost.add(f"{path}.artifact", "what a tool gave for the program alone")
        is_error = fields.get("status") == "error"
        return [blocks.response_of(call_id, content, name=word(fields, "name"), is_error=is_error)]
    if role != "assistant":
        return content
    calls = []
    for name in ("tool_calls", "invalid_tool_calls"):
        given = fields.get(name)
        for j, each in enumerate(given if isinstance(given, (list, tuple)) else ()):
            call = blocks.call_of(each) if isinstance(each, Mapping) else None
            if call is None:
                lost.add(f"{path}.{name}[{j}]", "is a call without a name")
            else:
                calls.append(call)
    # A provider's own blocks say again which calls there are.
    named = {call.get("id") for call in calls}
    said = [p for p in content if p["type"] != "tool_call" or p.get("id") not in named]
    return [*said, *calls]


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions and not lost.first:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    found: list[Any] = []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        if message["role"] == "tool":
            found += [_result(part, lost, f"{path}.parts[{j}]") for j, part in _parts_in(message)]
            continue
        kind = {"user": "human", "assistant": "ai", "system": "system"}[message["role"]]
        content = [
            block
            for j, part in _parts_in(message)
            if part["type"] != "tool_call"
            and (block := _block(part, lost, f"{path}.parts[{j}]")) is not None
        ]
        own: dict[str, Any] = {"content": _content(content)}
        if kind == "ai":
            calls = [part for _, part in _parts_in(message) if part["type"] == "tool_call"]
            own |= _calls(calls, lost, path)
        if content or own.get("tool_calls") or own.get("invalid_tool_calls"):
            found.append(_message(kind, own))
    return found


def _parts_in(message: Message) -> list[tuple[int, Part]]:
    return list(enumerate(message["parts"]))


def _message(kind: str, fields: dict[str, Any]) -> dict[str, Any]:
    own: dict[str, Any] = {"additional_kwargs": {}, "response_metadata": {}, "type": kind}
    return {"type": kind, "data": {**own, "name": None, "id": None, **fields}}


def _content(content: list[dict[str, Any]]) -> Any:
    if not content:
        return ""
    is_text = len(content) == 1 and content[0]["type"] == "text"
    return content[0]["text"] if is_text else content


def _calls(calls: list[Part], lost: Lost, path: str) -> dict[str, Any]:
    is_whole = [isinstance(call["arguments"], dict) for call in calls]
    if is_whole != sorted(is_whole, reverse=True):
        lost.add(path, "the order of calls, as those whose arguments are no JSON are kept apart")
    whole = [
        {"name": call["name"], "args": call["arguments"], "id": call["id"], "type": "tool_call"}
        for call in calls
        if isinstance(call["arguments"], dict)
    ]
    broken = [
        {
            "type": "invalid_tool_call",
            "id": call["id"],
            "name": call["name"],
            "args": call["arguments"],
            "error": None,
        }
        for call in calls
        if not isinstance(call["arguments"], dict)
    ]
    return {"tool_calls": whole, "invalid_tool_calls": broken, "usage_metadata": None}


def _result(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    said = part["response"]
    if not isinstance(said, str):
        lost.add(f"{path}.response", "an answer that is no text is JSON text here")
    media = [
        block
        for k, each in enumerate(part.get("parts", []))
        if (block := _block(each, lost, f"{path}.parts[{k}]")) is not None
    ]
    text = parts.text_of_response(said)
    content = [*([{"type": "text", "text": text}] if text else []), *media] if media else text
    status = "error" if part.get("is_error") else "success"
    own = {"content": content, "name": part["name"], "tool_call_id": part["id"], "status": status}
    return _message("tool", {**own, "artifact": None})


def _block(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    kind = part["type"]
    if kind == "text":
        return {"type": "text", "text": part["content"]}
    if kind in ("blob", "uri", "file"):
        own, key = {
            "blob": ("content", "base64"),
            "uri": ("uri", "url"),
            "file": ("file_id", "file_id"),
        }[kind]
        extra = {"mime_type": part["mime_type"]} if "mime_type" in part else {}
        return {"type": _BLOCKS[part["modality"]], key: part[own], **extra}
    if kind.startswith(f"{_PROVIDER}_"):
        block = {**part, "type": kind.removeprefix(f"{_PROVIDER}_")}
        if blocks.part_of(block, Lost(), path, _PROVIDER) == part:
            return block
    why = "what a model thought goes to no other" if kind == "reasoning" else f"a part {kind[:60]}"
    lost.add(path, why)
    return None


def _state(messages: list[Any], conversation: Conversation) -> Any:
    values = {"messages": [_as_object(message) for message in messages]}
    checkpoint = {
        "v": 4,
        "channel_versions": {"messages": f"{1:032}"},
        "versions_seen": {},
        "updated_channels": ["messages"],
    }
    return {"values": values, "checkpoint": checkpoint}


def _as_object(message: Any) -> Any:
    """Return what is revived as a message of LangChain's, where LangChain is there."""
    if isinstance(message, Raw) or not isinstance(message, Mapping) or "data" not in message:
        return message
    fields = dict(message["data"])
    given = sorted(name for name in fields if fields[name] and name != "type")
    return Raw(PYDANTIC, [_CLASSES[message["type"]], fields, given, {}, None])


def _place(state: Any, session_id: str, checkpoint_id: str) -> tuple[Any, dict[str, Any]]:
    """Give the checkpoint an id and a time of LangGraph's kind, made of Holdfast's own."""
    milliseconds = uuid.UUID(checkpoint_id).int >> 80
    ticks = milliseconds * 10_000 + _GREGORIAN
    low = uuid.UUID(checkpoint_id).int & ((1 << 62) - 1)
    whole = ticks >> 12 << 80 | 0x6 << 76 | (ticks & 0xFFF) << 64 | 0b10 << 62 | low
    made_id = str(uuid.UUID(int=whole))
    at = datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    checkpoint = {**state["checkpoint"], "id": made_id, "ts": at}
    tags = {"source": "update", "step": 0, "parents": {}}
    own = {"thread_id": session_id, "checkpoint_ns": "", "checkpoint_id": made_id}
    return {**state, "checkpoint": checkpoint}, {**tags, **own}


FORM = Form("langgraph", _extract, _read, _write, _state, place=_place)
