"""Hypothesis strategies for every type that Holdfast keeps; ``values()`` nests them at random."""

import copy
import datetime as dt
import enum
import pathlib
import types
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from decimal import Decimal
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


@dataclass(frozen=True)
class Quiet:
    """All of them read the same."""

    a: Any = field(repr=False)


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
    objects = st.lists(texts() | st.none() | st.integers(), max_size=4).map(object_array)
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


def object_array(parts: list[Any]) -> Any:
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
        several.map(object_array),
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
        st.builds(derived, inner, inner),
        st.builds(lambda a, b: SlotThing(a=a).hide(b), inner, inner),
        st.builds(lambda a, b: SlotAndDict(b=a, c=b), inner, inner),
        st.builds(_model, inner, inner, identifiers),
        st.builds(model_v1, inner, inner),
        st.builds(lambda a: FrozenModel.model_construct(a=a), inner),
        st.builds(lambda a, b: Oops(a, detail=b), st.integers() | st.text(max_size=3), inner),
        several.map(lambda parts: ValueError(*parts)),
        st.builds(slice, inner, inner, inner),
    )


def derived(a: Any, total: Any) -> Derived:
    made = Derived(a)
    made.total = total
    return made


def _model(a: Any, secret: Any, extra: dict[str, Any]) -> Model:
    made = Model.model_construct(a=a, **{f"extra_{name}": value for name, value in extra.items()})
    made._secret = secret
    return made


def model_v1(a: Any, secret: Any) -> ModelV1:
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
