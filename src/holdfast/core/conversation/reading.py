"""From a framework's state to a conversation, and from a conversation to its messages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.core.conversation.by_shape import BY_SHAPE
from holdfast.core.conversation.checking import problems_of
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import FORMS, FRAMEWORKS, Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.parts import Message
from holdfast.core.conversation.plain import plain
from holdfast.errors import InvalidArgumentError


def form_of(framework: Any) -> Form:
    """Return the form of a framework's conversations; InvalidArgumentError if it has none."""
    name = getattr(framework, "value", framework)
    if not isinstance(name, str) or name not in FRAMEWORKS:
        raise InvalidArgumentError(
            f"framework is one of {', '.join(FRAMEWORKS)}, not {framework!r}"
        )
    return FORMS[name]


def conversation_in(framework: str, state: Any) -> Conversation | None:
    """Return the conversation that a state of a framework holds; None if it holds none.

    Messages in the state of a program of one's own are recognised by their shape.

    >>> from holdfast.core.conversation.reading import conversation_in
    >>> found = conversation_in("custom", {"messages": [{"role": "user", "content": "hi"}]})
    >>> found.messages
    [{'role': 'user', 'parts': [{'type': 'text', 'content': 'hi'}]}]
    """
    form, native = found_in(framework, state)
    return None if native is None else read(form, native, framework)


def found_in(framework: str, state: Any) -> tuple[Form, Native | None]:
    """Return what a state holds of a conversation, and the form it is in; None if it holds none."""
    form = FORMS.get(framework)
    native = None if form is None else form.extract(state)
    if form is not None and native is not None:
        return form, native
    return BY_SHAPE, BY_SHAPE.extract(state)


def read(form: Form, native: Native, framework: str | None = None) -> Conversation:
    """Return the conversation of what was found in a state."""
    lost = Lost()
    messages = form.read(plain(native.messages, lost, "$.messages"), lost)
    origin = {
        "framework": framework or form.framework,
        "version": native.version,
        "provider": native.provider,
    }
    return Conversation.of(
        messages,
        list(native.system),
        interrupts=list(native.interrupts),
        plan=list(native.plan),
        context=native.context,
        origin={name: value for name, value in origin.items() if value is not None},
        lost=lost,
    )


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
