"""Which pages two long lists do not share: pages of one name hold the same, and are not read.

An index is walked level by level, and only below what differs. What both have once is where they
meet, in an order that both have; what repeats meets where it stands equally far from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.core.list_alignment import anchors, between, is_too_long


@dataclass(frozen=True, slots=True)
class Part:
    """A page or an index of pages: how many positions it says it covers, and where they begin."""

    name: bytes
    count: int
    start: int


@dataclass(frozen=True, slots=True)
class Gap:
    """What two lists have between parts that both have; and where it begins in each."""

    old: list[Part]
    new: list[Part]
    old_start: int = 0
    new_start: int = 0

    @property
    def names(self) -> list[bytes]:
        """Return the names of all that is in it."""
        return [part.name for part in (*self.old, *self.new)]


def parts_of(entries: Iterable[tuple[bytes, int, bool, bool]], start: int = 0) -> list[Part]:
    """Return the entries of an index, each with where it begins."""
    parts = []
    for name, count, _, _ in entries:
        parts.append(Part(name, count, start))
        start += count
    return parts


@dataclass(frozen=True, slots=True)
class Alignment:
    """How parts are taken for the same."""

    step: int = 1
    """Elements that belong together: 2 where keys and values stand in turn."""
    keep: int = 0
    """How many shared parts are kept at either side of what differs."""
    keep_at_end: int = 0
    """How many more at the end."""
    only_ends: bool = False
    """Whether parts are shared only at the beginning and the end."""

    def apart(self, gap: Gap) -> list[Gap]:
        """Return what is left of a gap without the parts that both its sides have."""
        old, new = self._keys(gap.old), self._keys(gap.new)
        found = []
        for i1, i2, j1, j2 in between([], old, new):
            trimmed = self._gap(gap, i1, i2, j1, j2)
            if self.only_ends or _is_short(gap.old[i1:i2], gap.new[j1:j2]):
                found.append(trimmed)
            else:
                found += self._around_shared(trimmed)
        return found

    def _around_shared(self, gap: Gap) -> list[Gap]:
        old, new = self._keys(gap.old), self._keys(gap.new)
        weights = [part.count for part in gap.old]
        found: list[Gap] = []
        for i1, i2, j1, j2 in between(anchors(old, new, weights), old, new):
            left, right = gap.old[i1:i2], gap.new[j1:j2]
            if _is_short(left, right):
                found.append(self._gap(gap, i1, i2, j1, j2))
                continue
            here = [(i, j) for i, j in _in_place(left, right) if old[i1 + i] == new[j1 + j]]
            for p1, p2, q1, q2 in between(here, old[i1:i2], new[j1:j2]):
                found.append(self._gap(gap, i1 + p1, i1 + p2, j1 + q1, j1 + q2))
        return found

    def _keys(self, parts: list[Part]) -> list[tuple[bytes, int, int]]:
        return [(part.name, part.count, part.start % self.step) for part in parts]

    def _gap(self, gap: Gap, i1: int, i2: int, j1: int, j2: int) -> Gap:
        """Return a part of a gap, with as much around it as is to be kept."""
        before, after = min(self.keep, i1, j1), self.keep + self.keep_at_end
        i1, j1 = i1 - before, j1 - before
        after = min(after, len(gap.old) - i2, len(gap.new) - j2)
        return Gap(
            gap.old[i1 : i2 + after],
            gap.new[j1 : j2 + after],
            gap.old[i1].start if i1 < len(gap.old) else _end(gap.old, gap.old_start),
            gap.new[j1].start if j1 < len(gap.new) else _end(gap.new, gap.new_start),
        )


def unshared(old: list[Part], new: list[Part]) -> tuple[list[Part], list[Part]]:
    """Return the parts of each that the other has nowhere; for what is not told by its place."""
    names_old = {(part.name, part.count) for part in old}
    names_new = {(part.name, part.count) for part in new}
    return (
        [part for part in old if (part.name, part.count) not in names_new],
        [part for part in new if (part.name, part.count) not in names_old],
    )


def _in_place(old: list[Part], new: list[Part]) -> list[tuple[int, int]]:
    """Return the places of parts that begin equally far from where both lists begin."""
    far = {part.start - old[0].start: i for i, part in enumerate(old)}
    pairs = [(far.get(part.start - new[0].start), j) for j, part in enumerate(new)]
    return [(i, j) for i, j in pairs if i is not None]


def _is_short(old: list[Part], new: list[Part]) -> bool:
    """Return whether the elements themselves can be aligned, once what is shared is left out.

    The first and the last part may be shared in part, so they do not count.
    """
    return not is_too_long(_inner(old), _inner(new))


def _inner(parts: list[Part]) -> int:
    return sum([part.count for part in parts[1:-1]])


def _end(parts: list[Part], start: int) -> int:
    return parts[-1].start + parts[-1].count if parts else start
