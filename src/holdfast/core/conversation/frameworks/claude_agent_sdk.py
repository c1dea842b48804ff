"""Claude's transcripts: lines of JSON, each with the uuid of the one before it.

A session is ``{"project_key", "entries", "system"}``.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation import blocks, parts
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.frameworks.claude_entries import (
    is_message,
    is_of,
    linked,
    messages_of,
    placed,
    queued_prompt,
)
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message, Part, as_object

_PROVIDER = "anthropic"
_IMAGES = ("image/png", "image/jpeg", "image/gif", "image/webp")


def _extract(state: Any) -> Native | None:
    if not isinstance(state, Mapping) or not isinstance(state.get("entries"), (list, tuple)):
        return None
    entries = state["entries"]
    messages = messages_of(entries)
    versions = [each["version"] for each in messages if isinstance(each.get("version"), str)]
    return Native(
        messages,
        system=_system(state, entries),
        version=versions[-1] if versions else None,
        provider=_PROVIDER,
    )


def _system(state: Mapping[str, Any], entries: Sequence[Any]) -> list[Part]:
    """Return the system prompt as it was sent last; else the one that the session came with."""
    for entry in reversed(entries):
        attachment = entry.get("attachment") if isinstance(entry, Mapping) else None
        if isinstance(attachment, Mapping) and attachment.get("type") == "prompt_snapshot":
            said = attachment.get("systemPrompt")
            if isinstance(said, (list, tuple)):
                return [parts.text(each) for each in said if isinstance(each, str) and each]
    given = state.get("system")
    return list(given) if isinstance(given, (list, tuple)) else []


# Reading


def _read(messages: Sequence[Any], lost: Lost) -> list[Message]:
    found: list[Message] = []
    for i, entry in enumerate(messages):
        path = f"$.messages[{i}]"
        if not is_message(entry):
            lost.add(path, "is no message of a transcript")
            continue
        if entry.get("type") == "attachment":
            said, role, where = queued_prompt(entry), "user", f"{path}.attachment.prompt"
        else:
            said, role, where = entry["message"].get("content"), entry["type"], f"{path}.message"
        inner = blocks.parts_of(said, lost, where, _PROVIDER)
        answers = [part for part in inner if part["type"] == "tool_call_response"]
        rest = [part for part in inner if part["type"] != "tool_call_response"]
        found += [{"role": "tool", "parts": answers}] if answers else []
        found += [{"role": role, "parts": rest}] if rest or not answers else []
    return found


# Writing


def _write(conversation: Conversation, lost: Lost) -> list[Any]:
    if conversation.system_instructions:
        lost.add("$.system_instructions", "the agent has its own: give them to it")
    found: list[Any] = []
    for i, message in enumerate(conversation.messages):
        path = f"$.messages[{i}]"
        role = "assistant" if message["role"] == "assistant" else "user"
        if message["role"] == "system":
            lost.add(path, "a later system prompt is said by the user, in <system> tags")
        content = [
            block
            for j, part in enumerate(message["parts"])
            for block in _block(_tagged(part, message["role"]), lost, f"{path}.parts[{j}]")
        ]
        if content:
            found.append(_entry(role, content))
    return found


def _tagged(part: Part, role: str) -> Part:
    if role == "system" and part["type"] == "text" and part["content"]:
        return parts.text(f"<system>{part['content']}</system>")
    return part


def _entry(role: str, content: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an entry without what it gets by its place: uuid, parent, session and time."""
    message: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant":
        calls = any(is_of(block, "tool_use") for block in content)
        reason = "tool_use" if calls else "end_turn"
        usage = {"input_tokens": 0, "output_tokens": 0}
        message = {"type": "message", "model": "holdfast", **message}
        message |= {"stop_reason": reason, "stop_sequence": None, "usage": usage}
    return {"type": role, "isSidechain": False, "userType": "external", "message": message}


def _block(part: Part, lost: Lost, path: str) -> Iterator[dict[str, Any]]:
    kind = part["type"]
    if kind == "text":
        if part["content"]:
            yield {"type": "text", "text": part["content"]}
        else:
            lost.add(path, "an empty text, which Claude does not take")
    elif kind == "tool_call":
        arguments = as_object(part, lost, path)
        yield {"type": "tool_use", "id": part["id"], "name": part["name"], "input": arguments}
    elif kind == "tool_call_response":
        yield _result(part, lost, path)
    elif kind == "reasoning":
        yield from _thinking(part, lost, path)
    elif kind in ("blob", "uri", "file"):
        yield from _media(part, lost, path)
    elif (block := _own(part)) is not None:
        yield block
    else:
        lost.add(path, f"a part {kind[:60]}")


def _own(part: Part) -> dict[str, Any] | None:
    """Return a block of Anthropic's that only it has."""
    if not part["type"].startswith(f"{_PROVIDER}_"):
        return None
    block = {**part, "type": part["type"].removeprefix(f"{_PROVIDER}_")}
    return block if blocks.part_of(block, Lost(), "$", _PROVIDER) == part else None


def _result(part: Part, lost: Lost, path: str) -> dict[str, Any]:
    said = part["response"]
    if not isinstance(said, str):
        lost.add(f"{path}.response", "an answer that is no text is JSON text here")
    text = parts.text_of_response(said)
    media = [
        block
        for k, each in enumerate(part.get("parts", []))
        for block in _in_result(each, lost, f"{path}.parts[{k}]")
    ]
    content = [*([{"type": "text", "text": text}] if text else []), *media] if media else text
    failed = {"is_error": True} if part.get("is_error") else {}
    return {"type": "tool_result", "tool_use_id": part["id"], "content": content, **failed}


def _in_result(part: Part, lost: Lost, path: str) -> Iterator[dict[str, Any]]:
    if part["type"] in ("blob", "uri", "file"):
        yield from _media(part, lost, path)
    elif (block := _own(part)) is not None:
        yield block
    else:
        lost.add(path, f"a part {part['type'][:60]} in an answer")


def _thinking(part: Part, lost: Lost, path: str) -> Iterator[dict[str, Any]]:
    """Give what Claude thought back to it; what others thought, or nobody signed, it refuses."""
    own = {key: value for key, value in part.items() if key not in ("type", "provider")}
    if part.get("provider") == _PROVIDER and set(own) == {"content", "signature"}:
        thought = {"thinking": own["content"], "signature": own["signature"]}
        yield {"type": "thinking", **thought}
    elif (
        part.get("provider") == _PROVIDER
        and set(own) == {"content", "encrypted", "redacted"}
        and not own["content"]
    ):
        yield {"type": "redacted_thinking", "data": own["encrypted"]}
    else:
        lost.add(path, "what a model thought goes to no other, and to its own only if signed")


def _media(part: Part, lost: Lost, path: str) -> Iterator[dict[str, Any]]:
    modality, mime_type = part["modality"], part.get("mime_type")
    if part["type"] == "blob":
        known = {"image": _IMAGES, "document": ("application/pdf",)}.get(modality, ())
        if mime_type in known:
            source = {"type": "base64", "media_type": mime_type, "data": part["content"]}
            yield {"type": modality, "source": source}
            return
        lost.add(path, f"{modality} of type {mime_type}, which Claude does not take")
        return
    if modality not in ("image", "document") or mime_type is not None:
        if modality not in ("image", "document"):
            lost.add(path, f"{modality}, which Claude does not take")
            return
        lost.add(f"{path}.mime_type", "Claude finds out for itself")
    if part["type"] == "uri":
        yield {"type": modality, "source": {"type": "url", "url": part["uri"]}}
    else:
        yield {"type": modality, "source": {"type": "file", "file_id": part["file_id"]}}


# The state that the adapter goes on from


def _state(messages: list[Any], conversation: Conversation) -> Any:
    return {
        "project_key": None,
        "entries": linked(messages),
        "system": conversation.system_instructions,
    }


def _place(state: Any, session_id: str, checkpoint_id: str) -> tuple[Any, dict[str, Any]]:
    """Give what was written here a session and a time."""
    seconds = (uuid.UUID(checkpoint_id).int >> 80) / 1000
    return {**state, "entries": placed(state["entries"], session_id, seconds)}, {}


FORM = Form("claude_agent_sdk", _extract, _read, _write, _state, place=_place)
