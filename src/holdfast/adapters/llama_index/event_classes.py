"""Classes of events that a program has, by which stored events are revived without any import."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from workflows import Workflow
from workflows.context.serializers import BaseSerializer, JsonSerializer
from workflows.context.state_store import infer_state_type
from workflows.events import Event

from holdfast.session.functions import MAIN, path_of


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


def class_named(name: str, classes: Iterable[type[Any]]) -> type[Any] | None:
    """Return the class that a stored name means, if there is one such class and no other.

    A script is called ``__main__`` while it runs, and by its own name when it is imported.
    """
    given = list(dict.fromkeys(classes))
    exact = [each for each in given if name in _names(each)]
    if exact:
        return exact[0]
    module, _, own = name.rpartition(".")
    same = [
        each
        for each in given
        if each.__name__ == own and (module in MAIN or module == _script_of(each))
    ]
    return same[0] if len(same) == 1 else None


def _script_of(cls: type[Any]) -> str | None:
    return path_of(cls).partition(":")[0] if cls.__module__ in MAIN else None


def with_own_names(kept: Any, workflow: Workflow) -> Any:
    """Return what was kept with its classes called as the program that goes on calls them."""
    declared = [*workflow.events, infer_state_type(workflow)]
    every = [*declared, *with_subclasses(Event)]
    known = {name for each in every for name in _names(each)}

    def own(name: Any) -> Any:
        if not isinstance(name, str) or name in known:
            return name
        found = class_named(name, declared) or class_named(name, every)
        return name if found is None else f"{found.__module__}.{found.__name__}"

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(each) for each in value]
        if not isinstance(value, dict):
            return value
        named = "qualified_name" if is_instance(value) else "waiting_for_event"
        return {key: own(each) if key == named else changed(each) for key, each in value.items()}

    return changed(kept)


def is_instance(value: dict[str, Any]) -> bool:
    """Return whether it is what the framework writes of an object with its class."""
    return bool(value.get("__is_pydantic") or value.get("__is_component"))


def _names(cls: type[Any]) -> tuple[str, str]:
    return f"{cls.__module__}.{cls.__qualname__}", f"{cls.__module__}.{cls.__name__}"
