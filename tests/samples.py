"""``SAMPLES``: one fixed value for each type that Holdfast keeps, by its name."""

import datetime as dt
import math
import pathlib
import types
import uuid
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from tests import strategies as s


def _unset_slot() -> s.SlotThing:
    return s.SlotThing(b=1)


def _decode_error() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"a\xff", 1, 2, "invalid start byte")


def _noted_error() -> ValueError:
    error = ValueError("x")
    error.add_note("while testing")
    return error


def _reordered() -> s.Ordered:
    made = s.Ordered(a=1, b=2, c=3)
    made.move_to_end("a")
    return made


def _secret_model() -> s.Model:
    model = s.Model(a=[1], **{"more": {"x": 1}})
    model._secret = {"k": (1,)}
    return model


def _open_record() -> s.OpenRecord:
    record = s.OpenRecord(1)
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
    "dict with any keys": {1: "a", (1, 2): "b", None: "c", 2.5: "d", b"x": "e", s.Color.RED: "f"},
    "dict with keys that look alike": {1: "int", "1": "str", b"1": "bytes"},
    "dict with keys of a str subclass": {s.Text("a"): 1, s.Word.YES: 2},
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
    "datetime in a zone, fold=1": dt.datetime(2024, 10, 27, 2, 30, tzinfo=s.ZONES[0], fold=1),
    "date": dt.date(1, 1, 1),
    "time in a zone": dt.time(23, 59, tzinfo=dt.timezone(dt.timedelta(hours=-3.5), "X"), fold=1),
    "timedelta": dt.timedelta(-1, 5, 7),
    "timezone": dt.timezone(dt.timedelta(minutes=90)),
    "timezone of offset 0 with a name": dt.timezone(dt.timedelta(0), "GMT"),
    "ZoneInfo": s.ZONES[1],
    "UUID": uuid.UUID(int=5),
    "Path": pathlib.Path("a/b.txt"),
    "Path with a lone surrogate": pathlib.Path("a\udcff"),
    "PureWindowsPath": pathlib.PureWindowsPath("C:\\x"),
    "Ellipsis": Ellipsis,
    "NotImplemented": NotImplemented,
    "class": [int, s.Plain, s.Color],
    "Enum": s.Color.GREEN,
    "IntEnum": s.Level.HIGH,
    "StrEnum": s.Word.YES,
    "Flag": s.Access.READ,
    "Flag of several": s.Access.READ | s.Access.RUN,
    "Flag of none": s.Access(0),
    "IntFlag with unknown bits": s.Bits(9),
    "NamedTuple": s.Point([1], {"a": 2}),
    "namedtuple": s.Pair(1, 2),
    "dataclass": s.Plain([1], s.Plain(2)),
    "frozen dataclass": s.Frozen((1,)),
    "dataclass with slots": s.Slotted({"a": 1}),
    "frozen dataclass with slots": s.FrozenSlotted(1, 2),
    "dataclass with a field of init=False": s.derived(1, "changed later"),
    "attrs": s.Defined([1]),
    "frozen attrs": s.FrozenAttrs((1,)),
    "pydantic v2 with extra, private and set fields": _secret_model(),
    "frozen pydantic v2": s.FrozenModel(),
    "generic pydantic v2": s.Box[int](content=1),
    "pydantic v2 root model": s.Root([1, 2]),
    "pydantic dataclass": s.ValidatedData(3),
    "pydantic v1": s.model_v1([1], {"k": 2}),
    "msgspec.Struct": s.Record([1], {"a": 2}),
    "frozen msgspec.Struct": s.FrozenRecord((1,)),
    "msgspec.Struct with a __dict__": _open_record(),
    "exception": ValueError("bad", 7),
    "exception with its own constructor": s.Oops(7, detail=[1]),
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
    "plain object": s.Thing(a=1, b=[2]),
    "plain object without attributes": s.Thing(),
    "object with slots": s.SlotThing(a=1, b=2).hide([3]),
    "object with an empty slot": _unset_slot(),
    "object with slots and a __dict__": s.SlotAndDict(a=1, c=2),
    "str subclass": s.with_note(s.Text("a"), [1]),
    "int subclass": s.Whole(2**70),
    "float subclass": s.Real(-0.0),
    "complex subclass": s.Complex(1, -0.0),
    "bytes subclass": s.Blob(b"x"),
    "bytearray subclass": s.Buffer(b"x"),
    "list subclass": s.with_note(s.Items([1, 2]), "n"),
    "dict subclass": s.with_note(s.Mapping({1: 2, "a": [3]}), "n"),
    "tuple subclass": s.Tuple((1, 2)),
    "set subclass": s.Unique({1, "a"}),
    "frozenset subclass": s.FrozenUnique({1, "a"}),
    "deque subclass": s.Queue([1, 2], maxlen=2),
    "OrderedDict subclass": _reordered(),
    "defaultdict subclass": s.Grouped(list, a=[1]),
    "Counter subclass": s.Tally("aab"),
    "datetime subclass": s.Moment(2024, 1, 1, tzinfo=dt.UTC),
    "date subclass": s.Day(2024, 1, 1),
    "timedelta subclass": s.Span(1, 2, 3),
    "Decimal subclass": s.Money("1.10"),
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
        **{dtype: np.ones((2, 3), dtype) for dtype in s.DTYPES},
        "no elements": np.empty((0, 3)),
        "no dimensions": np.array(5),
        "Fortran order": np.asfortranarray(np.arange(6).reshape(2, 3)),
        "every second element": np.arange(10)[::2],
        "broadcast": np.broadcast_to(np.arange(3), (2, 3)),
        "structured": np.ones(2, s.RECORDS),
        "aligned": np.ones(2, s.ALIGNED),
        "with titles": np.zeros(2, [(("title", "a"), "i4")]),
        "fields out of order": np.zeros(
            1, np.dtype({"names": ["a", "b"], "formats": ["i4", "i4"], "offsets": [4, 0]})
        ),
        "objects": s.object_array([1, "a", [2], np.arange(3), s.Plain(1)]),
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
        np.ones(1, s.RECORDS)[0],
    )
}
