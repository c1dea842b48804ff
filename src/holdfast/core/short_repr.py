"""Values on one line, for people: as much of a repr as fits, at a cost that fits too.

The repr of a value may be as long as the value, and of an integer of thousands of digits there is
none at all. Here writing ends where the line does, and large integers are written in base 16.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.core.raw import Raw
from holdfast.core.safe_repr import shown

_LARGE_BITS = 2048
"""Python may be told to refuse decimal numbers of more than 640 digits."""
_DEEPEST = 50
_BRACKETS: dict[type, tuple[str, str]] = {
    list: ("[", "]"),
    tuple: ("(", ")"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
}


def brief(value: Any, limit: int = 60, mark: str = "…") -> str:
    """Return the repr of a value; cut, with a mark at the end, where it is longer than the limit.

    >>> from holdfast.core.short_repr import brief
    >>> brief({"a": [1, 2, 3]}, 12)
    "{'a': [1, 2…"
    """
    text = ""
    for piece in _pieces(value, limit, 0):
        text += piece
        if len(text) > limit:
            return text[: max(limit - len(mark), 0)] + mark
    return text


def _pieces(value: Any, limit: int, depth: int) -> Iterator[str]:
    cls = type(value)
    if cls is int:
        yield hex(value) if value.bit_length() > _LARGE_BITS else repr(value)
    elif cls in (str, bytes):
        yield repr(value if len(value) <= limit else value[: limit + 1])
    elif depth > _DEEPEST:
        yield "…"
    elif cls is Raw:
        # Fields that say nothing are left out, as one would write it.
        said = [(k, part) for k, part in value.items() if not _is_empty(part)]
        yield f"{value.type_name.rpartition(':')[2]}("
        for number, (name, part) in enumerate(said):
            yield f"{', ' if number else ''}{name}="
            yield from _pieces(part, limit, depth + 1)
        yield ")"
    elif cls is dict:
        yield "{"
        for number, (key, part) in enumerate(value.items()):
            yield ", " if number else ""
            yield from _pieces(key, limit, depth + 1)
            yield ": "
            yield from _pieces(part, limit, depth + 1)
        yield "}"
    elif cls in _BRACKETS and (value or cls in (list, tuple)):
        start, end = _BRACKETS[cls]
        yield start
        for number, part in enumerate(value):
            yield ", " if number else ""
            yield from _pieces(part, limit, depth + 1)
        yield ",)" if cls is tuple and len(value) == 1 else end
    else:
        yield shown(value)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, (str, list, tuple, dict)) and not value)
