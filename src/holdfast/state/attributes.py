"""The attributes of an object: which are state, how they are read, set and put back."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any

from holdfast.core.class_names import is_name
from holdfast.core.kinds.objects import _slots, set_attributes
from holdfast.errors import InvalidArgumentError


def stored(obj: object) -> dict[str, Any]:
    """Return all that an object holds, in its slots and its ``__dict__``, private names too."""
    values = {}
    for name, slot in _slots(type(obj)).items():
        try:
            values[name] = slot.__get__(obj, type(obj))
        except AttributeError:  # an empty slot
            continue
    values.update(getattr(obj, "__dict__", ()))
    return values


def public_names(obj: object) -> list[str]:
    """Return the names that are state unless a class says otherwise."""
    names = dict.fromkeys(stored(obj))
    if dataclasses.is_dataclass(obj):
        names |= dict.fromkeys(f.name for f in dataclasses.fields(obj) if hasattr(obj, f.name))
    return [name for name in names if not name.startswith("_") and not is_cache(type(obj), name)]


def checked_names(obj: object, names: Iterable[object]) -> list[str]:
    """Return what ``_checkpoint_fields`` gave, if it is names of attributes."""
    owner = type(obj).__name__
    if isinstance(names, str):
        raise InvalidArgumentError(
            f"{owner}._checkpoint_fields() gives a list of names, not the string {names!r}"
        )
    found: dict[str, None] = {}
    for name in names:
        if not is_name(name):
            raise InvalidArgumentError(
                f"{owner}._checkpoint_fields() gives names of attributes, not {name!r}"
            )
        found[str(name)] = None
    return list(found)


def read(obj: object, names: Iterable[str]) -> dict[str, Any]:
    """Return the values of those attributes."""
    values = {}
    for name in names:
        try:
            values[name] = getattr(obj, name)
        except AttributeError as error:
            raise InvalidArgumentError(
                f"{type(obj).__name__}._checkpoint_fields() names {name!r}, which it does not have "
                f"now ({error}): set it in __init__, or leave it out"
            ) from error
    return values


def declared_names(cls: type) -> set[str]:
    """Return the names that a class declares: slots, dataclass fields, annotations."""
    annotated = (inspect.get_annotations(base) for base in cls.__mro__)
    return set(_slots(cls)).union(*annotated)


def _on_class(cls: type, name: str) -> object:
    return next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)


def is_cache(cls: type, name: str) -> bool:
    """Return whether a ``cached_property`` worked an attribute out: no state, and soon stale."""
    return isinstance(_on_class(cls, name), functools.cached_property)


def _has_setter(cls: type, name: str) -> bool:
    """Return whether setting an attribute runs code of the class, as of a property."""
    return name not in _slots(cls) and hasattr(type(_on_class(cls, name)), "__set__")


def why_not_set(obj: object, name: str, chosen: bool) -> str | None:
    """Return why an attribute cannot be set from a state, or None where it can.

    ``chosen`` says that the class itself lists its fields, and so that its setters may run.
    """
    if not is_name(name):
        return "is no name of a field"
    found = _on_class(type(obj), name)
    if isinstance(found, property):
        if found.fset is None:
            return "is a property that cannot be set"
        return None if chosen else "is a property that _checkpoint_fields() does not list"
    if is_cache(type(obj), name):
        return "is a cached_property"
    if name not in _slots(type(obj)) and not hasattr(obj, "__dict__"):
        return "has no slot"
    return None


def write(obj: Any, values: dict[str, Any], drop: Iterable[str], chosen: bool) -> None:
    """Set attributes past a frozen class's ``__setattr__``, and remove those to be dropped."""
    cls = type(obj)
    for name in [*drop, *(name for name in stored(obj) if is_cache(cls, name))]:
        _remove(obj, name)
    for name, value in values.items():
        if chosen and _has_setter(cls, name):
            object.__setattr__(obj, name, value)
        else:
            set_attributes(obj, {name: value})


def _remove(obj: Any, name: str) -> None:
    slots = _slots(type(obj))
    if name in slots:
        slots[name].__delete__(obj)
    else:
        del obj.__dict__[name]


def keep(obj: Any) -> Callable[[], None]:
    """Remember what an object holds; the function given back puts it back."""
    held = stored(obj)

    def put_back() -> None:
        for name in [name for name in stored(obj) if name not in held]:
            _remove(obj, name)
        set_attributes(obj, held)

    return put_back
