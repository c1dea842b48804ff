"""Strands: Bedrock's messages in the snapshot of an agent."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from holdfast.core.conversation import parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.strands_media import (
    KINDS,
    NAMELESS,
    base64_of,
    encoded,
    read_media,
    write_media,
)
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part, as_object, by_role

_OWN = "strands_"
_ANY_AGENT = "scopes/agent/*/snapshots/snapshot_latest.json"
_LATEST = "/snapshots/snapshot_latest.json"


def _extract(state: Any) -> Native | None:
    entries = state.get("entries") if isinstance(state, Mapping) else None
    if not isinstance(entries, Mapping):
        return None
    names = [name for name in entries if isinstance(name, str) and name.endswith(_LATEST)]
    last = state.get("last")
    for name in sorted(names, key=lambda name: name != last):
        data = _data(entries[name])
        if data is not None and isinstance(data.get("messages"), (list, tuple)):
            return Native(
                data["messages"],
                system=_system(data.get("system_prompt")),
                interrupts=_interrupts(data.get("interrupt_state")),
            )
    return None


def _data(content: Any) -> Mapping[str, Any] | None:
    snapshot = content.get("json") if isinstance(content, Mapping) else None
    data = snapshot.get("data") if isinstance(snapshot, Mapping) else None
    return data if isinstance(data, Mapping) else None


def _system(prompt: Any) -> list[Part]:
    if isinstance(prompt, str):
        return [parts.text(prompt)]
    blocks = prompt if isinstance(prompt, (list, tuple)) else ()
    texts = [block.get("text") for block in blocks if isinstance(block, Mapping)]
    return [parts.text(text) for text in texts if isinstance(text, str) and text]


def _interrupts(state: Any) -> list[dict[str, Any]]:
    """Return what an agent asked people, and waits for an answer to."""
    asked = state.get("interrupts") if isinstance(state, Mapping) else None
    return [
        {"id": own_id, "reason": each.get("name"), "message": each.get("reason")}
        for own_id, each in (asked.items() if isinstance(asked, Mapping) else ())
        if isinstance(each, Mapping) and each.get("response") is None
    ]


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, message in enumerate(messages):
        path = f"$.messages[{i}]"
        role = message.get("role") if isinstance(message, Mapping) else None
        content = message.get("content") if isinstance(message, Mapping) else None
        if isinstance(content, str):
            content = [{"text": content}]
        if role not in ("user", "assistant", "system") or not isinstance(content, (list, tuple)):
            lost.add(path, "is no message of strands")
            continue
        given = (_part(block, lost, f"{path}.content[{j}]") for j, block in enumerate(content))
        found += by_role(role, given)
    return found


def _part(block: Any, lost: Lost, path: str) -> Part | None:
    kinds = [name for name in block if isinstance(name, str)] if isinstance(block, Mapping) else []
    if len(kinds) != 1:
        lost.add(path, "is no block of a message")
        return None
    kind, value = kinds[0], block[kinds[0]]
    if kind == "text" and isinstance(value, str):
        return parts.text(value)
    part: Part | None = None
    if kind == "toolUse" and isinstance(value, Mapping) and isinstance(value.get("name"), str):
        own_id = value.get("toolUseId")
        own_id = own_id if isinstance(own_id, str) else None
        part = parts.tool_call(own_id, value["name"], value.get("input"))
    elif kind == "toolResult" and isinstance(value, Mapping):
        part = answer_of(value, lost, path)
    elif kind == "reasoningContent" and isinstance(value, Mapping):
        part = _thought(value)
    elif kind in KINDS:
        part = read_media(kind, value)
        _tell_of_name(kind, value, lost, path)
    elif kind not in ("text", "toolUse", "toolResult", "reasoningContent"):
        return {"type": f"{_OWN}{kind}", kind: value}
    if part is None:
        lost.add(path, f"is {kind} without what such a block holds")
    return part


def _tell_of_name(kind: str, block: Any, lost: Lost, path: str) -> None:
    """Note what a document is called, which parts do not say."""
    if kind == "document" and isinstance(block, Mapping):
        for name in ("name", "context", "citations"):
            if block.get(name) and block[name] != NAMELESS:
                lost.add(f"{path}.{name}", "what a document is called, and notes on it")


def _thought(block: Mapping[str, Any]) -> Part | None:
    said = block.get("reasoningText")
    if isinstance(said, Mapping):
        text, signature = said.get("text", ""), said.get("signature")
        if isinstance(text, str):
            return parts.reasoning(text, signature=signature if signature else None)
    hidden = base64_of(block.get("redactedContent"))
    return None if hidden is None else parts.reasoning("", encrypted=hidden, redacted=True)


def answer_of(result: Mapping[str, Any], lost: Lost | None = None, path: str = "$") -> Part:
    """Return the answer that the result of a tool is."""
    lost = Lost() if lost is None else lost
    content = result.get("content")
    said: list[Any] = []
    media: list[Part] = []
    for j, block in enumerate(content if isinstance(content, (list, tuple)) else ()):
        inner = f"{path}.content[{j}]"
        if isinstance(block, Mapping) and list(block) == ["json"]:
            said.append(block["json"])
            continue
        part = _part(block, lost, inner)
        if part is not None and part["type"] == "text":
            said.append(part["content"])
        elif part is not None:
            media.append(part)
    if len(said) != 1:
        if any(not isinstance(each, str) for each in said):
            lost.add(path, "several values of one result are one text")
        said = ["\n".join(map(parts.text_of_response, said))]
    own_id = result.get("toolUseId")
    return parts.tool_call_response(
        own_id if isinstance(own_id, str) else None,
        said[0],
        is_error=result.get("status") == "error",
        parts=media,
    )


def tool_result(answer: Part, lost: Lost | None = None, path: str = "$") -> dict[str, Any]:
    """Return an answer as the result of a tool, but for the id of its call."""
    lost = Lost() if lost is None else lost
    said = answer["response"]
    content = [{"text": said} if isinstance(said, str) else {"json": said}] if said != "" else []
    for j, part in enumerate(answer.get("parts", [])):
        block = _block(part, lost, f"{path}.parts[{j}]")
        if block is not None and "audio" in block:
            lost.add(f"{path}.parts[{j}]", "sound in the result of a tool")
        elif block is not None:
            content.append(block)
    return {"status": "error" if answer.get("is_error") else "success", "content": content}


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions:
        lost.add("$.system_instructions", "are no messages: the agent's system_prompt has them")
    found: list[dict[str, Any]] = []
    for i, message in enumerate(conversation.messages):
        path, role = f"$.messages[{i}]", message["role"]
        if role == "system":
            lost.add(path, "a late system prompt is what a user says, in <system> tags")
        content = list(_blocks(message, lost, path))
        native = "assistant" if role == "assistant" else "user"
        if not content:
            continue
        if found and found[-1]["role"] == native == "user":
            found[-1]["content"] += content  # results come first, as providers want them
        else:
            found.append({"role": native, "content": content})
    return found


def _blocks(message: Message, lost: Lost, path: str) -> Iterator[dict[str, Any]]:
    for j, part in enumerate(message["parts"]):
        inner = f"{path}.parts[{j}]"
        if part["type"] == "tool_call_response":
            yield {"toolResult": {"toolUseId": part["id"], **tool_result(part, lost, inner)}}
        elif message["role"] == "system" and part["type"] == "text":
            yield {"text": f"<system>\n{part['content']}\n</system>"}
        else:
            block = _block(part, lost, inner)
            if block is not None:
                yield block


def _block(part: Part, lost: Lost, path: str) -> dict[str, Any] | None:
    kind = part["type"]
    block: dict[str, Any] | None = None
    if kind == "text":
        return {"text": part["content"]}
    if kind == "tool_call":
        given = as_object(part, lost, path)
        return {"toolUse": {"toolUseId": part["id"], "name": part["name"], "input": given}}
    if kind == "reasoning":
        block = _reasoning(part)
    elif kind in ("blob", "uri", "file"):
        block = write_media(part)
    elif kind.startswith(_OWN):
        block = {name: part[name] for name in part if name == kind.removeprefix(_OWN)}
    if block and _part(block, Lost(), path) == part:
        return block
    lost.add(path, f"{kind[:60]}, which strands has no block for")
    return None


def _reasoning(part: Part) -> dict[str, Any]:
    if part.get("redacted"):
        return {"reasoningContent": {"redactedContent": encoded(str(part.get("encrypted", "")))}}
    own = {"signature": part["signature"]} if part.get("signature") else {}
    return {"reasoningContent": {"reasoningText": {"text": part["content"], **own}}}


def _state(messages: list[Any], conversation: Conversation) -> Any:
    prompt = [
        {"text": part["content"]}
        for part in conversation.system_instructions
        if part["type"] == "text"
    ]
    data = {"messages": messages, **({"system_prompt": prompt} if prompt else {})}
    snapshot = {
        "scope": "agent",
        "schema_version": "1.0",
        "created_at": "1970-01-01T00:00:00.000000Z",
        "data": data,
        "app_data": {},
    }
    name = f"session/{_ANY_AGENT}"
    return {"entries": {name: {"json": snapshot}}, "last": name}


def _place(state: Any, session_id: str, checkpoint_id: str) -> tuple[Any, dict[str, Any]]:
    """Give the snapshot its time; in a view of a storage it has another name."""
    (content,) = state["entries"].values()
    at = datetime.fromtimestamp((uuid.UUID(checkpoint_id).int >> 80) / 1000, UTC)
    snapshot = {**content["json"], "created_at": at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")}
    name = _ANY_AGENT if "/" in session_id else f"session/{_ANY_AGENT}"
    placed = {"entries": {name: {"json": snapshot}}, "last": name}
    return placed, {"native_session_id": session_id}


FORM = Form("strands", _extract, _read, _write, _state, place=_place)
