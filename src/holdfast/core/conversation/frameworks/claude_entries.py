"""Entries of Claude's transcripts: which are messages, and how they hang together.

An answer of the model is one entry for each of its blocks, and each result of a tool follows the
entry of its call: so the way from the last entry back to the first has sides.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

Entry = Mapping[str, Any]

_NAMES = uuid.UUID("6f1d0c38-6a0e-5d0a-9d5f-5b5f2c7c9a11")
"""Under which the uuids are made of entries that Claude's program did not write."""
SYNTHETIC = "<synthetic>"
"""The model of what the program itself wrote in the model's place."""


def made_uuid(*names: str) -> str:
    """Return the uuid of an entry that is made here: the same for the same names."""
    return str(uuid.uuid5(_NAMES, "\x00".join(names)))


def content_of(entry: Entry) -> list[Any]:
    """Return the blocks of an entry; a text is one block."""
    message = entry.get("message")
    content = message.get("content") if isinstance(message, Mapping) else None
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, (list, tuple)) else []


def results_in(entry: Entry) -> list[str]:
    """Return the ids of the calls that an entry answers."""
    return _ids(entry, "user", "tool_result", "tool_use_id")


def calls_in(entry: Entry) -> list[str]:
    """Return the ids of the calls that an entry asks for."""
    return _ids(entry, "assistant", "tool_use", "id")


def _ids(entry: Entry, kind: str, block_type: str, field: str) -> list[str]:
    if entry.get("type") != kind:
        return []
    found = [b.get(field) for b in content_of(entry) if is_of(b, block_type)]
    return [each for each in found if isinstance(each, str)]


def is_of(block: Any, kind: str) -> bool:
    return isinstance(block, Mapping) and block.get("type") == kind


def result_content(response: Any) -> Any:
    """Return what a tool gave, as its hook tells it, as the content of a result."""
    if isinstance(response, str):
        return response
    if isinstance(response, list) and all(_is_block(each) for each in response):
        return response
    if isinstance(response, Mapping) and isinstance(response.get("stdout"), str):  # of Bash
        texts = (response["stdout"], response.get("stderr"))
        return "\n".join(each for each in texts if isinstance(each, str) and each)
    return json.dumps(response, ensure_ascii=False)


def _is_block(value: Any) -> bool:
    return is_of(value, "text") or is_of(value, "image")


def is_message(entry: Any) -> bool:
    """Return whether an entry is something that the user, the model or a tool said."""
    if not isinstance(entry, Mapping):
        return False
    if entry.get("type") == "attachment":  # what the user said while the model was at work
        return queued_prompt(entry) is not None
    message = entry.get("message")
    if entry.get("type") not in ("user", "assistant") or not isinstance(message, Mapping):
        return False
    said_by_program = entry.get("isMeta") is True or entry.get("isApiErrorMessage") is True
    return not said_by_program and message.get("model") != SYNTHETIC


def queued_prompt(entry: Entry) -> Any:
    attachment = entry.get("attachment")
    if not isinstance(attachment, Mapping) or attachment.get("type") != "queued_command":
        return None
    return attachment.get("prompt")


def messages_of(entries: Sequence[Any]) -> list[Entry]:
    """Return the entries that the model is sent when the session goes on, in their order."""
    every = [entry for entry in entries if isinstance(entry, Mapping)]
    every = [entry for entry in every if _is_text_or_none(entry.get("uuid"))]
    if not all(entry.get("isSidechain") for entry in every if "isSidechain" in entry):
        every = [entry for entry in every if not entry.get("isSidechain")]
    on_way = _way(every)
    answers = {answer_of(each) for each in every if _is_on(each, on_way, "assistant")} - {None}
    beside = [
        each
        for each in every
        if _is_on(each, on_way, "assistant")
        or (each.get("type") == "assistant" and answer_of(each) in answers)
    ]
    called = {call for each in beside for call in calls_in(each)}
    kept = {id(each) for each in beside}
    return [
        each
        for each in every
        if is_message(each)
        and (id(each) in kept or each.get("uuid") in on_way or called & set(results_in(each)))
    ]


def _is_on(entry: Entry, way: set[Any], kind: str) -> bool:
    is_whole = entry.get("type") == kind and isinstance(entry.get("message"), Mapping)
    return is_whole and entry.get("uuid") in way


def answer_of(entry: Entry) -> str | None:
    """Return the id of the model's answer that an entry is a block of."""
    message = entry.get("message")
    found = message.get("id") if isinstance(message, Mapping) else None
    return found if isinstance(found, str) else None


def _way(entries: Sequence[Entry]) -> set[Any]:
    """Return the uuids on the way from the last entry back to the first, or to a summary."""
    places = {entry["uuid"]: i for i, entry in enumerate(entries) if _has_uuid(entry)}
    at = max(places.values(), default=-1)
    way: set[Any] = set()
    while at >= 0:
        own, parent = entries[at]["uuid"], entries[at].get("parentUuid")
        if own in way:  # damaged: it leads to itself
            break
        way.add(own)
        if parent is None:
            break
        # Where one is missing, what was written before it is what came before.
        before = (i for i in range(at - 1, -1, -1) if _has_uuid(entries[i]))
        is_known = isinstance(parent, str) and parent in places
        at = places[parent] if is_known else next(before, -1)
    return way


def _has_uuid(entry: Entry) -> bool:
    return isinstance(entry.get("uuid"), str)


def _is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def linked(messages: Sequence[Any]) -> list[Any]:
    """Return entries of which each new one follows the one before; those of a transcript stay."""
    found: list[Any] = []
    before: str | None = None
    for entry in messages:
        own = entry.get("uuid")
        if not isinstance(own, str):
            own = made_uuid(before or "", json.dumps(entry, sort_keys=True, default=str))
            entry = {**entry, "parentUuid": before, "uuid": own}
            if entry["type"] == "assistant":
                made_id = f"msg_{own.replace('-', '')[:24]}"
                entry["message"] = {"id": made_id, **entry["message"]}
        found.append(entry)
        before = own
    return found


def placed(entries: Sequence[Any], session_id: str, seconds: float) -> list[dict[str, Any]]:
    """Return entries of which those that are new have a session and a time."""
    now = datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
    own = {"timestamp": now.replace("+00:00", "Z"), "sessionId": session_id}
    return [{**own, **entry} for entry in entries]


def resumable(entries: Sequence[Any], session_id: str) -> list[Any]:
    """Return entries as Claude's program takes them for those of a session.

    Of a fork they name the session that they were said in; and what came back from another
    framework lacks some of the entries that others follow.
    """
    known = {entry["uuid"] for entry in entries if _has_uuid(entry)}
    found: list[Any] = []
    before: str | None = None
    for entry in entries:
        changes: dict[str, Any] = {}
        if entry.get("sessionId", session_id) != session_id:
            changes["sessionId"] = session_id
        if entry.get("parentUuid") is not None and entry["parentUuid"] not in known:
            changes["parentUuid"] = before
        found.append({**entry, **changes} if changes else entry)
        before = entry["uuid"] if _has_uuid(entry) else before
    return found
