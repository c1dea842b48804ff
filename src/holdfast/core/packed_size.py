"""What is known of a value's bytes before it is packed: how many, and how deep it may nest.

A large state is packed part by part, and never as a whole just to learn that it is large. So what
the whole would be refused for has to be found in the parts.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from holdfast.core.codec import Packer

MODERATE = 2**20
"""Bytes that may be there a few times over."""
_LOOKS, _OF_LIST, _OF_DICT = 6, 3, 16
_LIKELY = 16
"""Bytes of a part that is not looked at."""
_NESTING = frozenset({list, dict})
"""What nests within the same message; objects begin one of their own."""
_SIZED = frozenset({*_NESTING, str, bytes})


def is_surely_longer(value: Any, limit: int) -> bool:
    """Return whether a value packs to more bytes than that, and likely to very many.

    A short look has to tell; where it does not, packing the value does, and costs little.

    >>> from holdfast.core.packed_size import is_surely_longer
    >>> is_surely_longer({"messages": ["hello"] * 900_000}, 3072)
    True
    """
    if type(value) not in _NESTING:
        return type(value) in _SIZED and len(value) > limit
    least = len(value)
    likely: float = least * _LIKELY
    waiting = [(value, 1.0)]
    for part, times in waiting:
        # At once, for others may be changing it.
        some = part[:_OF_LIST] if type(part) is list else tuple(islice(part.values(), _OF_DICT))
        if some:
            times *= max(len(part) / len(some), 1)  # those not looked at are likely alike
        for inner in some:
            if type(inner) in _SIZED:
                least += len(inner)
                is_nesting = type(inner) in _NESTING
                likely += times * len(inner) * (_LIKELY if is_nesting else 1)
                if is_nesting and len(waiting) < _LOOKS:
                    waiting.append((inner, times))
        if least > limit and likely > MODERATE:
            return True
    return False


class Shells:
    """Packs parts within lists, so that they may nest as deep as they may in the whole."""

    def __init__(self, packer: Packer) -> None:
        self._pack = packer.pack
        self._shells: list[tuple[Any, list[Any]]] = []

    def pack(self, value: Any, around: int) -> bytes:
        """Return the bytes of a value that has that many lists and dicts around it."""
        if not around or type(value) not in _NESTING:
            return self._pack(value)
        while len(self._shells) < around:
            inner: list[Any] = [None]
            outer: Any = inner
            for _ in self._shells:
                outer = [outer]
            self._shells.append((outer, inner))
        outer, inner = self._shells[around - 1]
        inner[0] = value
        return self._pack(outer)[around:]
