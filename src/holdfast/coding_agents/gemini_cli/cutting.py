"""Cuts a chat of Gemini CLI behind a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.coding_agents.gemini_cli.calls import Mark, claimed, mark_of, open_message
from holdfast.coding_agents.transcript import Point
from holdfast.core.conversation.programs.gemini_chat import (
    Chat,
    Message,
    calls_of,
    is_said,
    messages_in,
)

_SUBAGENTS = (
    "this step was a subagent's, whose own conversation is not gone back to: the main agent's is "
    "from before it was given the task"
)
_NOT_WRITTEN = "Gemini CLI never wrote the result of this call: it is as the hook was told it"
_NOT_KNOWN = "Gemini CLI never wrote the result of this call: the conversation ends before it"


def after_call(chat: Chat, point: Point, later: Iterator[Sequence[Any]]) -> str | None:
    """Let a chat end behind the call of a point; return what there is to note about that.

    Calls of the same message that ended later are left out, as if they had not been made.
    """
    its = mark_of(point.entries)
    if its is None:
        last = open_message(point.entries) or {}
        its = {"message": last.get("id"), "name": point.tool, "args": point.input}
    message = chat.messages.get(str(its.get("message")))
    if message is None:
        return _NOT_KNOWN
    whole, marks = _found_later(message, [its], later)
    if whole is None:
        made, note = _as_told(message, its)
        _put(chat, made)
        return note
    own, *others = claimed(calls_of(whole), marks)
    _put(chat, without_calls(whole, {each for each in others if each is not None}))
    return _SUBAGENTS if own is None else None


def _found_later(
    message: Message, marks: list[Mark], later: Iterator[Sequence[Any]]
) -> tuple[Mapping[str, Any] | None, list[Mark]]:
    """Return the message with its calls, and the marks of those that ended on the way there."""
    if calls_of(message):
        return message, marks
    for entries in later:
        versions = (each for each in messages_in(entries) if each["id"] == message["id"])
        whole = next(filter(calls_of, versions), None)
        if whole is not None:
            return whole, marks
        its = mark_of(entries)
        if its is not None and its.get("message") == message["id"]:
            marks.append(its)
    return None, marks


def _as_told(message: Message, its: Mark) -> tuple[Message, str]:
    """Return a message with the one call that the hook was told of, and what to note."""
    name, args, response = its.get("name"), its.get("args"), its.get("response")
    if not (isinstance(name, str) and isinstance(args, Mapping) and isinstance(response, Mapping)):
        return message, _NOT_KNOWN
    call_id = f"{name}_{message['id']}"
    call = {
        "id": call_id,
        "name": name,
        "args": args,
        "result": [{"functionResponse": {"id": call_id, "name": name, "response": response}}],
        "status": "error" if "error" in response else "success",
        "timestamp": message.get("timestamp"),
    }
    return {**message, "toolCalls": [call]}, _NOT_WRITTEN


def _put(chat: Chat, message: Message) -> None:
    """Put a message in its place, or nothing if nothing is left of it."""
    if is_said(message):
        chat.messages[message["id"]] = message
    else:
        chat.messages.pop(message["id"])


def without_calls(message: Mapping[str, Any], ids: set[str]) -> Message:
    """Return a message without some of its calls."""
    kept = dict(message)
    kept["toolCalls"] = [each for each in calls_of(message) if each["id"] not in ids]
    if isinstance(message.get("content"), list):
        kept["content"] = [each for each in message["content"] if _call_id(each) not in ids]
    return kept


def _call_id(part: Any) -> str | None:
    call = part.get("functionCall") if isinstance(part, Mapping) else None
    found = call.get("id") if isinstance(call, Mapping) else None
    return found if isinstance(found, str) else None
