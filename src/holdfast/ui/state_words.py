"""What is said of a value of a state in a word and on a line, without reviving its classes."""

from __future__ import annotations

from typing import Any

from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_format import PAGED_BYTES, PAGED_DICT, PAGED_LIST, PAGED_STR
from holdfast.core.kinds import Ready, Revives, by_code
from holdfast.core.kinds.standard import PAIRS
from holdfast.core.raw import Raw
from holdfast.core.shallow_reader import Hole, packed
from holdfast.core.short_repr import brief
from holdfast.errors import CheckpointIntegrityError, SerializationError
from holdfast.ui.branches import Branches

_WIDTH = 120
_DEEPEST = 4
_SHOWN = 50
_LONGEST = 4000
_PAGED = {PAGED_LIST: "list", PAGED_DICT: "dict", PAGED_STR: "str", PAGED_BYTES: "bytes"}
_SPOKEN = frozenset(
    {"int", "str", "bytearray", "range", "complex", "Decimal", "Fraction", "UUID", "Path"}
    | {"datetime", "date", "time", "timedelta", "timezone", "constant"}
)
"""Kinds of the standard library whose values say best themselves what they are."""


class _More:
    """Stands for what is in other chunks."""

    def __repr__(self) -> str:
        return "…"


def type_of(branches: Branches, value: Any) -> str:
    """Return what an opened value is, in a word."""
    if type(value) is Hole:
        return _PAGED.get(value.code, "reference")
    if type(value) is not Ready:
        return "None" if value is None else type(value).__name__
    kind = by_code.get(value.code)
    if kind is None:
        return "unknown"
    if kind.revives is Revives.NAMED_CLASS:
        plain = branches.short(value.plain)
        name = plain[0] if type(plain) is list and plain else plain
        if type(name) is str:
            return name.rpartition(":")[2][:_WIDTH] or kind.name
    return kind.name


def preview_of(branches: Branches, value: Any) -> str:
    """Return an opened value on one line, from what is at hand."""
    if type(value) is Hole and value.code in (PAGED_STR, PAGED_BYTES):
        data = branches.bytes_at(value, 0, 4 * _WIDTH)
        return brief(data if value.code == PAGED_BYTES else data.decode("utf-8", "ignore"), _WIDTH)
    return brief(_plain(value, 0), _WIDTH)


def _plain(value: Any, depth: int) -> Any:
    cls = type(value)
    if cls is Hole or depth > _DEEPEST:
        return _More()
    if cls is Ready:
        return _of_kind(value, depth)
    if cls is dict:
        return {key: _plain(part, depth + 1) for key, part in list(value.items())[:_SHOWN]}
    if cls is list:
        return [_plain(part, depth + 1) for part in value[:_SHOWN]]
    return value


def _of_kind(value: Ready, depth: int) -> Any:
    kind, plain = by_code.get(value.code), value.plain
    if kind is None:
        return _More()
    if kind.name in _SPOKEN:
        return _revived(value)
    if kind.name == "ndarray" and (said := _array(plain)) is not None:
        return said
    if kind.name == "tuple" and type(plain) is list:
        return tuple(_plain(part, depth + 1) for part in plain[:_SHOWN])
    if value.code == PAIRS and type(plain) is list:
        return _Items(_plain(plain[: 2 * _SHOWN], depth))
    is_named = kind.revives is Revives.NAMED_CLASS and type(plain) is list and len(plain) > 1
    if is_named and type(plain[0]) is str:
        return Raw(value.code, [plain[0], _plain(plain[1], depth + 1)])
    return _plain(plain, depth)


class _Words:
    """What is said of a value instead of what it consists of."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _array(plain: Any) -> _Words | None:
    """Return the type and the shape of an array of numpy, which is not loaded for that."""
    if type(plain) is not list or len(plain) < 4 or type(plain[3]) is not list:
        return None
    dtype = plain[2] if type(plain[2]) is str else "structured"
    return _Words(f"array {dtype[:_SHOWN]} {tuple(_plain(each, 0) for each in plain[3][:_SHOWN])}")


class _Items:
    """Keys and values in turn, written as a dict; not all of them could be keys here."""

    def __init__(self, flat: list[Any]) -> None:
        self._pairs = list(zip(flat[::2], flat[1::2], strict=False))

    def __repr__(self) -> str:
        said = (f"{brief(key)}: {brief(part, _WIDTH)}" for key, part in self._pairs)
        return "{" + ", ".join(said) + "}"


def _revived(value: Ready) -> Any:
    """Return a value of the standard library; its plain data if that is none or too long."""
    data = packed(value)
    if len(data) > _LONGEST:
        return _More()
    try:
        return decode(b"", {b"": data}, on_unknown="raw")
    except (CheckpointIntegrityError, SerializationError):
        return value.plain
