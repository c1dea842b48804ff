"""Gemini CLI's chats, as the contents that its model is sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from holdfast.core.conversation.forms import Native
from holdfast.core.conversation.frameworks import google_adk
from holdfast.core.conversation.programs.gemini_chat import (
    MARK,
    Message,
    calls_of,
    chat_of,
    is_said,
    parts_of,
    settled,
)
from holdfast.errors import TranscriptError


def _extract(conversation: Any) -> Native | None:
    entries = conversation.get("entries")
    if not isinstance(entries, (list, tuple)):
        return None
    try:
        chat = chat_of(entries)
        messages = settled(_with_mark(list(chat.messages.values()), entries))
    except TranscriptError:
        return None
    contents = [each for message in filter(is_said, messages) for each in _contents(message)]
    return Native(contents, provider="google")


def _with_mark(messages: list[Message], entries: Sequence[Any]) -> list[Message]:
    """Return messages of which the last has the call that had just ended, if it has none yet."""
    last = entries[-1] if entries else None
    its = last.get(MARK) if isinstance(last, Mapping) else None
    if not isinstance(its, Mapping) or not messages or messages[-1].get("id") != its.get("message"):
        return messages
    if calls_of(messages[-1]):
        return messages
    own = {"id": f"{its.get('name')}_{its.get('message')}", "name": its.get("name")}
    answer = {"functionResponse": {**own, "response": its.get("response")}}
    call = {**own, "args": its.get("args"), "result": [answer]}
    return [*messages[:-1], {**messages[-1], "toolCalls": [call]}]


def _contents(message: Message) -> Iterator[dict[str, Any]]:
    """Yield what a message is to the model: the results of its calls are the user's answer."""
    said = [
        {"text": each} if isinstance(each, str) else each
        for each in parts_of(message.get("content"))
    ]
    if message.get("type") == "user":
        yield {"role": "user", "parts": said}
        return
    calls = calls_of(message)
    if not any(isinstance(each, Mapping) and "functionCall" in each for each in said):
        said += [
            {"functionCall": {k: call.get(k) for k in ("id", "name", "args")}} for call in calls
        ]
    thoughts = message.get("thoughts")
    yield {
        "role": "model",
        "parts": [*map(_thought, thoughts if isinstance(thoughts, list) else []), *said],
    }
    answers = [part for call in calls for part in _answers(call)]
    if answers:
        yield {"role": "user", "parts": answers}


def _thought(given: Any) -> dict[str, Any]:
    thought = given if isinstance(given, Mapping) else {}
    said = [each for each in (thought.get("subject"), thought.get("description")) if each]
    return {"text": ": ".join(map(str, said)), "thought": True}


def _answers(call: Mapping[str, Any]) -> Iterator[Any]:
    result = call.get("result")
    if isinstance(result, str):
        result = [{"functionResponse": {"response": {"output": result}}}]
    for part in result if isinstance(result, list) else []:
        answer = part.get("functionResponse") if isinstance(part, Mapping) else None
        if not isinstance(answer, Mapping):
            yield part
            continue
        said = answer.get("response")
        if isinstance(said, Mapping) and list(said) == ["output"]:
            said = {"result": said["output"]}
        own = {"id": call.get("id"), "name": call.get("name"), "response": said}
        yield {"functionResponse": {**answer, **own}}


FORM = replace(google_adk.FORM, framework="gemini-cli", extract=_extract)
