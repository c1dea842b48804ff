"""The pages of a long sequence, cut behind the elements that ``content_cuts`` says.

An edit moves no boundary but its own. What follows the last boundary is the open tail, kept in
small pages so that an append writes about one element. The cuts are a function of the content
alone; the parent's pages only save the work of finding them again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from xxhash import xxh3_64_intdigest, xxh3_128_digest

from holdfast.core.content_cuts import MAX_PAGE, TAIL_PAGE, ends_page
from holdfast.core.packed_size import MODERATE


@dataclass(slots=True)
class Page:
    """One page of a sequence: how many positions it covers, and the chunk that holds it."""

    count: int
    id: bytes
    size: int
    """Bytes of its chunk, with all that it refers to."""
    body: int
    """Bytes of its elements alone, references not followed."""
    has_refs: bool
    fingerprint: bytes | None = None
    first: int | None = None
    """Hash of its first element, by which it is met again at another position."""
    fresh: bool = True
    """It starts at a boundary chosen by content (or at the very front)."""
    natural: bool = False
    """It ends at one; if not, it was cut for its size or belongs to the open tail."""
    closed: bool = True
    """It does not belong to the open tail."""
    no_bytes: bool = False
    """It is known to hold no bytes, so what packs to the same bytes is the same."""
    quick: bytes | None = None
    """Hash of its quick form, or nothing if it has none; None until it is met again."""


class Sequence(Protocol):
    """What is being cut: elements reached by position."""

    def __len__(self) -> int: ...

    def element(self, at: int) -> tuple[bytes, bytes, int]:
        """Return the element there: its bytes, the bytes its boundary hangs on, the next position.

        A last element that more content could lengthen hangs on nothing (``b""``).
        """

    def span(self, at: int, count: int) -> bytes:
        """Return the bytes of that many positions, all of their content included.

        Where bytes and bytearrays may be mistaken for each other, ``exact_span`` tells them apart.
        """

    def exact_span(self, at: int, count: int) -> tuple[bytes, bool]:
        """Return the span without mistake, and whether there are any bytes in it."""

    def quick_span(self, at: int, count: int) -> bytes:
        """Return other bytes, got sooner: where they are equal, so is the exact span.

        Nothing if there are none.
        """

    def emit(self, at: int, parts: list[bytes], count: int) -> Page:
        """Make a page of these elements."""


def fingerprint(data: bytes, seed: int) -> bytes:
    """Return a hash that tells whether a page is still the same; cheap, and secret by its seed."""
    return xxh3_128_digest(data, seed)


def cut(sequence: Sequence, old: list[Page], seed: int, trusted: int = 0) -> list[Page]:
    """Return the pages of a sequence, reusing the parent's pages where they are met again.

    That many ``trusted`` positions at the front are known to be unchanged and are not looked at.
    """
    return _Cutter(sequence, old, seed, trusted).cut()


class _Cutter:
    def __init__(self, sequence: Sequence, old: list[Page], seed: int, trusted: int) -> None:
        self.sequence = sequence
        self.total = len(sequence)
        self.old = old
        self.seed = seed
        self.trusted = trusted
        self.pages: list[Page] = []
        self._places: tuple[dict[int, int], dict[int, int], dict[int, int]] | None = None

    def cut(self) -> list[Page]:
        at, following, fresh = 0, 0, True
        while at < self.total:
            found = self._find(at, following, fresh)
            if found is None:
                at, fresh = self._cut_run(at, fresh, following)
                following = -1
                continue
            page = self.old[found]
            self.pages.append(page)
            at += page.count
            fresh = page.natural
            following = found + 1
        return self.pages

    def _find(self, at: int, following: int, fresh: bool) -> int | None:
        """Return which old page stands here: most likely the one after the page reused last."""
        if 0 <= following < len(self.old) and self._matches(at, following, fresh):
            return following
        if not fresh or not self.old:
            return None
        for index in self._candidates(at):
            if index != following and self._matches(at, index, fresh):
                return index
        return None

    def _candidates(self, at: int) -> Iterator[int]:
        if self._places is None:
            self._places = self._index_old()
        from_front, from_back, by_first = self._places
        if at in from_front:
            yield from_front[at]
        if self.total - at in from_back:
            yield from_back[self.total - at]
        if by_first:
            first = xxh3_64_intdigest(self.sequence.element(at)[0])
            if first in by_first:
                yield by_first[first]

    def _index_old(self) -> tuple[dict[int, int], dict[int, int], dict[int, int]]:
        from_front: dict[int, int] = {}
        at = 0
        for index, page in enumerate(self.old):
            from_front[at] = index
            at += page.count
        from_back = {at - start: index for start, index in from_front.items()}
        by_first = {
            page.first: index
            for index, page in enumerate(self.old)
            if page.first is not None and page.fresh and page.closed
        }
        return from_front, from_back, by_first

    def _matches(self, at: int, index: int, fresh: bool) -> bool:
        page = self.old[index]
        return page.closed and self._stands(at, page, fresh)

    def _stands(self, at: int, page: Page, fresh: bool) -> bool:
        if page.fresh != fresh or at + page.count > self.total:
            return False
        if at + page.count <= self.trusted:
            return True
        quick = self._quick(at, page.count) if page.quick else b""
        if quick and quick == page.quick:
            return True
        if not self._is_same(at, page):
            return False
        if page.quick != b"":
            page.quick = quick or self._quick(at, page.count)
        return True

    def _quick(self, at: int, count: int) -> bytes:
        span = self.sequence.quick_span(at, count)
        # Of a seed of its own: it is never to be taken for that of the span.
        return fingerprint(span, ~self.seed & 2**64 - 1) if span else b""

    def _is_same(self, at: int, page: Page) -> bool:
        if page.fingerprint != fingerprint(self.sequence.span(at, page.count), self.seed):
            return False
        if not page.no_bytes:
            span, has_bytes = self.sequence.exact_span(at, page.count)
            page.no_bytes = not has_bytes
            return page.fingerprint == fingerprint(span, self.seed)
        return True

    def _kept_tail(self, at: int, following: int, fresh: bool) -> list[Page]:
        """Return the full pages of the old tail that stand here; no boundary is within them.

        Not the last: its last element may have been lengthened.
        """
        kept: list[Page] = []
        if following >= 0:
            for page in self.old[following:-1]:
                # The parts of what is large were remembered, and need not be looked at together.
                if page.closed or page.size > MODERATE or not self._stands(at, page, fresh):
                    break
                kept.append(page)
                at, fresh = at + page.count, False
        return kept

    def _cut_run(self, at: int, fresh: bool, following: int) -> tuple[int, bool]:
        """Cut one page from here, or the tail; return where it ends and whether at a boundary."""
        kept = self._kept_tail(at, following, fresh)
        start, size = at, sum(page.body for page in kept)
        at += sum(page.count for page in kept)
        tail = at
        ends, parts = list[int](), list[bytes]()
        element, total = self.sequence.element, self.total
        while at < total:
            data, key, at = element(at)
            ends.append(at)
            parts.append(data)
            size += len(data)
            natural = key != b"" and ends_page(key, len(data))
            if natural or (key and size >= MAX_PAGE):
                page = self.sequence.emit(start, [*self._parts(start, tail), *parts], at - start)
                page.fresh, page.natural = fresh, natural
                self.pages.append(page)
                return at, natural
        self.pages += kept
        self._cut_tail(tail, ends, parts, fresh and not kept)
        return at, False

    def _parts(self, at: int, end: int) -> Iterator[bytes]:
        """Yield the elements from one place up to another."""
        while at < end:
            data, _, at = self.sequence.element(at)
            yield data

    def _cut_tail(self, start: int, ends: list[int], parts: list[bytes], fresh: bool) -> None:
        begin, size = 0, 0
        for i, part in enumerate(parts):
            size += len(part)
            if size >= TAIL_PAGE or i == len(parts) - 1:
                page = self.sequence.emit(start, parts[begin : i + 1], ends[i] - start)
                page.fresh, page.closed = fresh, False
                self.pages.append(page)
                start, begin, size, fresh = ends[i], i + 1, 0, False
