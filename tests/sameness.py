"""``same``: equality to the bit, of every type that Holdfast keeps."""

import copy
import copyreg
import datetime as dt
import enum
import math
import pathlib
import types
import uuid
from collections import Counter, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any
from zoneinfo import ZoneInfo

import msgspec
import numpy as np
import pandas as pd
import pydantic
import pydantic.dataclasses
import pydantic.v1

from tests.strategies import Record


def same(a: Any, b: Any) -> bool:
    """Whether two values are equal in all that a checkpoint keeps: types, order, NaN, -0.0."""
    if type(a) is not type(b):
        return False
    if a is b:
        return True
    compare = _compare.get(type(a)) or _by_base(type(a))
    return bool(compare(a, b)) and same_attributes(a, b)


def same_attributes(a: Any, b: Any) -> bool:
    """Whether two objects hold the same in their slots and their ``__dict__``, in any order."""
    mine, other = _attributes(a), _attributes(b)
    return mine.keys() == other.keys() and all(same(mine[name], other[name]) for name in mine)


def _attributes(obj: Any) -> dict[str, Any]:
    if type(obj).__module__.partition(".")[0] == "pathlib":
        return {}  # parts that it has worked out so far
    names = [name for base in type(obj).__mro__ for name in _slot_names(base)]
    held = {name: getattr(obj, name) for name in names if hasattr(obj, name)}
    if type(obj).__module__.partition(".")[0] in ("pandas", "builtins"):
        return held
    return held | dict(getattr(obj, "__dict__", {}))


def _slot_names(cls: type) -> list[str]:
    slots = vars(cls).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else list(slots)
    private = f"_{cls.__name__.lstrip('_')}"
    return [
        f"{private}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    ]


def _same_float(a: float, b: float) -> bool:
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return float(a) == float(b) and math.copysign(1, a) == math.copysign(1, b)


def _same_complex(a: complex, b: complex) -> bool:
    return _same_float(a.real, b.real) and _same_float(a.imag, b.imag)


def _same_sequence(a: Any, b: Any) -> bool:
    return len(a) == len(b) and all(map(same, a, b))


def _same_set(a: Any, b: Any) -> bool:
    left = list(b)
    for part in a:
        at = next((i for i, other in enumerate(left) if same(part, other)), None)
        if at is None:
            return False
        del left[at]
    return not left


def _same_dict(a: Any, b: Any) -> bool:
    return _same_sequence(list(a.items()), list(b.items())) and same(
        getattr(a, "default_factory", None), getattr(b, "default_factory", None)
    )


def _same_datetime(a: Any, b: Any) -> bool:
    naive = a.replace(tzinfo=None) == b.replace(tzinfo=None) and a.fold == b.fold
    return bool(naive) and same(a.tzinfo, b.tzinfo)


def _same_array(a: Any, b: Any) -> bool:
    if a.dtype != b.dtype or a.shape != b.shape or repr(a.dtype) != repr(b.dtype):
        return False
    if a.dtype == object:
        return _same_sequence(a.ravel().tolist(), b.ravel().tolist())
    by_columns = [x.flags.f_contiguous and not x.flags.c_contiguous for x in (a, b)]
    if a.dtype.names is not None:  # what lies between the fields is chance
        return by_columns[0] == by_columns[1] and repr(a.tolist()) == repr(b.tolist())
    return by_columns[0] == by_columns[1] and a.tobytes() == b.tobytes()


def _shown(error: BaseException) -> str:
    plain = all(type(part) in (str, int) for part in error.args)
    return str(error) if plain else ""  # of others, addresses and the order of sets would show


def _same_exception(a: BaseException, b: BaseException) -> bool:
    fields = [*("errno", "strerror", "filename", "filename2", "name", "path", "value", "code")]
    fields += [*("object", "start", "end", "reason", "encoding", "exceptions", "message")]
    return (
        same(a.args, b.args)
        and _shown(a) == _shown(b)
        and a.__suppress_context__ == b.__suppress_context__
        and all(same(getattr(a, name, None), getattr(b, name, None)) for name in fields)
    )


def _same_table(a: Any, b: Any) -> bool:
    name = type(a).__name__.lower()
    check = {
        "series": pd.testing.assert_series_equal,
        "dataframe": pd.testing.assert_frame_equal,
    }.get(name, pd.testing.assert_index_equal)
    try:
        check(a, b, check_exact=True)
    except AssertionError:
        return False
    return same(getattr(a, "attrs", {}), getattr(b, "attrs", {})) and same(
        getattr(a, "freqstr", None), getattr(b, "freqstr", None)
    )


def _same_scalar(a: Any, b: Any) -> bool:
    if a.dtype.kind in "fc" and a.dtype.itemsize > 16 // (1 if a.dtype.kind == "c" else 2):
        return a.dtype == b.dtype and (a == b or (a != a and b != b))  # the rest is padding
    return bool(a.dtype == b.dtype and a.tobytes() == b.tobytes())


def _same_stamp(a: Any, b: Any) -> bool:
    return (a is pd.NaT and b is pd.NaT) or (
        a == b
        and a.unit == b.unit
        and repr(a) == repr(b)
        and getattr(a, "fold", 0) == getattr(b, "fold", 0)
    )


def _equal(a: Any, b: Any) -> bool:
    return bool(a == b)


def _always(a: Any, b: Any) -> bool:
    return True


def _by_base(cls: type) -> Any:
    for base, compare in _by_bases:
        if issubclass(cls, base):
            return compare
    return _always  # nothing but attributes


_compare: dict[type, Any] = {
    Counter: _same_dict,
    pd.DataFrame: _same_table,
    pd.Series: _same_table,
    pd.Timestamp: _same_stamp,
    pd.Timedelta: _same_stamp,
    pd.Period: _equal,
    pd.Interval: _equal,
    ZoneInfo: lambda a, b: a.key == b.key,
    dt.timezone: lambda a, b: repr(a) == repr(b),
    Record: _always,
}
_by_bases: list[tuple[Any, Any]] = [
    (enum.Flag, _equal),  # one with unknown bits is made anew each time, on some Pythons
    (enum.Enum, lambda a, b: a is b),
    (np.ndarray, _same_array),
    (np.longdouble, lambda a, b: repr(a) == repr(b)),  # its padding is chance
    (np.generic, _same_scalar),
    (pd.Index, _same_table),
    (BaseException, _same_exception),
    (float, _same_float),
    (complex, _same_complex),
    (Decimal, lambda a, b: a.as_tuple() == b.as_tuple()),
    (deque, lambda a, b: a.maxlen == b.maxlen and _same_sequence(a, b)),
    ((list, tuple), _same_sequence),
    ((set, frozenset), _same_set),
    ((dict, types.MappingProxyType), _same_dict),
    ((dt.datetime, dt.time), _same_datetime),
    (
        (bool, int, str, bytes, bytearray, dt.date, dt.timedelta, uuid.UUID, Fraction),
        _equal,
    ),
    (slice, lambda a, b: same((a.start, a.stop, a.step), (b.start, b.stop, b.step))),
    ((range, pathlib.PurePath), lambda a, b: repr(a) == repr(b)),
    (types.SimpleNamespace, lambda a, b: _same_dict(vars(a), vars(b))),
    (
        msgspec.Struct,
        lambda a, b: all(same(getattr(a, n), getattr(b, n)) for n in a.__struct_fields__),
    ),
    (pydantic.v1.BaseModel, lambda a, b: a.__fields_set__ == b.__fields_set__),
]


def isolated(value: Any) -> Any:
    """A copy to compare with later, where something must not change its argument."""
    proxy = types.MappingProxyType
    copyreg.pickle(proxy, lambda value: (proxy, (dict(value),)))
    try:
        return copy.deepcopy(value)
    finally:
        del copyreg.dispatch_table[proxy]
