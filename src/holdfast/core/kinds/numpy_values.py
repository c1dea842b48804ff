"""Kinds of numpy values; numpy is not imported here, only used where it already is."""

from __future__ import annotations

import re
import sys
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

NUMPY_ARRAY, NUMPY_SCALAR = 50, 51

_OBJECTS = "|O"
_TEXT: dict[str, Any] = {"S": bytes, "U": str}
_plain_dtype = re.compile(r"[<>|][biufcmMSUV]\d+(\[[\w/]+\])?")


def _dtype(dtype: Any) -> Any:
    """Return a dtype as plain data: its short name, a shape and what it is of, or its fields."""
    np = sys.modules["numpy"]
    if dtype.subdtype is not None:
        inner, shape = dtype.subdtype
        return [_dtype(inner), list(shape)]
    if dtype.names is not None:
        fields = [dtype.fields[name] for name in dtype.names]
        return {
            "names": list(dtype.names),
            "formats": [_dtype(field[0]) for field in fields],
            "offsets": [field[1] for field in fields],
            "titles": [field[2] if len(field) > 2 else None for field in fields],
            "itemsize": dtype.itemsize,
            "aligned": dtype.isalignedstruct,
        }
    if not _plain_dtype.fullmatch(dtype.str) or np.dtype(dtype.str) != dtype:
        raise Unkeepable(f"of dtype {dtype} cannot be checkpointed; convert it with astype(...)")
    return dtype.str


def _make_dtype(plain: Any) -> Any:
    np = sys.modules["numpy"]
    if type(plain) is str:
        if not _plain_dtype.fullmatch(plain):
            raise ValueError(f"no plain dtype: {plain[:40]!r}")
        return np.dtype(plain)
    if type(plain) is list:
        inner, shape = plain
        return np.dtype((_make_dtype(inner), tuple(all_exactly(shape, int))))
    fields = exactly(plain, dict)
    made = {
        "names": all_exactly(fields["names"], str),
        "formats": [_make_dtype(part) for part in exactly(fields["formats"], list)],
        "offsets": all_exactly(fields["offsets"], int),
        "titles": all_exactly(fields["titles"], str, type(None)),
        "itemsize": exactly(fields["itemsize"], int),
    }
    return np.dtype(made, align=exactly(fields["aligned"], bool))


def _reduce_array(array: Any) -> list[Any]:
    np = sys.modules["numpy"]
    if type(array) is not np.ndarray:
        raise Unkeepable("is a subclass of numpy.ndarray; convert it or register_type(...) it")
    if array.dtype == object:
        return ["numpy:ndarray", array.ravel().tolist(), _OBJECTS, list(array.shape)]
    if array.dtype.itemsize == 0:
        raise Unkeepable("cannot be checkpointed: its elements have no bytes")
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    data = _without_padding(array).tobytes(order)
    return ["numpy:ndarray", data, _dtype(array.dtype), list(array.shape), order]


def _without_padding(array: Any) -> Any:
    """Clear what is chance: of a long double, ten bytes count on x86."""
    np = sys.modules["numpy"]
    if array.dtype.char not in "gG" or np.finfo(array.dtype).nmant != 63:
        return array
    clean = array.copy(order="K")
    memory = clean.ravel(order="K").view(np.uint8)  # a view, as a copy is contiguous
    memory.reshape(-1, np.dtype("g").itemsize)[:, 10:] = 0
    return clean


def _revive_array(plain: list[Any], reviver: Reviver) -> Any:
    np = sys.modules.get("numpy")
    if np is None:
        return reviver.missing(NUMPY_ARRAY, plain, "is not imported")
    _, data, dtype, shape, *order = exactly(plain, list)
    all_exactly(shape, int)
    if type(dtype) is str and dtype == _OBJECTS:
        array = np.empty(len(exactly(data, list)), dtype=object)
        for i, part in enumerate(data):
            array[i] = part
        return array.reshape(shape)
    (order,) = all_exactly(order, str)
    made = _make_dtype(dtype)
    return np.frombuffer(bytearray(exactly(data, bytes)), dtype=made).reshape(shape, order=order)


def _reduce_scalar(scalar: Any) -> list[Any]:
    if scalar.dtype.kind in _TEXT:  # an array, or str(), would lose the NULs at its end
        text = _TEXT[scalar.dtype.kind].__getitem__(scalar, slice(None))
        return ["numpy:generic", text, scalar.dtype.kind]
    array = sys.modules["numpy"].asarray(scalar)
    return ["numpy:generic", _without_padding(array).tobytes(), _dtype(scalar.dtype)]


def _revive_scalar(plain: list[Any], reviver: Reviver) -> Any:
    np = sys.modules.get("numpy")
    if np is None:
        return reviver.missing(NUMPY_SCALAR, plain, "is not imported")
    _, data, dtype = exactly(plain, list)
    if type(dtype) is str and dtype in _TEXT:
        return (np.bytes_ if dtype == "S" else np.str_)(exactly(data, _TEXT[dtype]))
    made = _make_dtype(dtype)
    if made.itemsize == 0:
        return made.type(b"")
    (value,) = np.frombuffer(bytearray(exactly(data, bytes)), dtype=made)
    return value


ARRAY_KIND = add(
    Kind(NUMPY_ARRAY, "ndarray", _reduce_array, _revive_array, Revives.OWN_TYPES, WHOLE)
)
SCALAR_KIND = add(
    Kind(NUMPY_SCALAR, "numpy", _reduce_scalar, _revive_scalar, Revives.OWN_TYPES, WHOLE)
)


def _match(cls: type) -> Kind | None:
    np = sys.modules.get("numpy")
    if np is not None and hasattr(np, "generic"):
        if issubclass(cls, np.ndarray):
            return ARRAY_KIND
        if issubclass(cls, np.generic):
            return SCALAR_KIND
    return None


add_matcher(_match)
