"""Kinds of pandas values; pandas is not imported here, only used where it already is."""

from __future__ import annotations

import sys
from decimal import Decimal
from typing import Any

from holdfast.core.kinds.plain_shapes import WHOLE
from holdfast.core.kinds.table import (
    Kind,
    Reviver,
    Revives,
    Unkeepable,
    add,
    add_matcher,
    all_exactly,
    exactly,
)

PANDAS = 52


def _column(values: Any) -> list[Any]:
    """Return the dtype of a column and, for numpy types, its array; else its elements."""
    np, pd = sys.modules["numpy"], sys.modules["pandas"]
    if isinstance(values.dtype, np.dtype):
        return [None, values.to_numpy(copy=True)]
    if isinstance(values.dtype, pd.CategoricalDtype):
        categorical = values.array if isinstance(values, pd.Series) else values
        codes = categorical.codes.tolist()
        return ["category", [codes, _index(categorical.categories), bool(categorical.ordered)]]
    return [str(values.dtype), list(values)]


def _make_column(plain: list[Any]) -> Any:
    np, pd = sys.modules["numpy"], sys.modules["pandas"]
    dtype, data = exactly(plain, list)
    if dtype is None:
        return exactly(data, np.ndarray)
    if dtype == "category":
        codes, categories, ordered = exactly(data, list)
        return pd.Categorical.from_codes(
            all_exactly(codes, int), _make_index(categories), ordered=exactly(ordered, bool)
        )
    for value in exactly(data, list):
        _scalar(value)
    return pd.array(data, dtype=exactly(dtype, str))


def _scalar(value: Any) -> Any:
    """Return the value, if it is one that columns of pandas' own types are made of."""
    np, pd = sys.modules["numpy"], sys.modules["pandas"]
    if issubclass(type(value), np.generic):
        return value
    missing = (type(None), type(pd.NA), type(pd.NaT))
    spans = (pd.Timestamp, pd.Timedelta, pd.Period, pd.Interval)
    return exactly(value, str, int, float, bool, bytes, Decimal, *missing, *spans)


def _index(index: Any) -> list[Any]:
    pd = sys.modules["pandas"]
    if type(index) is pd.RangeIndex:
        return ["range", index.start, index.stop, index.step, index.name]
    if isinstance(index, pd.MultiIndex):
        levels = [_index(level) for level in index.levels]
        return ["multi", levels, [codes.tolist() for codes in index.codes], list(index.names)]
    dated = isinstance(index, (pd.DatetimeIndex, pd.TimedeltaIndex))
    return ["index", *_column(index), index.name, index.freqstr if dated else None]


def _make_index(plain: list[Any]) -> Any:
    pd = sys.modules["pandas"]
    kind, *rest = exactly(plain, list)
    if kind == "range":
        *bounds, name = rest
        return pd.RangeIndex(*all_exactly(bounds, int), name=name)
    if kind == "multi":
        levels, codes, names = rest
        return pd.MultiIndex(
            levels=[_make_index(level) for level in exactly(levels, list)],
            codes=[all_exactly(part, int) for part in exactly(codes, list)],
            names=exactly(names, list),
        )
    dtype, data, name, freq = rest
    column = _make_column([dtype, data])
    index = pd.Index(column, dtype=column.dtype, name=name)
    if freq is not None:
        index.freq = exactly(freq, str)
    return index


def _series(column: list[Any], index: Any, name: Any = None) -> Any:
    made = _make_column(column)
    return sys.modules["pandas"].Series(made, index=index, name=name, dtype=made.dtype)


def _count(value: Any) -> list[Any]:
    """Return a moment or a span as a number of its own units."""
    return [int(value.asm8.view("i8")), value.unit]


def _reduce(value: Any) -> list[Any]:
    pd = sys.modules["pandas"]
    cls = type(value)
    if value is pd.NaT or value is pd.NA:
        return ["pandas:" + repr(value).strip("<>"), None]
    if cls is pd.Timestamp:
        return ["pandas:Timestamp", [*_count(value), value.tzinfo, value.fold]]
    if cls is pd.Timedelta:
        return ["pandas:Timedelta", _count(value)]
    if cls is pd.Period:
        return ["pandas:Period", [value.ordinal, value.freqstr]]
    if cls is pd.Interval:
        return ["pandas:Interval", [value.left, value.right, value.closed]]
    if cls is pd.Series:
        return ["pandas:Series", [_column(value), _index(value.index), value.name, value.attrs]]
    if cls is pd.DataFrame:
        columns = [_column(value.iloc[:, i]) for i in range(value.shape[1])]
        axes = [_index(value.columns), _index(value.index)]
        return ["pandas:DataFrame", [columns, *axes, value.attrs]]
    if isinstance(value, pd.Index):
        return ["pandas:Index", _index(value)]
    raise Unkeepable("cannot be checkpointed; convert it or register_type(...) it")


def _revive(plain: list[Any], reviver: Reviver) -> Any:
    pd = sys.modules.get("pandas")
    if pd is None:
        return reviver.missing(PANDAS, plain, "is not imported")
    kind, main = exactly(plain, list)
    if kind == "pandas:NaT":
        return pd.NaT
    if kind == "pandas:NA":
        return pd.NA
    make = _makers.get(exactly(kind, str))
    if make is None:
        raise ValueError(f"no such pandas kind: {kind}")
    return make(pd, *exactly(main, list))


def _timestamp(pd: Any, count: int, unit: str, tz: Any, fold: int) -> Any:
    moment = sys.modules["numpy"].datetime64(exactly(count, int), exactly(unit, str))
    stamp = pd.Timestamp(moment)
    if tz is not None:
        stamp = stamp.tz_localize("UTC").tz_convert(tz)
    return stamp if stamp.fold == fold else stamp.replace(fold=exactly(fold, int))


def _timedelta(pd: Any, count: int, unit: str) -> Any:
    return pd.Timedelta(sys.modules["numpy"].timedelta64(exactly(count, int), exactly(unit, str)))


def _period(pd: Any, ordinal: int, freq: str) -> Any:
    return pd.Period(ordinal=exactly(ordinal, int), freq=exactly(freq, str))


def _interval(pd: Any, left: Any, right: Any, closed: str) -> Any:
    return pd.Interval(_scalar(left), _scalar(right), exactly(closed, str))


def _make_series(pd: Any, column: Any, index: Any, name: Any, attrs: Any) -> Any:
    series = _series(column, _make_index(index), name)
    series.attrs.update(exactly(attrs, dict))
    return series


def _make_frame(pd: Any, columns: Any, names: Any, index: Any, attrs: Any) -> Any:
    rows = _make_index(index)
    parts = {i: _series(part, rows) for i, part in enumerate(exactly(columns, list))}
    frame = pd.DataFrame(parts, index=rows)
    frame.columns = _make_index(names)
    frame.attrs.update(exactly(attrs, dict))
    return frame


_makers: dict[str, Any] = {
    "pandas:Timestamp": _timestamp,
    "pandas:Timedelta": _timedelta,
    "pandas:Period": _period,
    "pandas:Interval": _interval,
    "pandas:Series": _make_series,
    "pandas:DataFrame": _make_frame,
    "pandas:Index": lambda pd, *parts: _make_index(list(parts)),
}

PANDAS_KIND = add(Kind(PANDAS, "pandas", _reduce, _revive, Revives.OWN_TYPES, WHOLE))


def _match(cls: type) -> Kind | None:
    pd = sys.modules.get("pandas")
    if pd is not None and hasattr(pd, "DataFrame") and cls.__module__.split(".")[0] == "pandas":
        return PANDAS_KIND
    return None


add_matcher(_match)
