"""The keys of large dicts in msgpack, and elements of sets, looked at before they are entered.

Dicts that LangGraph's serializer wrote may have keys of any kind, and msgpack enters them while it
unpacks: numbers chosen to collide have to be found before (``core/collisions.py`` tells them).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

import ormsgpack

from holdfast.core.collisions import FEW, check_keys, check_set

_FIXED = {0xCA: 5, 0xCB: 9, 0xCC: 2, 0xCD: 3, 0xCE: 5, 0xCF: 9, 0xD0: 2, 0xD1: 3, 0xD2: 5, 0xD3: 9}
_FIXED |= {0xD4: 3, 0xD5: 4, 0xD6: 6, 0xD7: 10, 0xD8: 18}
"""Bytes of a value with its head, where the head alone says how many."""
_SIZED = {0xC4: (1, 0), 0xC5: (2, 0), 0xC6: (4, 0), 0xC7: (1, 1), 0xC8: (2, 1), 0xC9: (4, 1)}
_SIZED |= {0xD9: (1, 0), 0xDA: (2, 0), 0xDB: (4, 0)}
"""Bytes that give the length, and bytes between them and the content."""
_COUNTED = {0xDC: (2, False), 0xDD: (4, False), 0xDE: (2, True), 0xDF: (4, True)}
"""Bytes that give the count, and whether it is a map."""
_TEXT = frozenset({*range(0xA0, 0xC0), 0xD9, 0xDA, 0xDB})


@dataclass(slots=True)
class _Container:
    """A list or map that is being read."""

    left: int
    start: int
    keys: list[bytes] | None
    """The bytes of keys that are no text; None where there are too few to matter."""


def check_dicts(data: bytes) -> None:
    """Refuse bytes whose maps have keys that collide, as if chosen to, with a ValueError."""
    for keys in large_keys(data):
        check_keys([_hashable(ormsgpack.unpackb(key)) for key in keys])


def large_keys(data: bytes) -> Iterator[list[bytes]]:
    """Yield the keys, but for texts, of each map that has many, as far as the data can be read."""
    at, containers = 0, list[_Container]()
    while at < len(data):
        start, head = at, data[at]
        opened = _opened(data, at)
        if opened is not None:
            at, count, is_map = opened
            if count:
                keys: list[bytes] | None = [] if is_map and count > FEW else None
                containers.append(_Container(count * (2 if is_map else 1), start, keys))
                continue
        else:
            at += _length(data, at)
        text = head in _TEXT
        while containers:
            inner = containers[-1]
            if inner.keys is not None and inner.left % 2 == 0 and not text:
                inner.keys.append(data[start:at])
            inner.left -= 1
            if inner.left:
                break
            if inner.keys:
                yield inner.keys
            start, text = inner.start, False
            containers.pop()
        else:
            return


def _opened(data: bytes, at: int) -> tuple[int, int, bool] | None:
    """Return where the first part of a list or map begins, how many it has, and if it is a map."""
    head = data[at]
    if 0x80 <= head <= 0x9F:
        return at + 1, head & 0x0F, head < 0x90
    if head not in _COUNTED:
        return None
    width, is_map = _COUNTED[head]
    return at + 1 + width, int.from_bytes(data[at + 1 : at + 1 + width], "big"), is_map


def _length(data: bytes, at: int) -> int:
    """Return the bytes that a value takes that is neither list nor map, with its head."""
    head = data[at]
    if 0xA0 <= head <= 0xBF:
        return 1 + (head & 0x1F)
    if head in _SIZED:
        width, between = _SIZED[head]
        return 1 + width + between + int.from_bytes(data[at + 1 : at + 1 + width], "big")
    return _FIXED.get(head, 1)


def check_elements(elements: Any, unpack: Any) -> None:
    """Refuse what a set is to be made of if it collides; extensions may stand for numbers."""
    if type(elements) is list and len(elements) > FEW:
        check_set([_number(element, unpack) for element in elements])


def _number(element: Any, unpack: Any) -> Any:
    """Return what has the hash of an element: UUIDs and decimals hash as numbers do."""
    data = getattr(element, "data", None)
    if data is None:
        return _hashable(element)
    plain = unpack(data)
    try:
        match plain:
            case ["uuid", "UUID", str() as digits]:
                return int(digits, 16)
            case ["decimal", "Decimal", str() as digits]:
                return Decimal(digits)
    except (ValueError, InvalidOperation):
        pass  # it will not become one
    return data


def _hashable(value: Any) -> Any:
    """Return a key as msgpack makes it: lists are tuples; what cannot be one does not count."""
    if type(value) is list:
        return tuple(map(_hashable, value))
    return None if type(value) is dict else value
