"""Kinds of numpy and pandas values; neither is imported here, only used where it already is."""

from __future__ import annotations

import sys
from typing import Any

from holdfast.core.kinds import Kind, Reader, Unkeepable, add, add_matcher

NUMPY_ARRAY, NUMPY_SCALAR, PANDAS = 50, 51, 52


def _dtype(dtype: Any) -> Any:
    return dtype.str if dtype.names is None else dtype.descr


def _make_dtype(plain: Any) -> Any:
    np = sys.modules["numpy"]
    if isinstance(plain, list):
        plain = [tuple(tuple(part) if isinstance(part, list) else part for part in field) for field in plain]
    return np.dtype(plain)


def _reduce_array(array: Any) -> list[Any]:
    np = sys.modules["numpy"]
    if type(array) is not np.ndarray:
        raise Unkeepable("is a subclass of numpy.ndarray; convert it or register_type(...) it")
    if array.dtype.hasobject:
        if array.dtype.names is not None:
            raise Unkeepable("a structured array that holds objects cannot be checkpointed")
        return ["numpy:ndarray", array.ravel().tolist(), "|O", list(array.shape)]
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    return ["numpy:ndarray", array.tobytes(order), _dtype(array.dtype), list(array.shape), order]


def _revive_array(plain: list[Any], reader: Reader) -> Any:
    np = sys.modules.get("numpy")
    if np is None:
        return reader.missing(NUMPY_ARRAY, plain, "is not imported")
    _, data, dtype, shape, *order = plain
    if dtype == "|O":
        array = np.empty(len(data), dtype=object)
        for i, part in enumerate(data):
            array[i] = part
        return array.reshape(shape)
    made = _make_dtype(dtype)
    if made.hasobject:
        raise ValueError("raw bytes cannot hold objects")
    return np.frombuffer(bytearray(data), dtype=made).reshape(shape, order=order[0])


def _reduce_scalar(scalar: Any) -> list[Any]:
    return ["numpy:generic", scalar.tobytes(), _dtype(scalar.dtype)]


def _revive_scalar(plain: list[Any], reader: Reader) -> Any:
    np = sys.modules.get("numpy")
    if np is None:
        return reader.missing(NUMPY_SCALAR, plain, "is not imported")
    made = _make_dtype(plain[2])
    if made.hasobject:
        raise ValueError("raw bytes cannot hold an object")
    if made.itemsize == 0:
        return made.type()
    return np.frombuffer(plain[1], dtype=made)[0]


def _column(values: Any) -> list[Any]:
    """A column as its dtype and, for numpy types, its array; else its elements one by one."""
    np = sys.modules["numpy"]
    if isinstance(values.dtype, np.dtype):
        return [None, values.to_numpy(copy=True)]
    if isinstance(values.dtype, sys.modules["pandas"].CategoricalDtype):
        categorical = values.array if hasattr(values, "array") else values
        return [
            "category",
            [categorical.codes.tolist(), _index(categorical.categories), bool(categorical.ordered)],
        ]
    return [str(values.dtype), list(values)]


def _make_column(plain: list[Any]) -> Any:
    pd = sys.modules["pandas"]
    dtype, data = plain
    if dtype == "category":
        codes, categories, ordered = data
        return pd.Categorical.from_codes(codes, _make_index(categories), ordered=ordered)
    return data if dtype is None else pd.array(data, dtype=dtype)


def _index(index: Any) -> list[Any]:
    pd = sys.modules["pandas"]
    if type(index) is pd.RangeIndex:
        return ["range", index.start, index.stop, index.step, index.name]
    if isinstance(index, pd.MultiIndex):
        return ["multi", [list(row) for row in index], list(index.names)]
    freq = getattr(index, "freqstr", None)
    return ["index", *_column(index), index.name, freq]


def _make_index(plain: list[Any]) -> Any:
    pd = sys.modules["pandas"]
    kind, *rest = plain
    if kind == "range":
        start, stop, step, name = rest
        return pd.RangeIndex(start, stop, step, name=name)
    if kind == "multi":
        return pd.MultiIndex.from_tuples([tuple(row) for row in rest[0]], names=rest[1])
    dtype, data, name, freq = rest
    index = pd.Index(_make_column([dtype, data]), name=name)
    if freq is not None:
        index.freq = freq
    return index


def _reduce_pandas(value: Any) -> list[Any]:
    pd = sys.modules["pandas"]
    cls = type(value)
    if value is pd.NaT or value is pd.NA:
        return ["pandas:" + repr(value).strip("<>"), None]
    if cls is pd.Timestamp:
        return ["pandas:Timestamp", [value.value, value.unit, value.tzinfo, value.fold]]
    if cls is pd.Timedelta:
        return ["pandas:Timedelta", [value.value, value.unit]]
    if cls is pd.Series:
        return ["pandas:Series", [_column(value), _index(value.index), value.name, value.attrs]]
    if cls is pd.DataFrame:
        columns = [_column(value.iloc[:, i]) for i in range(value.shape[1])]
        return ["pandas:DataFrame", [columns, _index(value.columns), _index(value.index), value.attrs]]
    if isinstance(value, pd.Index):
        return ["pandas:Index", _index(value)]
    raise Unkeepable("cannot be checkpointed; convert it or register_type(...) it")


def _revive_pandas(plain: list[Any], reader: Reader) -> Any:
    pd = sys.modules.get("pandas")
    if pd is None:
        return reader.missing(PANDAS, plain, "is not imported")
    kind, main = plain
    if kind in ("pandas:NaT", "pandas:NA"):
        return getattr(pd, kind[7:])
    if kind == "pandas:Timestamp":
        value, unit, tz, fold = main
        stamp = pd.Timestamp(value, unit="ns", tz="UTC").as_unit(unit)
        stamp = stamp.tz_localize(None) if tz is None else stamp.tz_convert(tz)
        return stamp.replace(fold=fold) if fold else stamp
    if kind == "pandas:Timedelta":
        return pd.Timedelta(main[0], unit="ns").as_unit(main[1])
    if kind == "pandas:Series":
        column, index, name, attrs = main
        series = pd.Series(_make_column(column), index=_make_index(index), name=name)
        series.attrs.update(attrs)
        return series
    if kind == "pandas:DataFrame":
        columns, names, index, attrs = main
        rows = _make_index(index)
        frame = pd.DataFrame({i: pd.Series(_make_column(c), index=rows) for i, c in enumerate(columns)}, index=rows)
        frame.columns = _make_index(names)
        frame.attrs.update(attrs)
        return frame
    if kind == "pandas:Index":
        return _make_index(main)
    raise ValueError(f"no such pandas kind: {kind}")


ARRAY_KIND = add(Kind(NUMPY_ARRAY, "ndarray", _reduce_array, _revive_array))
SCALAR_KIND = add(Kind(NUMPY_SCALAR, "numpy", _reduce_scalar, _revive_scalar))
PANDAS_KIND = add(Kind(PANDAS, "pandas", _reduce_pandas, _revive_pandas))


def _match(cls: type) -> Kind | None:
    np, pd = sys.modules.get("numpy"), sys.modules.get("pandas")
    if np is not None and hasattr(np, "generic"):
        if issubclass(cls, np.ndarray):
            return ARRAY_KIND
        if issubclass(cls, np.generic):
            return SCALAR_KIND
    if pd is not None and hasattr(pd, "DataFrame") and cls.__module__.split(".")[0] == "pandas":
        return PANDAS_KIND
    return None


add_matcher(_match)
