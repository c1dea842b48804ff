"""A chat of Gemini CLI: a log of records, and the messages that they come to.

A message is written anew under its id whenever something was added to it; ``$set`` changes what is
said of the chat, or all messages at once, and ``$rewindTo`` takes messages back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError

MARK = "$holdfast"
"""Names the one record that is ours: it stands last, and says which call a checkpoint is of."""
_NOT_SAID = ("/", "?", "<session_context>", "<hook_context>")
"""How what a user did not say to the model begins."""

Message = dict[str, Any]


@dataclass
class Chat:
    """What records come to."""

    about: dict[str, Any] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    """By id, in their order."""


def chat_of(entries: Iterable[Any]) -> Chat:
    """Return what the records of a chat come to; a TranscriptError if they are not as known."""
    chat = Chat()
    for entry in entries:
        if not isinstance(entry, Mapping) or MARK in entry:
            continue  # a line that is no record is skipped by the program too
        if isinstance(entry.get("$rewindTo"), str):
            _rewind(chat, entry["$rewindTo"])
        elif isinstance(entry.get("id"), str):
            _add(chat, [entry])
        elif isinstance(entry.get("$set"), Mapping):
            new = dict(entry["$set"])
            if isinstance(messages := new.pop("messages", None), list):
                chat.messages.clear()
                _add(chat, messages)
            chat.about.update(new)
        elif isinstance(entry.get("sessionId"), str):
            new = dict(entry)
            if isinstance(messages := new.pop("messages", None), list):
                _add(chat, messages)
            chat.about.update(new)
        elif unknown := next((key for key in entry if str(key).startswith("$")), None):
            raise TranscriptError(
                f"the chat has a record {brief(str(unknown), 60)}, which is not known: Gemini CLI "
                "may be newer than this Holdfast"
            )
    if not isinstance(chat.about.get("sessionId"), str):
        raise TranscriptError(
            f"this is no chat of Gemini CLI: no sessionId with {len(chat.messages)} messages"
        )
    return chat


def _rewind(chat: Chat, to: str) -> None:
    ids = list(chat.messages)
    for each in ids[ids.index(to) if to in ids else 0 :]:
        del chat.messages[each]


def _add(chat: Chat, messages: Iterable[Any]) -> None:
    for each in messages:
        if isinstance(each, Mapping) and isinstance(each.get("id"), str):
            chat.messages[each["id"]] = dict(each)


def messages_in(entries: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield every message that records tell of, the newest first, in all its versions."""
    for entry in reversed(entries):
        if not isinstance(entry, Mapping):
            continue
        if isinstance(entry.get("id"), str):
            yield entry
            continue
        for holder in (entry.get("$set"), entry):
            messages = holder.get("messages") if isinstance(holder, Mapping) else None
            if isinstance(messages, list):
                yield from (
                    each
                    for each in reversed(messages)
                    if isinstance(each, Mapping) and isinstance(each.get("id"), str)
                )


def calls_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the tool calls of a message; a TranscriptError if they are not as known."""
    calls = message.get("toolCalls")
    if calls is None:
        return []
    if not isinstance(calls, list) or not all(
        isinstance(each, Mapping) and isinstance(each.get("id"), str) for each in calls
    ):
        raise TranscriptError(
            f"the tool calls of message {brief(str(message.get('id')), 60)} are not as known "
            f"({brief(calls, 80)})"
        )
    return calls


def parts_of(content: Any) -> list[Any]:
    """Return a content as the parts it is of."""
    if content is None or content == "":
        return []
    return content if isinstance(content, list) else [content]


def text_in(content: Any) -> str:
    """Return the text of a content."""
    parts = (each.get("text") if isinstance(each, Mapping) else each for each in parts_of(content))
    return "".join(each for each in parts if isinstance(each, str))


def is_said(message: Mapping[str, Any]) -> bool:
    """Return whether a message is of the conversation: without one, the program has no session."""
    content = message.get("content")
    if message.get("type") == "user":
        text = text_in(content).strip()
        return not text.startswith(_NOT_SAID) if text else bool(_other_parts(content))
    if message.get("type") == "gemini":
        return bool(parts_of(content) or message.get("toolCalls") or message.get("thoughts"))
    return False


def _other_parts(content: Any) -> list[Any]:
    return [each for each in parts_of(content) if isinstance(each, Mapping) and "text" not in each]


def response_id(part: Any) -> str | None:
    """Return which call a part is the response of; None if it is of none."""
    response = part.get("functionResponse") if isinstance(part, Mapping) else None
    found = response.get("id") if isinstance(response, Mapping) else None
    return found if isinstance(found, str) else None


def settled(messages: Iterable[Message]) -> list[Message]:
    """Return messages in which each result stands once: with its call.

    The program also writes results as messages of the user, and after a resume those of all calls
    of a message into each of them; when it resumes, it sends all that.
    """
    messages = list(messages)
    answered = {
        call["id"] for each in messages for call in calls_of(each) if call.get("result") is not None
    }
    kept = []
    for each in messages:
        if each.get("type") == "gemini" and "toolCalls" in each:
            calls = [_with_own_result(call) for call in calls_of(each)]
            kept.append({**each, "toolCalls": calls})
        elif each.get("type") == "user" and any(
            response_id(part) in answered for part in parts_of(each.get("content"))
        ):
            said = parts_of(each["content"])
            rest = [part for part in said if response_id(part) not in answered]
            if rest:
                kept.append({**each, "content": rest})
        else:
            kept.append(each)
    return kept


def _with_own_result(call: Mapping[str, Any]) -> dict[str, Any]:
    """Return a call with its own response alone, and what belongs to that: it stands behind it."""
    result = call.get("result")
    if not isinstance(result, list):
        return dict(call)
    own, owner = [], call["id"]
    for part in result:
        owner = response_id(part) or owner
        if owner == call["id"]:
            own.append(part)
    return {**call, "result": own}
