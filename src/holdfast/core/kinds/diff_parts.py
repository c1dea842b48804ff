"""What an object consists of, as a diff shows it: items and attributes, elements, and the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from holdfast.core.kinds import objects, standard
from holdfast.core.kinds.table import Ready

LISTS = frozenset({standard.TUPLE})
SETS = frozenset({standard.SET, standard.FROZENSET})
MAPPINGS = frozenset(
    {standard.ORDERED_DICT, standard.COUNTER, standard.SIMPLE_NAMESPACE, standard.MAPPING_PROXY}
)
"""Kinds whose plain data is a dict with their items."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The plain data of an object taken apart; what it refers to may still be closed."""

    same: list[Any]
    """What two objects must have in common to be compared part by part, such as their class."""
    mappings: list[Any]
    """Dicts of items or attributes."""
    lists: list[Any]
    sets: list[Any]
    places: list[Any]
    """Lists in which every element has its own place, as in named tuples."""
    unseen: list[Any]
    """What no part shows; told only where nothing else differs."""


def _parts(
    same: list[Any],
    mappings: list[Any] | None = None,
    lists: list[Any] | None = None,
    sets: list[Any] | None = None,
    places: list[Any] | None = None,
    unseen: list[Any] | None = None,
) -> Parts:
    return Parts(same, mappings or [], lists or [], sets or [], places or [], unseen or [])


def _some(attributes: Any) -> Any:
    return {} if attributes is None else attributes


def _deque(plain: list[Any]) -> Parts:
    maxlen, elements = plain
    return _parts([maxlen], lists=[elements])


def _defaultdict(plain: list[Any]) -> Parts:
    factory, items = plain
    return _parts([factory], [items])


def _with_attributes(plain: list[Any]) -> Parts:
    name, items, attributes = plain
    return _parts([name], [items, attributes])


def _object(plain: list[Any]) -> Parts:
    name, fields, *extra = plain
    return _parts([name], [fields, extra[0] if extra else {}])


def _named_tuple(plain: list[Any]) -> Parts:
    name, elements, *extra = plain
    return _parts([name], [extra[0] if extra else {}], places=[elements])


def _exception(plain: list[Any]) -> Parts:
    name, fields, *rest = plain
    return _parts([name, rest], [fields])


def _pydantic(plain: list[Any]) -> Parts:
    name, fields, chosen, extra, private = plain
    return _parts(
        [name], [fields, _some(extra), _some(private)], unseen=[chosen, extra is None, not private]
    )


def _pydantic_v1(plain: list[Any]) -> Parts:
    name, fields, chosen, private = plain
    return _parts([name], [fields, private], unseen=[chosen])


def _subclass(plain: list[Any]) -> Parts:
    name, main, base, attributes = plain
    same = [name, base]
    if base in ("dict", "OrderedDict"):
        return _parts(same, [Ready(standard.PAIRS, main), attributes])
    if base in ("list", "tuple"):
        return _parts(same, [attributes], [main])
    if base in ("set", "frozenset"):
        return _parts(same, [attributes], sets=[main])
    if base == "deque" and type(main) is list:
        return _parts([*same, main[0]], [attributes], [main[1]])
    if base == "defaultdict" and type(main) is list:
        return _parts([*same, main[0]], [Ready(standard.PAIRS, main[1]), attributes])
    return _parts([*same, main], [attributes])


_of_kind: dict[int, Callable[[list[Any]], Parts]] = {
    standard.DEQUE: _deque,
    standard.DEFAULTDICT: _defaultdict,
    standard.WITH_ATTRIBUTES: _with_attributes,
    objects.OBJECT: _object,
    objects.STRUCT: _object,
    objects.NAMED_TUPLE: _named_tuple,
    objects.EXCEPTION: _exception,
    objects.SUBCLASS: _subclass,
    objects.PYDANTIC: _pydantic,
    objects.PYDANTIC_V1: _pydantic_v1,
}


def has_parts(code: int) -> bool:
    """Whether objects of a kind are compared part by part."""
    return code in _of_kind


def parts_of(code: int, plain: Any) -> Parts | None:
    """The parts of an object by its kind; None where its plain data is not of the right shape."""
    if type(plain) is not list:
        return None
    try:
        return _of_kind[code](plain)
    except (ValueError, IndexError):
        return None
