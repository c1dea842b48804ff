"""From a conversation to the messages of a framework, and back to those that it had before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.conversation.checking import problems_of
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message
from holdfast.core.conversation.reading import read


@dataclass(frozen=True)
class Written:
    """A conversation as a framework has it."""

    messages: list[Any]
    lost: list[str]
    """What that framework cannot hold of it."""
    originals: int = 0
    """How many of the messages are those that the framework had before."""


def written(form: Form, conversation: Conversation, originals: Sequence[Any] = ()) -> Written:
    """Return the native messages of a conversation.

    ``originals`` are messages of the same framework that it may begin with, as it does where it
    comes back: as many of them as say what the conversation begins with are taken as they are.
    """
    taken, said = beginning(form, conversation, originals)
    lost = Lost(first=said)
    rest = replace(conversation, messages=conversation.messages[said:])
    messages = form.write(rest, lost) if rest.messages or not said else []
    return Written([*originals[:taken], *messages], lost.found, taken)


def beginning(form: Form, conversation: Conversation, originals: Sequence[Any]) -> tuple[int, int]:
    """Return how many native messages say how a conversation begins, and how many of its messages.

    They are cut only where no call waits for an answer.
    """
    said = conversation.messages
    whole = _said(form, originals)
    same = 0
    while same < min(len(whole), len(said)) and whole[same] == said[same]:
        same += 1
    if same == len(whole) and not _waits(whole):  # as a rule it has only gone on
        return len(originals), same
    # What so many native messages say only grows: the last that say no more than is the same.
    low, high = 0, len(originals)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (
            (middle, high) if len(_said(form, originals[:middle])) <= same else (low, middle - 1)
        )
    for taken in range(low, 0, -1):
        own = _said(form, originals[:taken])
        if own == said[: len(own)] and not _waits(own):
            return taken, len(own)
    return 0, 0


def _said(form: Form, originals: Sequence[Any]) -> list[Message]:
    return read(form, Native(originals)).messages


def _waits(messages: list[Message]) -> bool:
    """Return whether a call of these has no answer."""
    return bool(problems_of([], messages))


def with_originals(
    conversation: Conversation, seen: Conversation, own: Conversation, lost: Sequence[str] = ()
) -> Conversation:
    """Return a conversation with what it had before it came into the framework that it is in.

    ``own`` is what was handed over, ``seen`` how the other framework held that. Messages that
    are still as they were seen are given as they were: what that framework cannot hold is back.
    What it was known to lose may have changed since: AutoGen makes other images of images.
    """
    whole = _answered(own.messages)
    roles = [message["role"] for message in own.messages[:whole]]
    if roles != [message["role"] for message in seen.messages[:whole]]:
        return conversation  # a message was left out: which is which is not known
    named = [each.partition(": ")[0] for each in lost]
    same = 0
    while same < min(whole, len(conversation.messages)) and _is_same(
        conversation.messages[same], seen.messages[same], f"$.messages[{same}]", named
    ):
        same += 1
    messages = [*own.messages[:same], *conversation.messages[same:]]
    return replace(conversation, messages=messages)


def _is_same(now: Message, seen: Message, path: str, lost: Sequence[str]) -> bool:
    if now["role"] != seen["role"] or len(now["parts"]) != len(seen["parts"]):
        return False
    return all(
        part == before or (part["type"] == before["type"] and f"{path}.parts[{j}]" in lost)
        for j, (part, before) in enumerate(zip(now["parts"], seen["parts"], strict=True))
    )


def _answered(messages: list[Message]) -> int:
    """Return how many messages there are before the first with a call that nothing answers."""
    for i, message in enumerate(messages):
        calls = [part["id"] for part in message["parts"] if part["type"] == "tool_call"]
        following = messages[i + 1]["parts"] if i + 1 < len(messages) else []
        if calls and not set(calls) <= {part.get("id") for part in following}:
            return i
    return len(messages)
