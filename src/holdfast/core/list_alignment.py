"""How to get from one list to another: what both share, what came, what went."""

from __future__ import annotations

from collections import Counter
from difflib import SequenceMatcher
from typing import Any, TypeVar

T = TypeVar("T")

_ALIGN_AT_MOST = 1000
_MATCHES_AT_MOST = 40_000
"""Pairs of equal elements; with many more, finding the best alignment takes minutes."""


def trimmed(
    left: list[T], right: list[T], keep: int = 0, keep_at_end: int = 0
) -> tuple[list[T], list[T], list[T]]:
    """Return two lists without their common beginning and end, and that beginning.

    So many of the common elements are kept at either side, and so many more at the end.
    """
    start, end = common(left, right)
    start, end = max(start - keep, 0), max(end - keep - keep_at_end, 0)
    return left[start : len(left) - end], right[start : len(right) - end], left[:start]


def common(left: list[Any], right: list[Any]) -> tuple[int, int]:
    """Return how many elements two lists both begin with, and how many more they both end with."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return start, end


def aligned(a: list[T], b: list[T]) -> list[tuple[str, int, int, int, int]]:
    """Return how to get from one list of elements to the other, as difflib says it.

    >>> from holdfast.core.list_alignment import aligned
    >>> aligned([b"a", b"b"], [b"b", b"c"])
    [('delete', 0, 1, 0, 0), ('equal', 1, 2, 0, 1), ('insert', 2, 2, 1, 2)]
    """
    start, end = common(a, b)
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if len(middle_a) * len(middle_b) > _ALIGN_AT_MOST**2 or _is_hopeless(middle_a, middle_b):
        return [("replace", start, len(a) - end, start, len(b) - end)]
    codes = SequenceMatcher(None, middle_a, middle_b, autojunk=False).get_opcodes()
    return [(tag, i1 + start, i2 + start, j1 + start, j2 + start) for tag, i1, i2, j1, j2 in codes]


def _is_hopeless(a: list[T], b: list[T]) -> bool:
    if len(a) * len(b) <= _MATCHES_AT_MOST:
        return False
    counts = Counter(b)
    return sum(counts[element] for element in a) > _MATCHES_AT_MOST
