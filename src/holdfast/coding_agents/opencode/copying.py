"""Copies a conversation of opencode: the same words and order, under ids of its own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.coding_agents.opencode import ids
from holdfast.coding_agents.opencode.entries import Conversation, Message
from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError

_NAMES_IDS = re.compile(r"id|.*ID|.*_id")
_OF_THE_OLD = ("parentID", "share", "revert")
"""What is not true of a copy: whose subagent it was, where it is shared, what was taken back."""
_REWOUND = " (rewound)"


def copied(
    conversation: Conversation, session_id: str, folder: Path, milliseconds: int
) -> dict[str, Any]:
    """Return a conversation as ``opencode import`` takes it, with ids of its own throughout."""
    session = conversation.session or {}
    names = ids.renamed(_ids(conversation.messages))
    messages = [_renamed_message(each, names, session_id) for each in conversation.messages]
    title = session.get("title")
    title = title if isinstance(title, str) else "Rewound"
    if messages and not title.endswith(_REWOUND):
        title += _REWOUND
    times = session.get("time")
    created = times.get("created") if isinstance(times, Mapping) else None
    info = {
        "slug": "rewound",
        "version": "1.18.33",
        "projectID": "global",  # opencode puts its own in
        **{name: value for name, value in session.items() if name not in _OF_THE_OLD},
        "id": session_id,
        "directory": str(folder),
        "title": title,
        "time": {"created": created or milliseconds, "updated": milliseconds},
    }
    return {"info": info, "messages": messages}


def _ids(messages: Iterable[Message]) -> Iterator[str]:
    """Give the ids of messages, parts and attachments."""
    for message in messages:
        for each in (message["info"], *message["parts"], *_attachments(message)):
            if not ids.is_known(each.get("id")):
                raise TranscriptError(
                    f"the id {brief(each.get('id'))} is not made as opencode makes them: no copy "
                    "of the conversation would keep its order"
                )
            yield each["id"]


def _attachments(message: Message) -> Iterator[Mapping[str, Any]]:
    for part in message["parts"]:
        state = part.get("state")
        found = state.get("attachments") if isinstance(state, Mapping) else None
        if isinstance(found, (list, tuple)):
            yield from (each for each in found if isinstance(each, Mapping))


def _renamed_message(message: Message, names: Mapping[str, str], session_id: str) -> dict[str, Any]:
    return {
        **message,
        "info": _renamed(message["info"], names, session_id),
        "parts": [_renamed_part(each, names, session_id) for each in message["parts"]],
    }


def _renamed_part(
    part: Mapping[str, Any], names: Mapping[str, str], session_id: str
) -> dict[str, Any]:
    renamed = _renamed(part, names, session_id)
    state = part.get("state")
    if isinstance(state, Mapping) and isinstance(state.get("attachments"), (list, tuple)):
        attachments = [
            _renamed(each, names, session_id) if isinstance(each, Mapping) else each
            for each in state["attachments"]
        ]
        renamed["state"] = {**state, "attachments": attachments}
    return renamed


def _renamed(value: Mapping[str, Any], names: Mapping[str, str], session_id: str) -> dict[str, Any]:
    """Return an object with new ids; what was said and done in it stays as it is."""
    found = {
        name: names.get(each, each)
        if isinstance(each, str) and _NAMES_IDS.fullmatch(name)
        else each
        for name, each in value.items()
    }
    return {**found, "sessionID": session_id}
