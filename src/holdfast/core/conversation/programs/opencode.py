"""opencode's messages of parts, read as items of the Responses API, which say the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.conversation.forms import Native
from holdfast.core.conversation.frameworks import openai_agents

Item = dict[str, Any]


def _extract(conversation: Any) -> Native | None:
    entries = conversation.get("entries") if isinstance(conversation, Mapping) else None
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return None
    return Native(messages=list(_said(entries)))


def _said(entries: Sequence[Any]) -> Iterator[Item]:
    """Yield what was said and done; the session itself, the first entry, says nothing."""
    for entry in entries:
        info = entry.get("info") if isinstance(entry, Mapping) else None
        parts = entry.get("parts") if isinstance(info, Mapping) else None
        if not isinstance(info, Mapping) or not isinstance(parts, Sequence):
            continue
        role = "user" if info.get("role") == "user" else "assistant"
        for part in parts:
            if isinstance(part, Mapping):
                yield from _items(role, part)


def _items(role: str, part: Mapping[str, Any]) -> Iterator[Item]:
    kind, text = part.get("type"), part.get("text")
    if kind == "text" and isinstance(text, str) and text:
        named = "input_text" if role == "user" else "output_text"
        yield _message(role, {"type": named, "text": text})
    elif kind == "reasoning" and isinstance(text, str) and text:
        yield {"type": "reasoning", "summary": [{"type": "summary_text", "text": text}]}
    elif kind == "file" and str(part.get("mime")).startswith("image/"):
        yield _message(role, {"type": "input_image", "image_url": part.get("url")})
    elif kind == "tool":
        yield from _call(part)


def _message(role: str, content: Item) -> Item:
    return {"type": "message", "role": role, "content": [content]}


def _call(part: Mapping[str, Any]) -> Iterator[Item]:
    state = part.get("state")
    state = state if isinstance(state, Mapping) else {}
    call = {"call_id": part.get("callID"), "name": part.get("tool")}
    yield {"type": "function_call", **call, "arguments": state.get("input")}
    if state.get("status") in ("completed", "error"):
        said = state.get("output" if state["status"] == "completed" else "error")
        yield {"type": "function_call_output", "call_id": call["call_id"], "output": said}


FORM = replace(openai_agents.FORM, framework="opencode", extract=_extract)
