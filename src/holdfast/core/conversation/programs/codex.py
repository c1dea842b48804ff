"""Codex's rollouts: items of the Responses API among records of other kinds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.conversation.forms import Native
from holdfast.core.conversation.frameworks import openai_agents

_MARKED = re.compile(r"<([a-z_]+)>.*</\1>", re.DOTALL)
"""How messages in a user's name look that are Codex's own: its environment, an interruption."""


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
    """Return whether Codex itself says something: newer ones tell whose each part is."""
    if item.get("role") != "user":
        return item.get("role") == "developer"
    about = item.get("internal_chat_message_metadata_passthrough")
    told = about.get("content_item_metadata") if isinstance(about, Mapping) else None
    origins = [_at(each, "provenance", "type") for each in told] if isinstance(told, list) else []
    if any(origins):
        return "user" not in origins
    content = item.get("content")
    texts = [_at(each, "text") for each in content] if isinstance(content, list) else []
    return bool(texts) and all(isinstance(each, str) and _MARKED.match(each) for each in texts)


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _plain(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a call of a tool that takes text as one of a tool that takes arguments."""
    if item.get("type") == "custom_tool_call":
        called = {name: item.get(name) for name in ("call_id", "name")}
        return {"type": "function_call", **called, "arguments": {"input": item.get("input")}}
    if item.get("type") == "custom_tool_call_output":
        return {**item, "type": "function_call_output"}
    return {name: value for name, value in item.items() if name != "namespace"}


FORM = replace(openai_agents.FORM, framework="codex", extract=_extract)
