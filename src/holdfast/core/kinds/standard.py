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

from holdfast.core.collisions import STEPS_AT_MOST, check_keys, check_set
from holdfast.core.kinds.plain_shapes import (
    BYTES,
    LIST,
    MAPPING,
    ORDERED_MAPPING,
    PAIRS_IN_TURN,
    SET_ELEMENTS,
    WHOLE,
    Parts,
    PartsShape,
    PlainShape,
)
from holdfast.core.kinds.table import (
    Kind,
    Ready,
    Reviver,
    Revives,
    Unkeepable,
    add,
    all_exactly,
    exactly,
)
from holdfast.errors import SerializationError

BIG_INT, SURROGATES, BYTEARRAY, TUPLE, SET, FROZENSET, DEQUE, PAIRS = range(1, 9)
ORDERED_DICT, DEFAULTDICT, COUNTER = 9, 10, 11
SIMPLE_NAMESPACE, MAPPING_PROXY, WITH_ATTRIBUTES = 25, 27, 28


# Python refuses decimal numbers of more than 4300 digits, and may be told to from 640 on.
_DECIMAL_BITS = 2048


class _BigIntShape(PlainShape):
    is_bytes = True

    def json_value(self, plain: Any) -> Any:
        if len(plain) * 8 > _DECIMAL_BITS:
            return None
        return int.from_bytes(plain, "little", signed=True)


def _big_int(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)


add(
    Kind(
        BIG_INT,
        "int",
        _big_int,
        lambda p, _: int.from_bytes(p, "little", signed=True),
        Revives.OWN_TYPES,
        _BigIntShape(),
    ),
    int,
)
add(
    Kind(
        SURROGATES,
        "str",
        lambda value: value.encode("utf-8", "surrogatepass"),
        lambda plain, _: plain.decode("utf-8", "surrogatepass"),
        Revives.OWN_TYPES,
        BYTES,
    ),
    str,
)
add(
    Kind(
        BYTEARRAY,
        "bytearray",
        bytes,
        lambda p, _: bytearray(exactly(p, bytes)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    bytearray,
)
add(
    Kind(TUPLE, "tuple", list, lambda p, _: tuple(exactly(p, list)), Revives.OWN_TYPES, LIST), tuple
)


_STEPS_TO_SAVE = STEPS_AT_MOST - 8  # fewer than to load, so that what is saved can be read


def elements(value: Any) -> list[Any]:
    """Return the elements of a set; the encoder, which knows their bytes, puts them in order."""
    parts = list(value)
    try:
        check_set(parts, _STEPS_TO_SAVE)
    except ValueError as error:
        raise Unkeepable(f"cannot be checkpointed: it has {error}; keep them in a list") from None
    return parts


def from_elements(plain: list[Any]) -> list[Any]:
    """Return what ``elements`` gave, if a set can be made of it in good time."""
    check_set(exactly(plain, list))
    return plain


add(
    Kind(SET, "set", elements, lambda p, _: set(from_elements(p)), Revives.OWN_TYPES, SET_ELEMENTS),
    set,
)
add(
    Kind(
        FROZENSET,
        "frozenset",
        elements,
        lambda p, _: frozenset(from_elements(p)),
        Revives.OWN_TYPES,
        SET_ELEMENTS,
    ),
    frozenset,
)


def deque_parts(value: deque[Any]) -> list[Any]:
    """Return the bound of a deque and its elements."""
    return [value.maxlen, list(deque.__iter__(value))]


def from_deque_parts(plain: list[Any]) -> tuple[list[Any], int | None]:
    """Return the arguments that make a deque again."""
    maxlen, parts = exactly(plain, list)
    return exactly(parts, list), exactly(maxlen, int, type(None))


def deque_members(plain: list[Any]) -> Parts:
    """Return what a diff compares of two deques."""
    maxlen, parts = plain
    return Parts(same=(maxlen,), lists=(parts,))


add(
    Kind(
        DEQUE,
        "deque",
        deque_parts,
        lambda p, _: deque(*from_deque_parts(p)),
        Revives.OWN_TYPES,
        PartsShape(deque_members),
    ),
    deque,
)


def pairs(value: dict[Any, Any]) -> list[Any]:
    """Return the keys and values of a dict, each key before its value."""
    check_own_keys(value)
    return [part for item in dict.items(value) for part in item]


def check_own_keys(value: dict[Any, Any]) -> None:
    """Refuse a dict that could not be read back in good time."""
    try:
        check_keys(list(dict.keys(value)), _STEPS_TO_SAVE)
    except ValueError as error:
        raise Unkeepable(f"cannot be checkpointed: it has {error}; keep them in a list") from None


def from_pairs(plain: list[Any]) -> dict[Any, Any]:
    """Return the dict of what ``pairs`` gave."""
    keys = exactly(plain, list)[::2]
    check_keys(keys)
    return dict(zip(keys, plain[1::2], strict=True))


add(Kind(PAIRS, "dict", pairs, lambda p, _: from_pairs(p), Revives.OWN_TYPES, PAIRS_IN_TURN), dict)

# What a defaultdict may call for a missing key: never a callable that stored data names.
_factories: dict[str, Any] = {
    cls.__name__: cls for cls in (bool, bytes, dict, float, frozenset, int, list, set, str, tuple)
}


def factory_name(value: defaultdict[Any, Any]) -> str | None:
    """Return what a defaultdict calls for a missing key, by name."""
    factory = value.default_factory
    if factory is None:
        return None
    name = getattr(factory, "__name__", "")
    if _factories.get(name) is not factory:
        raise Unkeepable(
            f"a defaultdict that calls {factory!r} cannot be checkpointed; "
            "use a built-in type as its factory, or a plain dict"
        )
    return str(name)


def factory(name: str | None) -> Any:
    """Return the built-in type of that name."""
    return None if name is None else _factories[exactly(name, str)]


def _make_defaultdict(plain: list[Any], _: Reviver) -> defaultdict[Any, Any]:
    name, items = exactly(plain, list)
    return defaultdict(factory(name), exactly(items, dict))


def _defaultdict(value: defaultdict[Any, Any]) -> list[Any]:
    return [factory_name(value), dict(value)]


def _items(value: OrderedDict[Any, Any] | Counter[Any]) -> Any:
    attributes = vars(value)
    if not attributes:
        return dict(value)
    # A module's state_dict() of torch has its versions in one.
    return Ready(WITH_ATTRIBUTES, [type(value).__name__, dict(value), attributes])


def _make_with_attributes(plain: list[Any], _: Reviver) -> Any:
    name, items, attributes = exactly(plain, list)
    value = _attributed[exactly(name, str)](exactly(items, dict))
    vars(value).update(exactly(attributes, dict))
    return value


def _members_with_attributes(plain: list[Any]) -> Parts:
    name, items, attributes = plain
    return Parts(same=(name,), mappings=(items, attributes))


def _defaultdict_members(plain: list[Any]) -> Parts:
    name, items = plain
    return Parts(same=(name,), mappings=(items,))


_attributed: dict[str, Any] = {"OrderedDict": OrderedDict, "Counter": Counter}
add(
    Kind(
        WITH_ATTRIBUTES,
        "dict with attributes",
        lambda value: value,
        _make_with_attributes,
        Revives.OWN_TYPES,
        PartsShape(_members_with_attributes),
    )
)
add(
    Kind(
        ORDERED_DICT,
        "OrderedDict",
        _items,
        lambda p, _: OrderedDict(exactly(p, dict)),
        Revives.OWN_TYPES,
        ORDERED_MAPPING,
    ),
    OrderedDict,
)
add(
    Kind(
        DEFAULTDICT,
        "defaultdict",
        _defaultdict,
        _make_defaultdict,
        Revives.OWN_TYPES,
        PartsShape(_defaultdict_members),
    ),
    defaultdict,
)
add(
    Kind(
        COUNTER,
        "Counter",
        _items,
        lambda p, _: Counter(exactly(p, dict)),
        Revives.OWN_TYPES,
        MAPPING,
    ),
    Counter,
)


def _make_fraction(plain: list[Any], _: Reviver) -> Fraction:
    numerator, denominator = all_exactly(plain, int)
    if denominator <= 0:
        raise ValueError(f"a denominator of {denominator}")
    # The constructor would look for a common divisor, which for hostile numbers takes minutes.
    fraction: Any = object.__new__(Fraction)
    fraction._numerator, fraction._denominator = numerator, denominator
    return fraction  # type: ignore[no-any-return]


def _range(value: range) -> list[Any]:
    return [value.start, value.stop, value.step]


def _complex(value: complex) -> list[Any]:
    return [value.real, value.imag]


def _fraction(value: Fraction) -> list[Any]:
    return [value.numerator, value.denominator]


add(
    Kind(12, "range", _range, lambda p, _: range(*all_exactly(p, int)), Revives.OWN_TYPES, WHOLE),
    range,
)
add(
    Kind(
        13,
        "complex",
        _complex,
        lambda p, _: complex(*all_exactly(p, float)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    complex,
)
add(
    Kind(14, "Decimal", str, lambda p, _: Decimal(exactly(p, str)), Revives.OWN_TYPES, WHOLE),
    Decimal,
)
add(Kind(15, "Fraction", _fraction, _make_fraction, Revives.OWN_TYPES, WHOLE), Fraction)
add(
    Kind(
        16,
        "UUID",
        lambda v: v.bytes,
        lambda p, _: uuid.UUID(bytes=exactly(p, bytes)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    uuid.UUID,
)


def _time_fields(value: dt.datetime | dt.time) -> list[Any]:
    return [value.hour, value.minute, value.second, value.microsecond, value.fold, value.tzinfo]


def datetime_fields(value: dt.datetime) -> list[Any]:
    """Return the constructor arguments of a datetime."""
    return [value.year, value.month, value.day, *_time_fields(value)]


def make_datetime(cls: type[dt.datetime], plain: list[Any]) -> dt.datetime:
    """Return a datetime of that class, made by datetime's own ``__new__``."""
    *numbers, tz = exactly(plain, list)
    *parts, fold = all_exactly(numbers, int)
    return dt.datetime.__new__(cls, *parts, **{"tzinfo": tz, "fold": fold})


def _make_time(plain: list[Any], _: Reviver) -> dt.time:
    *numbers, tz = exactly(plain, list)
    *parts, fold = all_exactly(numbers, int)
    return dt.time(*parts, **{"tzinfo": tz, "fold": fold})


add(
    Kind(
        17,
        "datetime",
        datetime_fields,
        lambda p, _: make_datetime(dt.datetime, p),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    dt.datetime,
)


def date_fields(value: dt.date) -> list[Any]:
    """Return the constructor arguments of a date."""
    return [value.year, value.month, value.day]


def timedelta_fields(value: dt.timedelta) -> list[Any]:
    """Return the constructor arguments of a timedelta."""
    return [value.days, value.seconds, value.microseconds]


add(
    Kind(
        18,
        "date",
        date_fields,
        lambda p, _: dt.date(*all_exactly(p, int)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    dt.date,
)
add(Kind(19, "time", _time_fields, _make_time, Revives.OWN_TYPES, WHOLE), dt.time)
add(
    Kind(
        20,
        "timedelta",
        timedelta_fields,
        lambda p, _: dt.timedelta(*all_exactly(p, int)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    dt.timedelta,
)


def _zone(value: dt.timezone) -> list[Any]:
    # The name is kept only where it was given: str() of an unnamed zone is derived.
    offset, *name = value.__getinitargs__()  # type: ignore[attr-defined]
    return [offset, *name]


add(Kind(21, "timezone", _zone, lambda p, _: _make_zone(p), Revives.OWN_TYPES, WHOLE), dt.timezone)


def _make_zone(plain: list[Any]) -> dt.timezone:
    offset, *name = exactly(plain, list)
    if exactly(offset, dt.timedelta) or name:
        return dt.timezone(offset, *all_exactly(name, str))
    return dt.UTC


def _zone_info(plain: str, _: Reviver) -> Any:
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(exactly(plain, str))
    except (LookupError, OSError) as error:
        raise SerializationError(
            "$", f"there is no time zone {plain!r} here; install the tzdata package"
        ) from error


def _zone_info_key(value: Any) -> str:
    if value.key is None:
        raise Unkeepable("a ZoneInfo without a key cannot be checkpointed; make it by its name")
    return str(value.key)


ZONE_INFO = add(Kind(22, "ZoneInfo", _zone_info_key, _zone_info, Revives.OWN_TYPES, WHOLE))

_path_types: dict[str, type[pathlib.PurePath]] = {
    cls.__name__: cls
    for cls in (
        pathlib.PosixPath,
        pathlib.WindowsPath,
        pathlib.PurePosixPath,
        pathlib.PureWindowsPath,
    )
}


def _make_path(plain: list[str], _: Reviver) -> pathlib.PurePath:
    name, path = all_exactly(plain, str)
    cls = _path_types[name]
    native = type(pathlib.Path())
    if cls is not native and issubclass(cls, pathlib.Path):
        # A path of the other operating system cannot be opened here; its pure form can be read.
        cls = pathlib.PurePosixPath if cls is pathlib.PosixPath else pathlib.PureWindowsPath
    return cls(path)


add(
    Kind(23, "Path", lambda v: [type(v).__name__, str(v)], _make_path, Revives.OWN_TYPES, WHOLE),
    *_path_types.values(),
)

_singletons: dict[str, Any] = {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}
add(
    Kind(24, "constant", repr, lambda plain, _: _singletons[plain], Revives.OWN_TYPES, WHOLE),
    types.EllipsisType,
    types.NotImplementedType,
)
add(
    Kind(
        SIMPLE_NAMESPACE,
        "SimpleNamespace",
        vars,
        lambda p, _: types.SimpleNamespace(**exactly(p, dict)),
        Revives.OWN_TYPES,
        MAPPING,
    ),
    types.SimpleNamespace,
)
add(
    Kind(
        26,
        "slice",
        lambda v: [v.start, v.stop, v.step],
        lambda p, _: slice(*exactly(p, list)),
        Revives.OWN_TYPES,
        WHOLE,
    ),
    slice,
)
add(
    Kind(
        MAPPING_PROXY,
        "mappingproxy",
        dict,
        lambda p, _: types.MappingProxyType(exactly(p, dict)),
        Revives.OWN_TYPES,
        MAPPING,
    ),
    types.MappingProxyType,
)
