"""Kinds of the standard library's values: containers, numbers, dates, paths."""

from __future__ import annotations

import datetime as dt
import pathlib
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

from holdfast.core.kinds import Kind, Reader, Unkeepable, add

BIG_INT, SURROGATES, BYTEARRAY, TUPLE, SET, FROZENSET, DEQUE, PAIRS = range(1, 9)


def _big_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


add(Kind(BIG_INT, "int", _big_int, lambda p, _: int.from_bytes(p, "little", signed=True)), int)
add(
    Kind(
        SURROGATES,
        "str",
        lambda value: value.encode("utf-8", "surrogatepass"),
        lambda plain, _: plain.decode("utf-8", "surrogatepass"),
    ),
    str,
)
add(Kind(BYTEARRAY, "bytearray", bytes, lambda plain, _: bytearray(plain)), bytearray)
add(Kind(TUPLE, "tuple", list, lambda plain, _: tuple(plain)), tuple)
# Sets are put in order by the encoder, which alone knows their elements' bytes.
add(Kind(SET, "set", list, lambda plain, _: set(plain)), set)
add(Kind(FROZENSET, "frozenset", list, lambda plain, _: frozenset(plain)), frozenset)
add(Kind(DEQUE, "deque", lambda v: [v.maxlen, list(v)], lambda p, _: deque(p[1], p[0])), deque)


def _pairs(value: dict[Any, Any]) -> list[Any]:
    return [part for item in value.items() for part in item]


def _from_pairs(plain: list[Any], _: Reader) -> dict[Any, Any]:
    return dict(zip(plain[::2], plain[1::2], strict=True))


add(Kind(PAIRS, "dict", _pairs, _from_pairs), dict)

# What a defaultdict may call for a missing key: never a callable that stored data names.
_factories: dict[str, Any] = {
    cls.__name__: cls for cls in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
}


def _defaultdict(value: defaultdict[Any, Any]) -> list[Any]:
    factory = value.default_factory
    if factory is not None and _factories.get(getattr(factory, "__name__", "")) is not factory:
        raise Unkeepable(
            f"a defaultdict that calls {factory!r} cannot be checkpointed; "
            "use a built-in type as its factory, or a plain dict"
        )
    return [None if factory is None else factory.__name__, dict(value)]


add(Kind(9, "OrderedDict", dict, lambda p, _: OrderedDict(p)), OrderedDict)
add(
    Kind(
        10,
        "defaultdict",
        _defaultdict,
        lambda p, _: defaultdict(None if p[0] is None else _factories[p[0]], p[1]),
    ),
    defaultdict,
)
add(Kind(11, "Counter", dict, lambda plain, _: Counter(plain)), Counter)
add(Kind(12, "range", lambda v: [v.start, v.stop, v.step], lambda p, _: range(*p)), range)
add(Kind(13, "complex", lambda v: [v.real, v.imag], lambda p, _: complex(*p)), complex)
add(Kind(14, "Decimal", str, lambda plain, _: Decimal(plain)), Decimal)
add(
    Kind(15, "Fraction", lambda v: [v.numerator, v.denominator], lambda p, _: Fraction(*p)),
    Fraction,
)
add(Kind(16, "UUID", lambda value: value.bytes, lambda p, _: uuid.UUID(bytes=p)), uuid.UUID)


def _time_fields(value: dt.datetime | dt.time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo]


def datetime_fields(value: dt.datetime) -> list[Any]:
    """The constructor arguments of a datetime."""
    return [value.year, value.month, value.day, *_time_fields(value)]


def make_datetime(cls: type[dt.datetime], plain: list[Any]) -> dt.datetime:
    """A datetime of that class, made by datetime's own ``__new__``."""
    *parts, fold, tz = plain
    return dt.datetime.__new__(cls, *parts, tzinfo=tz, fold=fold)


def _make_time(plain: list[Any], _: Reader) -> dt.time:
    *parts, fold, tz = plain
    return dt.time(*parts, tzinfo=tz, fold=fold)


add(Kind(17, "datetime", datetime_fields, lambda p, _: make_datetime(dt.datetime, p)), dt.datetime)
add(Kind(18, "date", lambda v: [v.year, v.month, v.day], lambda p, _: dt.date(*p)), dt.date)
add(Kind(19, "time", _time_fields, _make_time), dt.time)
add(
    Kind(20, "timedelta", lambda v: [v.days, v.seconds, v.microseconds], lambda p, _: dt.timedelta(*p)),
    dt.timedelta,
)


def _zone(value: dt.timezone) -> list[Any]:
    # The name is kept only where it was given: str() of an unnamed zone is derived.
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
    return [offset, *name]


add(Kind(21, "timezone", _zone, lambda p, _: _make_zone(p)), dt.timezone)


def _make_zone(plain: list[Any]) -> dt.timezone:
    return dt.timezone.utc if plain == [dt.timedelta(0)] else dt.timezone(*plain)


def _zone_info(plain: str, _: Reader) -> Any:
    from zoneinfo import ZoneInfo

    return ZoneInfo(plain)


def _zone_info_key(value: Any) -> str:
    if value.key is None:
        raise Unkeepable("a ZoneInfo without a key cannot be checkpointed; make it by its name")
    return str(value.key)


ZONE_INFO = add(Kind(22, "ZoneInfo", _zone_info_key, _zone_info))

_path_types: dict[str, type[pathlib.PurePath]] = {
    cls.__name__: cls
    for cls in (
        pathlib.PosixPath,
        pathlib.WindowsPath,
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
    )
}


def _make_path(plain: list[str], _: Reader) -> pathlib.PurePath:
    cls = _path_types[plain[0]]
    native = type(pathlib.Path())
    if cls is not native and issubclass(cls, pathlib.Path):
        # A path of the other operating system cannot be opened here; its pure form can be read.
        cls = pathlib.PurePosixPath if cls is pathlib.PosixPath else pathlib.PureWindowsPath
    return cls(plain[1])


add(Kind(23, "Path", lambda v: [type(v).__name__, str(v)], _make_path), *_path_types.values())

_singletons: dict[str, Any] = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
add(
    Kind(24, "constant", repr, lambda plain, _: _singletons[plain]),
    types.EllipsisType,
    types.NotImplementedType,
)
add(
    Kind(25, "SimpleNamespace", vars, lambda p, _: types.SimpleNamespace(**p)),
    types.SimpleNamespace,
)
add(
    Kind(26, "slice", lambda v: [v.start, v.stop, v.step], lambda p, _: slice(*p)),
    slice,
)
add(
    Kind(27, "mappingproxy", dict, lambda plain, _: types.MappingProxyType(plain)),
    types.MappingProxyType,
)
