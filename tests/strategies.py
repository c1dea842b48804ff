"""Hypothesis strategies for every type that Holdfast keeps, and ``same``: equality to the bit.

``values()`` nests them at random. ``SAMPLES`` has one fixed value for each type, by its name.
"""

import copy
import copyreg
import dataclasses
import datetime as dt
import enum
import math
import pathlib
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from typing import Any, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

import attrs
import msgspec
import numpy as np
import pandas as pd
import pydantic
import pydantic.dataclasses
import pydantic.v1
from hypothesis import strategies as st
from hypothesis.extra import numpy as st_numpy
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

# Classes of every kind, each with what tends to be lost.


@dataclass
class Plain:
    a: Any
    b: Any = None


@dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any = None


@dataclass(slots=True)
class Slotted:
    a: Any
    b: Any = None


@dataclass(frozen=True, slots=True)
class FrozenSlotted:
    a: Any
    b: Any = None


@dataclass
class Derived:
    """A field that the constructor does not take, and a constructor that would overwrite it."""

    a: Any
    total: Any = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.total = "set by __post_init__"


@attrs.define
class Defined:
    a: Any
    b: Any = None


@attrs.frozen
class FrozenAttrs:
    a: Any
    b: Any = None


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", arbitrary_types_allowed=True)
    a: Any = 1
    b: Any = 2
    _secret: Any = pydantic.PrivateAttr(default=0)


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    a: Any = 1


T = TypeVar("T")


class Box(pydantic.BaseModel, Generic[T]):
    content: T


class Root(pydantic.RootModel[list[int]]):
    pass


class Outer:
    class Inner(pydantic.BaseModel):
        a: int


@pydantic.dataclasses.dataclass
class ValidatedData:
    a: int


class ModelV1(pydantic.v1.BaseModel):
    a: Any = 1
    b: Any = 2
    _secret: Any = pydantic.v1.PrivateAttr(default=0)

    class Config:
        extra = "allow"


class Record(msgspec.Struct):
    a: Any
    b: Any = None


class FrozenRecord(msgspec.Struct, frozen=True):
    a: Any
    b: Any = None


class OpenRecord(msgspec.Struct, dict=True):
    a: Any


class Point(NamedTuple):
    x: Any
    y: Any = 0


Pair = namedtuple("Pair", "left right")


class Color(enum.Enum):
    RED = "r"
    GREEN = ("g", [1])


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Word(enum.StrEnum):
    YES = "yes"
    NO = "no"


class Access(enum.Flag):
    READ = enum.auto()
    WRITE = enum.auto()
    RUN = enum.auto()


class Bits(enum.IntFlag):
    ONE = 1
    TWO = 2


class Oops(Exception):
    """Its constructor takes other arguments than it hands on."""

    def __init__(self, code: Any, *, detail: Any) -> None:
        super().__init__(f"oops {code}")
        self.code = code
        self.detail = detail

    def __deepcopy__(self, memo: Any) -> "Oops":
        return Oops(copy.deepcopy(self.code, memo), detail=copy.deepcopy(self.detail, memo))


class Thing:
    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)


class SlotThing:
    __slots__ = ("__private", "a", "b")

    a: Any
    b: Any

    def __init__(self, **values: Any) -> None:
        for name, value in values.items():
            setattr(self, name, value)

    def hide(self, value: Any) -> "SlotThing":
        self.__private = value
        return self


class SlotAndDict(SlotThing):
    pass


class Text(str):
    note: Any


class Whole(int):
    pass


class Real(float):
    pass


class Complex(complex):
    pass


class Blob(bytes):
    pass


class Buffer(bytearray):
    pass


class Items(list):
    note: Any


class Mapping(dict):
    note: Any


class Tuple(tuple):
    pass


class Unique(set):
    pass


class FrozenUnique(frozenset):
    pass


class Queue(deque):
    pass


class Ordered(OrderedDict):
    pass


class Grouped(defaultdict):
    pass


class Tally(Counter):
    pass


class Moment(dt.datetime):
    pass


class Day(dt.date):
    pass


class Span(dt.timedelta):
    pass


class Money(Decimal):
    pass


def with_note(value: Any, note: Any) -> Any:
    """A value whose class lets it have attributes, with one."""
    value.note = note
    return value


# Deep equality.


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


# Scalars.

ZONES = [ZoneInfo("Europe/Berlin"), ZoneInfo("America/New_York"), ZoneInfo("Australia/Lord_Howe")]


def zones() -> st.SearchStrategy[dt.tzinfo]:
    offsets = st.timedeltas(dt.timedelta(hours=-23), dt.timedelta(hours=23))
    return st.one_of(
        st.just(dt.UTC),
        st.sampled_from(ZONES),
        st.builds(dt.timezone, offsets),
        st.builds(dt.timezone, offsets, st.text(max_size=5)),
    )


def _folded(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.builds(lambda moment, fold: moment.replace(fold=fold), strategy, st.integers(0, 1))


def datetimes() -> st.SearchStrategy[dt.datetime]:
    return _folded(st.datetimes(timezones=st.none() | zones()))


def texts() -> st.SearchStrategy[str]:
    surrogates = st.text(st.sampled_from("a\x00é\ud800\udfff\U0001f600"), max_size=6)
    return st.text(max_size=12) | surrogates


def integers() -> st.SearchStrategy[int]:
    edges = [2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**63) - 1, 10**900]
    return st.integers() | st.sampled_from(edges)


def decimals() -> st.SearchStrategy[Decimal]:
    odd = [
        "NaN",
        "-NaN",
        "sNaN",
        "sNaN123",
        "NaN7",
        "Infinity",
        "-Infinity",
        "-0",
        "0E-50",
        "1E+500",
    ]
    return st.decimals(allow_nan=False) | st.sampled_from(odd).map(Decimal)


def paths() -> st.SearchStrategy[pathlib.PurePath]:
    kinds = st.sampled_from([pathlib.Path, pathlib.PurePosixPath, pathlib.PureWindowsPath])
    names = st.text(st.sampled_from("ab. é\udc80"), max_size=4)
    return st.builds(lambda cls, parts: cls(*parts), kinds, st.lists(names, max_size=3))


def enums() -> st.SearchStrategy[enum.Enum]:
    flags = st.integers(0, 7).map(Access) | st.integers(0, 3).map(Bits)
    return st.sampled_from([*Color, *Level, *Word]) | flags


def hashable_scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.none(),
        st.booleans(),
        integers(),
        st.floats(),
        texts(),
        st.binary(max_size=12),
        enums(),
        st.complex_numbers(),
        decimals().filter(lambda number: not number.is_snan()),
        st.fractions(),
        st.uuids(),
        datetimes(),
        st.dates(),
        _folded(st.times(timezones=st.none() | zones())),
        st.timedeltas(),
        zones(),
        paths(),
        st.builds(range, st.integers(), st.integers(), st.integers(1, 9)),
        texts().map(Text),
        integers().map(Whole),
        st.floats().map(Real),
        st.binary(max_size=6).map(Blob),
        st.just(Ellipsis),
        st.sampled_from([int, dict, Plain, Color]),
    )


def scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        hashable_scalars(),
        decimals(),
        st.binary(max_size=12).map(bytearray),
        st.binary(max_size=6).map(Buffer),
        datetimes().map(lambda moment: Moment.combine(moment.date(), moment.timetz())),
        st.dates().map(lambda day: Day(day.year, day.month, day.day)),
        decimals().map(Money),
        arrays(),
        numpy_scalars(),
        pandas_scalars(),
        tables(),
        messages(),
    )


def keys() -> st.SearchStrategy[Any]:
    """What may be a key: scalars, and frozen containers and objects of them."""
    return st.recursive(hashable_scalars(), _frozen_containers, max_leaves=3)


def _frozen_containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(
        st.lists(inner, max_size=3).map(tuple),
        st.frozensets(inner, max_size=3),
        st.builds(Frozen, inner, inner),
        st.builds(Point, inner, inner),
        st.builds(FrozenAttrs, inner, inner),
    )


# numpy, pandas and LangChain.

DTYPES = ["?", "i1", "u2", ">i4", "<i8", "f2", "<f4", ">f8", "c8", "M8[ns]", "m8[D]", "S3", "U2"]
RECORDS = np.dtype([("a", "<i4"), ("b", ">f8", (2,)), ("c", [("d", "S2")])])
ALIGNED = np.dtype([("a", "i1"), ("b", "i8")], align=True)


def arrays() -> st.SearchStrategy[Any]:
    shapes = st_numpy.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3)
    kinds = st.sampled_from([np.dtype(name) for name in DTYPES] + [RECORDS, ALIGNED])
    orders = st.sampled_from([np.ascontiguousarray, np.asfortranarray, lambda a: a[::-1]])
    plain = st.tuples(kinds, shapes, st.integers(0, 2**32)).map(_filled_array)
    objects = st.lists(texts() | st.none() | st.integers(), max_size=4).map(_object_array)
    return st.one_of(
        plain,
        objects,
        st.builds(lambda array, order: order(array) if array.ndim else array, plain, orders),
    )


def _filled_array(given: tuple[Any, tuple[int, ...], int]) -> Any:
    dtype, shape, seed = given
    array = np.zeros(shape, dtype)
    random = np.random.default_rng(seed)
    if dtype.kind in "iufcmMb":
        return random.integers(-100, 100, shape).astype(dtype)
    if dtype.kind in "SU":
        return random.integers(0, 99, shape).astype(dtype)
    for name in dtype.names:
        if dtype[name].kind in "if" and dtype[name].shape == ():
            array[name] = random.integers(-100, 100, shape)
    return array


def _object_array(parts: list[Any]) -> Any:
    array = np.empty(len(parts), dtype=object)
    array[:] = parts
    return array


def numpy_scalars() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.floats().map(np.float64),
        st.floats(width=32).map(np.float32),
        st.integers(-128, 127).map(np.int8),
        st.integers(0, 2**64 - 1).map(np.uint64),
        st.booleans().map(np.bool_),
        st.text(max_size=4).map(np.str_),
        st.binary(max_size=4).map(np.bytes_),
        st.integers(-(10**6), 10**6).map(lambda days: np.datetime64(days, "D")),
        st.just(np.datetime64("NaT", "D")),
        st.just(np.zeros(1, RECORDS)[0]),
    )


def pandas_scalars() -> st.SearchStrategy[Any]:
    moments = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2200, 1, 1))
    stamps = st.builds(
        lambda moment, unit, zone: (
            pd.Timestamp(moment).as_unit(unit).tz_localize("UTC").tz_convert(zone)
        ),
        moments,
        st.sampled_from(["us", "ns"]),
        st.none() | st.sampled_from([dt.UTC, *ZONES]),
    )
    spans = st.integers(-(10**15), 10**15).map(lambda count: pd.Timedelta(count, "ns"))
    far = st.integers(3000, 9999).map(
        lambda year: pd.Timestamp(dt.datetime(year, 1, 1)).as_unit("s")
    )
    return st.one_of(stamps, spans, far, st.sampled_from([pd.NaT, pd.NA]))


def tables() -> st.SearchStrategy[Any]:
    numbers = st.lists(st.floats(), max_size=4)
    words = st.lists(st.text(max_size=4) | st.none(), max_size=4)
    frames = st.integers(0, 3).flatmap(
        lambda rows: st.fixed_dictionaries(
            {
                "n": st.lists(st.integers(-9, 9), min_size=rows, max_size=rows),
                "w": st.lists(st.text(max_size=3), min_size=rows, max_size=rows),
            }
        )
    )
    return st.one_of(
        st.builds(pd.Series, numbers, name=texts() | st.none(), dtype=st.just("float64")),
        st.builds(pd.Series, words, dtype=st.sampled_from(["object", "string", "category"])),
        st.builds(
            pd.Series, st.lists(st.none() | st.integers(-9, 9), max_size=4), dtype=st.just("Int64")
        ),
        st.builds(pd.DataFrame, frames),
        st.builds(pd.Index, st.lists(st.integers(-9, 9), max_size=4), dtype=st.just("int16")),
    )


def messages() -> st.SearchStrategy[Any]:
    content = st.text(max_size=20)
    call = {"name": "search", "args": {"q": "x"}, "id": "call-1", "type": "tool_call"}
    return st.one_of(
        st.builds(HumanMessage, content=content, id=st.none() | content),
        st.builds(SystemMessage, content=content),
        st.builds(AIMessage, content=content, tool_calls=st.just([call]) | st.just([])),
        st.builds(ToolMessage, content=content, tool_call_id=content, artifact=st.none() | content),
    )


# Containers and objects.


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several = st.lists(inner, max_size=4)
    names = st.dictionaries(texts(), inner, max_size=4)
    anything = st.dictionaries(keys(), inner, max_size=4)
    identifiers = st.dictionaries(st.sampled_from(["a", "b", "c"]), inner, max_size=3)
    return st.one_of(
        several,
        several.map(tuple),
        several.map(deque),
        several.map(lambda parts: deque(parts, maxlen=5)),
        several.map(Items),
        several.map(Tuple),
        several.map(Queue),
        several.map(_object_array),
        st.sets(keys(), max_size=4),
        st.frozensets(keys(), max_size=4),
        st.sets(keys(), max_size=4).map(Unique),
        st.frozensets(keys(), max_size=4).map(FrozenUnique),
        names,
        anything,
        anything.map(OrderedDict),
        anything.map(Mapping),
        anything.map(Ordered),
        anything.map(types.MappingProxyType),
        anything.map(lambda items: defaultdict(list, items)),
        anything.map(lambda items: Grouped(int, items)),
        st.dictionaries(keys(), st.integers(), max_size=3).map(Counter),
        identifiers.map(lambda items: types.SimpleNamespace(**items)),
        identifiers.map(lambda items: Thing(**items)),
        st.builds(with_note, texts().map(Text), inner),
        st.builds(with_note, several.map(Items), inner),
        st.builds(with_note, anything.map(Mapping), inner),
        *(
            st.builds(cls, inner, inner)
            for cls in (Plain, Frozen, Slotted, FrozenSlotted, Defined, FrozenAttrs)
        ),
        *(st.builds(cls, inner, inner) for cls in (Record, FrozenRecord, Point, Pair)),
        st.builds(_derived, inner, inner),
        st.builds(lambda a, b: SlotThing(a=a).hide(b), inner, inner),
        st.builds(lambda a, b: SlotAndDict(b=a, c=b), inner, inner),
        st.builds(_model, inner, inner, identifiers),
        st.builds(_model_v1, inner, inner),
        st.builds(lambda a: FrozenModel.model_construct(a=a), inner),
        st.builds(lambda a, b: Oops(a, detail=b), st.integers() | st.text(max_size=3), inner),
        several.map(lambda parts: ValueError(*parts)),
        st.builds(slice, inner, inner, inner),
    )


def _derived(a: Any, total: Any) -> Derived:
    made = Derived(a)
    made.total = total
    return made


def _model(a: Any, secret: Any, extra: dict[str, Any]) -> Model:
    made = Model.model_construct(a=a, **{f"extra_{name}": value for name, value in extra.items()})
    made._secret = secret
    return made


def _model_v1(a: Any, secret: Any) -> ModelV1:
    made = ModelV1.construct({"a"}, a=a, b=2)
    made._secret = secret
    return made


def values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """Any value that a checkpoint keeps, nested at random."""
    return st.recursive(scalars(), _containers, max_leaves=max_leaves)


def json_values(max_leaves: int = 12) -> st.SearchStrategy[Any]:
    """What most states are made of: the values of JSON."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
    return st.recursive(leaves, _json_containers, max_leaves=max_leaves)


def _json_containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=8), inner, max_size=5)


def _unset_slot() -> SlotThing:
    return SlotThing(b=1)


def _decode_error() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte")


def _noted_error() -> ValueError:
    error = ValueError("x")
    error.add_note("while testing")
    return error


def _reordered() -> Ordered:
    made = Ordered(a=1, b=2, c=3)
    made.move_to_end("a")
    return made


def _secret_model() -> Model:
    model = Model(a=[1], **{"more": {"x": 1}})
    model._secret = {"k": (1,)}
    return model


def _open_record() -> OpenRecord:
    record = OpenRecord(1)
    record.__dict__["extra"] = [1]
    return record


SAMPLES: dict[str, Any] = {
    "None": None,
    "bool": True,
    "int": 7,
    "int of any size": -(10**400),
    "float nan": math.nan,
    "float -inf": -math.inf,
    "float -0.0": -0.0,
    "str": "é\U0001f600\x00",
    "str with a lone surrogate": "a\ud800b",
    "dict with a lone surrogate key": {"\udc80": 1},
    "bytes": b"\x00\xff",
    "bytearray": bytearray(b"\x00\xff"),
    "list": [1, [2, []]],
    "tuple": (1, (2, ())),
    "set": {1, "a", (1, 2), frozenset({3})},
    "frozenset": frozenset({None, 2.5}),
    "deque": deque([1, 2], maxlen=3),
    "dict in its order": {"b": 1, "a": 2},
    "dict with any keys": {1: "a", (1, 2): "b", None: "c", 2.5: "d", b"x": "e", Color.RED: "f"},
    "dict with keys that look alike": {1: "int", "1": "str", b"1": "bytes"},
    "dict with keys of a str subclass": {Text("a"): 1, Word.YES: 2},
    "OrderedDict": OrderedDict(b=1, a=2),
    "defaultdict": defaultdict(list, {"a": [1]}),
    "defaultdict without a factory": defaultdict(None, a=1),
    "Counter": Counter("aab"),
    "mappingproxy": types.MappingProxyType({"a": 1}),
    "SimpleNamespace": types.SimpleNamespace(a=1, b=[2]),
    "range": range(1, 10**30, 7),
    "slice": slice(1, None, (2,)),
    "complex": complex(-0.0, math.nan),
    "Decimal": Decimal("1.50"),
    "Decimal NaN": Decimal("-NaN12"),
    "Decimal sNaN": Decimal("sNaN"),
    "Decimal Infinity": Decimal("-Infinity"),
    "Fraction": Fraction(-3, 10**40),
    "datetime": dt.datetime(2024, 2, 29, 1, 2, 3, 4),
    "datetime in UTC": dt.datetime(2024, 2, 29, tzinfo=dt.UTC),
    "datetime in a zone, fold=1": dt.datetime(2024, 10, 27, 2, 30, tzinfo=ZONES[0], fold=1),
    "date": dt.date(1, 1, 1),
    "time in a zone": dt.time(23, 59, tzinfo=dt.timezone(dt.timedelta(hours=-3.5), "X"), fold=1),
    "timedelta": dt.timedelta(-1, 5, 7),
    "timezone": dt.timezone(dt.timedelta(minutes=90)),
    "timezone of offset 0 with a name": dt.timezone(dt.timedelta(0), "GMT"),
    "ZoneInfo": ZONES[1],
    "UUID": uuid.UUID(int=5),
    "Path": pathlib.Path("a/b.txt"),
    "Path with a lone surrogate": pathlib.Path("a\udcff"),
    "PureWindowsPath": pathlib.PureWindowsPath("C:\\x"),
    "Ellipsis": Ellipsis,
    "NotImplemented": NotImplemented,
    "class": [int, Plain, Color],
    "Enum": Color.GREEN,
    "IntEnum": Level.HIGH,
    "StrEnum": Word.YES,
    "Flag": Access.READ,
    "Flag of several": Access.READ | Access.RUN,
    "Flag of none": Access(0),
    "IntFlag with unknown bits": Bits(9),
    "NamedTuple": Point([1], {"a": 2}),
    "namedtuple": Pair(1, 2),
    "dataclass": Plain([1], Plain(2)),
    "frozen dataclass": Frozen((1,)),
    "dataclass with slots": Slotted({"a": 1}),
    "frozen dataclass with slots": FrozenSlotted(1, 2),
    "dataclass with a field of init=False": _derived(1, "changed later"),
    "attrs": Defined([1]),
    "frozen attrs": FrozenAttrs((1,)),
    "pydantic v2 with extra, private and set fields": _secret_model(),
    "frozen pydantic v2": FrozenModel(),
    "generic pydantic v2": Box[int](content=1),
    "pydantic v2 root model": Root([1, 2]),
    "pydantic dataclass": ValidatedData(3),
    "pydantic v1": _model_v1([1], {"k": 2}),
    "msgspec.Struct": Record([1], {"a": 2}),
    "frozen msgspec.Struct": FrozenRecord((1,)),
    "msgspec.Struct with a __dict__": _open_record(),
    "exception": ValueError("bad", 7),
    "exception with its own constructor": Oops(7, detail=[1]),
    "exception with notes": _noted_error(),
    "KeyError": KeyError("k"),
    "OSError": OSError(2, "No such file"),
    "OSError of a file": FileNotFoundError(2, "No such file", "a.txt"),
    "OSError of two files": OSError(18, "Cross-device", "a", None, "b"),
    "ImportError": ImportError("no", name="m", path="p"),
    "StopIteration": StopIteration(5),
    "SystemExit": SystemExit(3),
    "UnicodeDecodeError": _decode_error(),
    "ExceptionGroup": ExceptionGroup("many", [ValueError(1), ExceptionGroup("x", [KeyError(2)])]),
    "plain object": Thing(a=1, b=[2]),
    "plain object without attributes": Thing(),
    "object with slots": SlotThing(a=1, b=2).hide([3]),
    "object with an empty slot": _unset_slot(),
    "object with slots and a __dict__": SlotAndDict(a=1, c=2),
    "str subclass": with_note(Text("a"), [1]),
    "int subclass": Whole(2**70),
    "float subclass": Real(-0.0),
    "complex subclass": Complex(1, -0.0),
    "bytes subclass": Blob(b"x"),
    "bytearray subclass": Buffer(b"x"),
    "list subclass": with_note(Items([1, 2]), "n"),
    "dict subclass": with_note(Mapping({1: 2, "a": [3]}), "n"),
    "tuple subclass": Tuple((1, 2)),
    "set subclass": Unique({1, "a"}),
    "frozenset subclass": FrozenUnique({1, "a"}),
    "deque subclass": Queue([1, 2], maxlen=2),
    "OrderedDict subclass": _reordered(),
    "defaultdict subclass": Grouped(list, a=[1]),
    "Counter subclass": Tally("aab"),
    "datetime subclass": Moment(2024, 1, 1, tzinfo=dt.UTC),
    "date subclass": Day(2024, 1, 1),
    "timedelta subclass": Span(1, 2, 3),
    "Decimal subclass": Money("1.10"),
    "HumanMessage": HumanMessage(content="hi", id="1", additional_kwargs={"a": [1]}),
    "AIMessage": AIMessage(
        content=[{"type": "text", "text": "x"}],
        tool_calls=[{"name": "f", "args": {"a": 1}, "id": "1", "type": "tool_call"}],
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
    ),
    "ToolMessage": ToolMessage(content="x", tool_call_id="1", artifact=(1, 2), status="error"),
    "pandas.Timestamp": pd.Timestamp("2024-01-01 00:00:00.000000001"),
    "pandas.Timestamp in a zone": pd.Timestamp("2020-10-25 01:30", tz="UTC").tz_convert(
        "Europe/Berlin"
    ),
    "pandas.Timestamp out of nanoseconds": pd.Timestamp("5000-01-01").as_unit("s"),
    "pandas.Timedelta": pd.Timedelta(5, "ms"),
    "pandas.NaT": pd.NaT,
    "pandas.NA": pd.NA,
    "pandas.Period": pd.Period("2020-03", "M"),
    "pandas.Interval": pd.Interval(0.5, 1, closed="left"),
    "Series": pd.Series([1.5, math.nan], index=["x", "y"], name="n"),
    "Series of str": pd.Series(["a", None]),
    "Series of objects": pd.Series(["a", "b"], dtype=object),
    "Series of strings with NA": pd.Series(["a", pd.NA], dtype="string"),
    "Series of nullable integers": pd.Series([1, None], dtype="Int64"),
    "Series of ordered categories": pd.Series(
        pd.Categorical(["a", None], categories=["b", "a"], ordered=True)
    ),
    "Series of moments in a zone": pd.Series(pd.date_range("2020", periods=3, tz="Europe/Berlin")),
    "Series of periods": pd.Series(pd.period_range("2020", periods=3, freq="M")),
    "Series of intervals": pd.Series(pd.interval_range(0, 3)),
    "Series by several levels": pd.Series(
        [1, 2],
        index=pd.MultiIndex.from_arrays(
            [pd.Categorical(["a", "b"]), np.array([1, 2], "int8")], names=["c", "n"]
        ),
    ),
    "DataFrame": pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": [True, False]}, index=[5, 7]),
    "DataFrame without rows": pd.DataFrame(columns=["a", "b"]),
    "DataFrame with equal column names": pd.DataFrame([[1, "x"]], columns=["a", "a"]),
    "DatetimeIndex": pd.date_range("2020", periods=4, freq="D"),
    "RangeIndex": pd.RangeIndex(0, 10, 2, name="r"),
    "Index of objects": pd.Index(["a"], dtype=object),
}

SAMPLES |= {
    f"numpy array, {name}": array
    for name, array in {
        **{dtype: np.ones((2, 3), dtype) for dtype in DTYPES},
        "no elements": np.empty((0, 3)),
        "no dimensions": np.array(5),
        "Fortran order": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "every second element": np.arange(10)[::2],
        "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
        "structured": np.ones(2, RECORDS),
        "aligned": np.ones(2, ALIGNED),
        "with titles": np.zeros(2, [(("title", "a"), "i4")]),
        "fields out of order": np.zeros(
            1, np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]})
        ),
        "objects": _object_array([1, "a", [2], np.arange(3), Plain(1)]),
        "object of no dimension": np.array({"a": 1}, dtype=object),
    }.items()
}
SAMPLES |= {
    f"numpy scalar, {type(scalar).__name__} {scalar!r}": scalar
    for scalar in (
        np.float64(-0.0),
        np.float32("nan"),
        np.int8(-3),
        np.uint64(2**64 - 1),
        np.bool_(True),
        np.str_("é"),
        np.str_(""),
        np.bytes_(b"a\x00"),
        np.datetime64("2020-01-01"),
        np.timedelta64(5, "D"),
        np.datetime64("NaT", "D"),
        np.complex64(1j),
        np.void(b"abc"),
        np.longdouble(1),
        np.ones(1, RECORDS)[0],
    )
}


def replaced(value: Any, **changes: Any) -> Any:
    """A dataclass with other fields."""
    return dataclasses.replace(value, **changes)
