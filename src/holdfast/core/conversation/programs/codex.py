"""Codex's rollouts: items of the Responses API among records of other kinds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.conversation.forms import Native
from holdfast.core.conversation.frameworks import openai_agents

_BY_PROGRAM = "<"
"""How messages in a user's name begin that are Codex's own: its environment, an interruption."""


def _extract(conversation: Any) -> Native | None:
    entries = conversation.get("entries") if isinstance(conversation, Mapping) else None
    if not isinstance(entries, Sequence) or isinstance(entries, str):
        return None
    return Native(messages=list(_said(entries)), provider=openai_agents.PROVIDER)


def _said(entries: Sequence[Any]) -> Iterator[Any]:
    """Yield what was said and done; a conversation that was compacted is told in full."""
    for entry in entries:
        item = entry.get("payload") if isinstance(entry, Mapping) else None
        if isinstance(item, Mapping) and entry.get("type") == "response_item":
            if item.get("type") == "message" and _is_by_program(item):
                continue
            yield _plain(item)


def _is_by_program(item: Mapping[str, Any]) -> bool:
    content = item.get("content")
    first = content[0] if isinstance(content, Sequence) and content else None
    text = first.get("text") if isinstance(first, Mapping) else None
    is_marked = isinstance(text, str) and text.startswith(_BY_PROGRAM)
    return item.get("role") == "developer" or (item.get("role") == "user" and is_marked)


def _plain(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call of a tool that takes text as one of a tool that takes arguments."""
    if item.get("type") == "custom_tool_call":
        called = {name: item.get(name) for name in ("call_id", "name")}
        return {"type": "function_call", **called, "arguments": {"input": item.get("input")}}
    if item.get("type") == "custom_tool_call_output":
        return {**item, "type": "function_call_output"}
    return {name: value for name, value in item.items() if name != "namespace"}


FORM = replace(openai_agents.FORM, framework="codex", extract=_extract)
