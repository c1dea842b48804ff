"""From the state of a framework to the conversation that it holds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from holdfast.core.conversation.by_shape import BY_SHAPE
from holdfast.core.conversation.conversation import Conversation
from holdfast.core.conversation.forms import FORMS, FRAMEWORKS, Form, Native
from holdfast.core.conversation.lost import Lost
from holdfast.core.conversation.plain import plain
from holdfast.core.conversation.programs import kept_in
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

    What a hook recorded of a coding agent says its format. Messages in the state of a program of
    one's own are recognised by their shape.

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
    kept = kept_in(state)
    if kept is not None:
        return kept
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
    found = Conversation.of(
        messages,
        list(native.system),
        interrupts=list(native.interrupts),
        plan=list(native.plan),
        context=native.context,
        origin={name: value for name, value in origin.items() if value is not None},
    )
    return replace(found, lost=list(dict.fromkeys([*lost.found, *found.lost])))
