"""What was said in a conversation of a coding agent, as people read it.

Entries of every program are recognised by their shape; what is no message is left out. This is for
looking at: what is written for a program to go on from is never made of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.core.conversation.said import Said, messages_in

_OWN_WORDS = ("<environment_context", "<user_instructions", "<system-reminder", "# AGENTS.md")
"""What programs say in the user's place."""
_CODEX_CALLS = ("custom_tool_call", "local_shell_call")


def messages_of(entries: Sequence[Any]) -> list[Said]:
    """Return the messages of a conversation, in their order."""
    return messages_in("custom", [each for entry in entries for each in _messages(entry)])


def conversation_of(state: Any) -> list[Any] | None:
    """Return the entries that the state of a recorded checkpoint holds; None if it is no such."""
    kept = state.get("conversation") if isinstance(state, Mapping) else None
    if not isinstance(kept, Mapping) or "program" not in state:
        return None
    entries = kept.get("entries")
    return list(entries) if isinstance(entries, (list, tuple)) else None


def prompts_in(messages: Sequence[Said]) -> int:
    """Return how many of some messages are prompts of the user."""
    return sum(
        each.role == "user" and all(part["type"] != "tool_call_response" for part in each.parts)
        for each in messages
    )


def _messages(entry: Any) -> Iterator[Mapping[str, Any]]:
    if not isinstance(entry, Mapping) or entry.get("isMeta") or entry.get("isSidechain"):
        return
    for key, read in (("message", _plain), ("payload", _of_codex), ("info", _of_opencode)):
        inner = entry.get(key)
        if isinstance(inner, Mapping):
            yield from read(inner, entry)
            return
    if entry.get("type") in ("user", "gemini"):
        yield from _of_gemini(entry)


def _plain(message: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    if isinstance(message.get("role"), str) and not _is_own(message.get("content")):
        yield message


def _is_own(content: Any) -> bool:
    first = content[0] if isinstance(content, list) and content else content
    text = first.get("text") if isinstance(first, Mapping) else first
    return isinstance(text, str) and text.lstrip().startswith(_OWN_WORDS)


def _of_codex(payload: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    kind = payload.get("type")
    if entry.get("type") != "response_item":
        return
    if kind == "message" and payload.get("role") in ("user", "assistant"):
        yield from _plain(payload, entry)
    elif kind in ("function_call", "function_call_output"):
        yield payload
    elif kind in _CODEX_CALLS:
        asked = payload.get("input", payload.get("action"))
        yield {**payload, "type": "function_call", "arguments": asked}
    elif kind == "custom_tool_call_output":
        yield {**payload, "type": "function_call_output"}


def _of_gemini(entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    role = "user" if entry["type"] == "user" else "assistant"
    made = entry.get("toolCalls")
    calls = [each for each in made if isinstance(each, Mapping)] if isinstance(made, list) else []
    if _is_own(entry.get("content")):
        return
    yield {"role": role, "content": entry.get("content") or "", "tool_calls": calls}
    for call in calls:
        if call.get("result") is not None:
            yield {"role": "tool", "name": call.get("name"), "content": call["result"]}


def _of_opencode(info: Mapping[str, Any], entry: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    given = entry.get("parts")
    parts = [each for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    texts = [
        {"type": "text", "text": each["text"]}
        for each in parts
        if each.get("type") == "text" and isinstance(each.get("text"), str)
    ]
    tools = [(each, each.get("state")) for each in parts if each.get("type") == "tool"]
    calls = [
        {"id": part.get("callID"), "name": part.get("tool"), "arguments": state.get("input")}
        for part, state in tools
        if isinstance(state, Mapping)
    ]
    if texts or calls:
        yield {"role": info.get("role"), "content": texts, "tool_calls": calls}
    for part, state in tools:
        if isinstance(state, Mapping) and (said := state.get("output", state.get("error"))):
            yield {"role": "tool", "name": part.get("tool"), "content": said}
