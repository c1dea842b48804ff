"""Which volumes of a log tell of a call: by its id, its key, or what it did.

What is looked for is a term, of which 8 bytes are kept with the number of a volume, in runs that
are sorted. A new run takes in those before it that are no longer than it is, so that there are few,
and each row was written few times. A run is cut into pages; only those that may hold a term are
read. Terms that share their 8 bytes make a reader look into a volume for nothing, and no more.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.core.codec import pack, unpack
from holdfast.core.kinds.content_links import ContentLink
from holdfast.runtime.steps import Plan
from holdfast.session.volumes import Shelf, links_in, write
from holdfast.verbs import stored_values

_HASH = 8
_ROW = 12
_PAGE = 512
"""How many rows a page has."""
_LONGEST = 1024
"""A run of so many volumes is not written once more."""

Term = tuple[str, ...]


def hash_of(term: Term) -> bytes:
    """Return the bytes under which a term is found."""
    return hashlib.blake2b(
        "\0".join(term).encode("utf-8", "surrogatepass"), digest_size=_HASH
    ).digest()


@dataclass(frozen=True)
class Index:
    """Runs of terms, the oldest first: of how many volumes each is, and where it is."""

    runs: tuple[tuple[int, ContentLink], ...] = ()

    def as_value(self) -> list[list[Any]]:
        """Return it as it is kept."""
        return [list(run) for run in self.runs]

    @classmethod
    def of(cls, value: Any) -> Index:
        """Return it from what was kept."""
        runs = []
        for run in stored_values.items("the index of older calls", value):
            match run:
                case [int(span), ContentLink() as link] if type(span) is int and span > 0:
                    runs.append((span, link))
                case _:
                    raise _damaged("has a run of another shape")
        return cls(tuple(runs))

    def with_terms(
        self, shelf: Shelf, terms: Iterable[tuple[Term, int]], span: int, into: dict[bytes, bytes]
    ) -> Plan[Index]:
        """Return the same and the terms of so many new volumes; what is written comes ``into``."""
        rows = {hash_of(term) + number.to_bytes(_ROW - _HASH, "big") for term, number in terms}
        runs = list(self.runs)
        while runs and runs[-1][0] <= span and runs[-1][0] + span <= _LONGEST:
            before, link = runs.pop()
            span += before
            for page in (yield from _pages(shelf, link)):
                rows.update(_rows(page))
        runs.append((span, _written(sorted(rows), into)))
        return Index(tuple(runs))

    def find(self, shelf: Shelf, terms: Collection[Term]) -> Plan[dict[Term, set[int]]]:
        """Return the numbers of the volumes that may tell of each of some terms."""
        wanted = {term: hash_of(term) for term in terms}
        opened = yield from shelf.opened([link for _, link in self.runs], _opened)
        places = dict.fromkeys(
            page
            for first, pages in opened
            for each in wanted.values()
            for page in _which(first, pages, each)
        )
        found = [bytes(page) for page in (yield from shelf.read(list(places)))]
        return {
            term: {number for page in found for number in _numbers(page, each)}
            for term, each in wanted.items()
        }


def _damaged(problem: str) -> Exception:
    return stored_values.damaged("the index of older calls", problem)


def _written(rows: list[bytes], into: dict[bytes, bytes]) -> ContentLink:
    """Add a run to what is to be written, and return a link to it."""
    pages = [rows[start : start + _PAGE] for start in range(0, len(rows), _PAGE)]
    links = [write(b"".join(page), into, is_leaf=True) for page in pages]
    first = b"".join(page[0][:_HASH] for page in pages)
    return write(pack([first, links]), into, is_leaf=False)


def _opened(raw: bytes) -> tuple[list[bytes], tuple[ContentLink, ...]]:
    """Return the pages of a run, and the hash with which each begins."""
    match unpack(raw):
        case [bytes(first), list(links)] if len(first) == _HASH * len(links):
            starts = range(0, len(first), _HASH)
            return [first[at : at + _HASH] for at in starts], links_in(links, is_leaf=True)
    raise _damaged("has a run of another shape")


def _which(
    first: list[bytes], pages: tuple[ContentLink, ...], wanted: bytes
) -> tuple[ContentLink, ...]:
    """Return the pages that may have rows of a hash."""
    start = max(0, bisect_left(first, wanted) - 1)
    return pages[start : bisect_right(first, wanted)]


def _pages(shelf: Shelf, run: ContentLink) -> Plan[list[bytes]]:
    _, pages = (yield from shelf.opened([run], _opened))[0]
    return (yield from shelf.read(pages))


def _count(page: bytes) -> int:
    """Return how many rows a page has."""
    if len(page) % _ROW:
        raise _damaged("has a page of another shape")
    return len(page) // _ROW


def _row(page: bytes, at: int) -> bytes:
    return page[at * _ROW : (at + 1) * _ROW]


def _rows(page: bytes) -> Iterator[bytes]:
    return (_row(page, at) for at in range(_count(page)))


def _numbers(page: bytes, wanted: bytes) -> Iterator[int]:
    """Return the numbers of the volumes that a page has for a hash."""
    count = _count(page)
    start = bisect_left(range(count), wanted, key=lambda at: _row(page, at))
    for at in range(start, count):
        row = _row(page, at)
        if not row.startswith(wanted):
            break
        yield int.from_bytes(row[_HASH:], "big")
