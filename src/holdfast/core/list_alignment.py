"""How to get from one list to another: what both share, what came, what went."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Sequence
from difflib import SequenceMatcher
from typing import Any, TypeVar

T = TypeVar("T", bound=Hashable)
Code = tuple[str, int, int, int, int]
Range = tuple[int, int, int, int]
"""From and to in the one list, from and to in the other."""

_ALIGN_AT_MOST = 1000
_MATCHES_AT_MOST = 40_000
"""Pairs of equal elements; with many more, finding the best alignment takes minutes."""


def common(left: Sequence[Any], right: Sequence[Any]) -> tuple[int, int]:
    """Return how many elements two lists both begin with, and how many more they both end with."""
    shorter = min(len(left), len(right))
    start = 0
    while start < shorter and left[start] == right[start]:
        start += 1
    end = 0
    while end < shorter - start and left[-1 - end] == right[-1 - end]:
        end += 1
    return start, end


def anchors(a: list[T], b: list[T], weights: list[int] | None = None) -> list[tuple[int, int]]:
    """Return where elements that both have once stand in both, in an order that both have.

    Of what has changed places as much stays as can be: as many elements, or as much weight of a.

    >>> from holdfast.core.list_alignment import anchors
    >>> anchors([b"a", b"b", b"c"], [b"c", b"a", b"x", b"b"])
    [(0, 1), (1, 3)]
    """
    in_a, in_b = Counter(a), Counter(b)
    places = {element: at for at, element in enumerate(b) if in_b[element] == 1}
    # What is best among the runs that end there or before, by where they end in b.
    ends: list[int] = []
    runs: list[tuple[int, int, int, Any]] = []
    for i, element in enumerate(a):
        if in_a[element] != 1 or element not in places:
            continue
        j = places[element]
        at = bisect_left(ends, j)
        before = runs[at - 1] if at else None
        weight = (1 if weights is None else weights[i]) + (before[0] if before else 0)
        worse = at
        while worse < len(runs) and runs[worse][0] <= weight:
            worse += 1
        ends[at:worse] = [j]
        runs[at:worse] = [(weight, i, j, before)]
    found = []
    run = runs[-1] if runs else None
    while run is not None:
        _, i, j, run = run
        found.append((i, j))
    return found[::-1]


def between(pairs: list[tuple[int, int]], a: Sequence[Any], b: Sequence[Any]) -> list[Range]:
    """Return what two lists have between such pairs, without what is the same at either end."""
    ranges: list[Range] = []
    i, j = 0, 0
    for next_i, next_j in [*pairs, (len(a), len(b))]:
        start, end = common(a[i:next_i], b[j:next_j])
        if start + end < max(next_i - i, next_j - j):
            ranges.append((i + start, next_i - end, j + start, next_j - end))
        i, j = next_i + 1, next_j + 1
    return ranges


def is_too_long(count_a: int, count_b: int) -> bool:
    """Return whether lists of so many elements are aligned only between what both have once."""
    return count_a * count_b > _ALIGN_AT_MOST**2


def aligned(a: list[T], b: list[T]) -> list[Code]:
    """Return how to get from one list of elements to the other, as difflib says it.

    Of long lists it is said between the elements that both have once, and where none are between
    them, all is replaced.

    >>> from holdfast.core.list_alignment import aligned
    >>> aligned([b"a", b"b"], [b"b", b"c"])
    [('delete', 0, 1, 0, 0), ('equal', 1, 2, 0, 1), ('insert', 2, 2, 1, 2)]
    """
    start, end = common(a, b)
    middle_a, middle_b = a[start : len(a) - end], b[start : len(b) - end]
    if not _is_too_much(middle_a, middle_b):
        return _matched(middle_a, middle_b, start, start)
    codes: list[Code] = []
    i = j = start
    for i1, i2, j1, j2 in between(anchors(middle_a, middle_b), middle_a, middle_b):
        if i < start + i1:
            codes.append(("equal", i, start + i1, j, start + j1))
        codes += _told(middle_a[i1:i2], middle_b[j1:j2], start + i1, start + j1)
        i, j = start + i2, start + j2
    return codes


def _told(a: list[T], b: list[T], i: int, j: int) -> list[Code]:
    if _is_too_much(a, b):
        return [("replace", i, i + len(a), j, j + len(b))]
    return _matched(a, b, i, j)


def _matched(a: list[T], b: list[T], i: int, j: int) -> list[Code]:
    codes = SequenceMatcher(None, a, b, autojunk=False).get_opcodes()
    return [(tag, i1 + i, i2 + i, j1 + j, j2 + j) for tag, i1, i2, j1, j2 in codes]


def _is_too_much(a: list[T], b: list[T]) -> bool:
    return is_too_long(len(a), len(b)) or _is_hopeless(a, b)


def _is_hopeless(a: list[T], b: list[T]) -> bool:
    if len(a) * len(b) <= _MATCHES_AT_MOST:
        return False
    counts = Counter(b)
    return sum(counts[element] for element in a) > _MATCHES_AT_MOST
