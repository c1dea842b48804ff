"""A conversation of opencode as entries: the session first, then its messages.

A message is ``{"info": …, "parts": […]}``, as opencode itself exports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError

Message = Mapping[str, Any]
Part = Mapping[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A session and its messages, whose shape is as known."""

    session: Mapping[str, Any] | None
    messages: list[Message]

    @property
    def entries(self) -> list[Any]:
        """The same, as entries."""
        first = [] if self.session is None else [{"session": self.session}]
        return [*first, *self.messages]


def entries_of(exported: Any) -> list[Any] | None:
    """Return what ``opencode export`` gives, as entries; None if it is no such thing.

    What the user took back in opencode itself is still there until the next prompt, and left out.
    """
    if not isinstance(exported, Mapping) or not isinstance(exported.get("info"), Mapping):
        return None
    messages = exported.get("messages")
    if not isinstance(messages, list):
        return None
    revert = exported["info"].get("revert")
    if isinstance(revert, Mapping):
        messages = _without(messages, revert.get("messageID"), revert.get("partID"))
    return [{"session": exported["info"]}, *messages]


def _without(messages: list[Any], message_id: Any, part_id: Any) -> list[Any]:
    ids = [each["info"].get("id") for each in _checked(messages)]
    if message_id not in ids:
        return messages
    at = ids.index(message_id)
    parts = messages[at]["parts"]
    of_parts = [each["id"] for each in parts]
    if part_id not in of_parts:
        return messages[:at]
    return [*messages[:at], {**messages[at], "parts": parts[: of_parts.index(part_id)]}]


def conversation_of(entries: Sequence[Any]) -> Conversation:
    """Return entries as a conversation; what is not as known is refused with what was found."""
    session = None
    rest = list(entries)
    if rest and isinstance(rest[0], Mapping) and "session" in rest[0]:
        session = rest.pop(0)["session"]
        if not isinstance(session, Mapping):
            raise _unknown("the session", session)
    return Conversation(session, _checked(rest))


def _checked(messages: Sequence[Any]) -> list[Message]:
    for at, each in enumerate(messages):
        where = f"message {at}"
        if not isinstance(each, Mapping):
            raise _unknown(where, each)
        info, parts = each.get("info"), each.get("parts")
        if not isinstance(info, Mapping) or not isinstance(info.get("id"), str):
            raise _unknown(f"the info of {where}", info)
        if not isinstance(parts, (list, tuple)):
            raise _unknown(f"the parts of {where}", parts)
        for part in parts:
            if not isinstance(part, Mapping) or not isinstance(part.get("id"), str):
                raise _unknown(f"a part of {where}", part)
    return list(messages)


def _unknown(what: str, found: Any) -> TranscriptError:
    return TranscriptError(
        f"the conversation is not as opencode is known to keep it: {what} is {brief(found)}"
    )
