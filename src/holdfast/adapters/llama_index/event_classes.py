"""Classes of events that a program has, by which stored events are revived without any import."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from workflows import Workflow
from workflows.context.serializers import BaseSerializer, JsonSerializer
from workflows.events import Event


def for_reading(serializer: BaseSerializer, workflow: Workflow) -> BaseSerializer:
    """Return a serializer that knows all events of the program.

    A workflow declares those of its steps, and may wait for others (``wait_for_event``).
    """
    if not isinstance(serializer, JsonSerializer):
        return serializer
    taken = {name for each in workflow.events for name in _names(each)}
    more = []
    for each in with_subclasses(Event):
        if taken.isdisjoint(_names(each)):
            more.append(each)
            taken.update(_names(each))
    try:
        return serializer.with_types(*more)
    except ValueError:  # a class that it was given has the name of another event
        return serializer


def with_subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    """Return a class and those made of it, as far as the program has them."""
    yield cls
    for each in cls.__subclasses__():
        yield from with_subclasses(each)


def _names(cls: type[Any]) -> tuple[str, str]:
    return f"{cls.__module__}.{cls.__qualname__}", f"{cls.__module__}.{cls.__name__}"
