"""Subclasses of built-in types: what the base holds is kept as the base's own plain data."""

from __future__ import annotations

import datetime as dt
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from holdfast.core.kinds import standard
from holdfast.core.kinds.plain_shapes import (
    LIST,
    SET_ELEMENTS,
    WHOLE,
    PairsInTurn,
    Parts,
    PartsShape,
    PlainShape,
    Walker,
)
from holdfast.core.kinds.table import Ready, all_exactly, exactly


class _Items(PairsInTurn):
    """The items of a dict of a subclass, which may have any keys."""

    def __init__(self, ordered: bool = False) -> None:
        self._ordered = ordered

    def parts(self, plain: Any) -> Parts | None:
        items = (Ready(standard.PAIRS, plain),)
        return Parts(ordered=items) if self._ordered else Parts(mappings=items)


class _DefaultdictShape(PlainShape):
    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        return [plain[0], walker.walk_pairs(plain[1], path)]

    def parts(self, plain: Any) -> Parts | None:
        if type(plain) is not list or len(plain) != 2:
            return None
        return Parts(same=(plain[0],), mappings=(Ready(standard.PAIRS, plain[1]),))


class SubclassShape(PlainShape):
    """The name of a class, what it holds as its base, the name of that, and its attributes."""

    may_be_unordered = True
    opened_for_parts = 2

    def walk(self, walker: Walker, plain: Any, path: str) -> Any:
        name, main, base, attributes = plain
        contents = base_by_name[base].shape.walk(walker, main, path)
        return [name, contents, base, walker.walk(attributes, path)]

    def unordered(self, plain: Any) -> list[Any] | None:
        return base_by_name[plain[2]].shape.unordered(plain[1])

    def parts(self, plain: Any) -> Parts | None:
        if type(plain) is not list or len(plain) != 4:
            return None
        name, main, base, attributes = plain
        built_in = base_by_name.get(base) if type(base) is str else None
        inner = None if built_in is None else built_in.shape.parts(main)
        if inner is None:
            return Parts(same=(name, base, main), mappings=(attributes,))
        return replace(
            inner, same=(name, base, *inner.same), mappings=(*inner.mappings, attributes)
        )


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A type that may be subclassed: its contents as plain data, and an instance made of them."""

    cls: Any
    reduce: Callable[[Any], Any]
    revive: Callable[[Any, Any], Any]
    shape: PlainShape
    """What its contents look like as plain data."""
    smallest: tuple[Any, ...] = ()
    """Arguments to try its ``__new__`` with."""

    @property
    def name(self) -> str:
        return str(self.cls.__name__)


def _scalar(base: Any, reduce: Callable[[Any], Any]) -> BuiltIn:
    return BuiltIn(base, reduce, lambda cls, main: base.__new__(cls, exactly(main, base)), WHOLE)


def _collection(base: Any, fill: Callable[[Any, Any], Any] | None) -> BuiltIn:
    def revive(cls: Any, main: Any) -> Any:
        if fill is None:
            return base.__new__(cls, exactly(main, list))
        value = base.__new__(cls)
        fill(value, exactly(main, list))
        return value

    return BuiltIn(base, lambda value: list(base.__iter__(value)), revive, LIST)


def _set(base: Any, fill: Callable[[Any, Any], Any] | None) -> BuiltIn:
    plain = _collection(base, fill)
    return BuiltIn(
        base,
        lambda value: standard.elements(base.__iter__(value)),
        lambda cls, main: plain.revive(cls, standard.from_elements(main)),
        SET_ELEMENTS,
    )


def _moment(base: Any, fields: Callable[[Any], list[Any]], *smallest: int) -> BuiltIn:
    return BuiltIn(
        base, fields, lambda cls, main: base.__new__(cls, *all_exactly(main, int)), WHOLE, smallest
    )


def _bytearray(cls: Any, main: Any) -> Any:
    value = bytearray.__new__(cls)
    bytearray.extend(value, exactly(main, bytes))
    return value


def _complex(cls: Any, main: Any) -> Any:
    real, imaginary = all_exactly(main, float)
    return complex.__new__(cls, real, imaginary)


def _dict(cls: Any, main: Any) -> Any:
    value = dict.__new__(cls)
    dict.update(value, standard.from_pairs(main))
    return value


def _ordered_pairs(value: Any) -> list[Any]:
    standard.check_own_keys(value)
    return [part for item in OrderedDict.items(value) for part in item]


def _ordered_dict(cls: Any, main: Any) -> Any:
    value = OrderedDict.__new__(cls)
    for key, part in standard.from_pairs(main).items():
        OrderedDict.__setitem__(value, key, part)  # dict's own would not be in its order
    return value


def _defaultdict(cls: Any, main: Any) -> Any:
    factory, pairs = exactly(main, list)
    value = defaultdict.__new__(cls)
    defaultdict.__init__(value, standard.factory(factory), standard.from_pairs(pairs))
    return value


def _deque(cls: Any, main: Any) -> Any:
    value = deque.__new__(cls)
    deque.__init__(value, *standard.from_deque_parts(main))
    return value


def _decimal(cls: Any, main: Any) -> Any:
    return Decimal.__new__(cls, exactly(main, str))


_all = (
    _scalar(str, str.__str__),
    _scalar(int, lambda value: int.__add__(value, 0)),
    _scalar(float, lambda value: float.__add__(value, -0.0)),
    _scalar(bytes, lambda value: bytes.__getitem__(value, slice(None))),
    BuiltIn(bytearray, bytes, _bytearray, WHOLE),
    BuiltIn(complex, lambda value: [value.real, value.imag], _complex, WHOLE),
    _collection(list, list.extend),
    _collection(tuple, None),
    _set(set, set.update),
    _set(frozenset, None),
    BuiltIn(deque, standard.deque_parts, _deque, PartsShape(standard.deque_members)),
    BuiltIn(dict, standard.pairs, _dict, _Items()),
    BuiltIn(OrderedDict, _ordered_pairs, _ordered_dict, _Items(ordered=True)),
    BuiltIn(
        defaultdict,
        lambda value: [standard.factory_name(value), standard.pairs(value)],
        _defaultdict,
        _DefaultdictShape(),
    ),
    BuiltIn(dt.datetime, standard.datetime_fields, standard.make_datetime, WHOLE, (1, 1, 1)),
    _moment(dt.date, standard.date_fields, 1, 1, 1),
    _moment(dt.timedelta, standard.timedelta_fields),
    BuiltIn(Decimal, Decimal.__str__, _decimal, WHOLE),
)
base_by_name = {base.name: base for base in _all}
_base_by_class = {base.cls: base for base in _all}


def base_of(cls: type) -> BuiltIn | None:
    """Return the nearest built-in type that a class extends."""
    return next((_base_by_class[base] for base in cls.__mro__ if base in _base_by_class), None)
