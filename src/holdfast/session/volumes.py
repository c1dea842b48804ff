"""Closed volumes of a session's log: calls so old that a checkpoint only links to them.

A volume holds some entries of the log. Links to volumes stand in levels: where one level is full,
its links become a chunk of their own, to which the next level links. So what a checkpoint holds of
a log grows with the logarithm of it, and logs that begin alike share all that they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from holdfast.core.chunk_decoder import decode
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import checked, chunk_id, compress
from holdfast.core.codec import OnUnknown, pack, unpack
from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session.folding import Entry
from holdfast.system.recent import Recent
from holdfast.verbs import notes, stored_values

LENGTH = 64
"""How many entries a volume has."""
FULL = 64
"""How many links make a level full."""
_PAGE = 50
"""Volumes that are read at once, where all are."""


T = TypeVar("T")


@dataclass
class Shelf:
    """What is written of volumes with a checkpoint, and what was read of them."""

    engine: Engine
    on_unknown: OnUnknown = "raise"
    _chunks: Recent[bytes, bytes] = field(default_factory=lambda: Recent(128))
    _opened: Recent[bytes, Any] = field(default_factory=lambda: Recent(64))
    _volumes: Recent[bytes, list[Entry]] = field(default_factory=lambda: Recent(8))

    @property
    def length(self) -> int:
        """How many entries a volume has."""
        return LENGTH

    def raw(self) -> Shelf:
        """Return another, which gives values of unknown classes as they are kept."""
        return Shelf(self.engine, "raw")

    def read(self, links: Sequence[ContentLink]) -> Plan[list[bytes]]:
        """Return chunks that are linked, unpacked and proven."""
        found = {link.name: self._chunks.get(link.name) for link in links}
        missing = [name for name, raw in found.items() if raw is None]
        stored = (yield from steps.fetch(missing)) if missing else {}
        for name in missing:
            if name not in stored:
                raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
            raw = checked(name, stored[name])
            self._chunks.put(name, raw)
            found[name] = raw
        return [found[link.name] or b"" for link in links]

    def opened(self, links: Sequence[ContentLink], opening: Callable[[bytes], T]) -> Plan[list[T]]:
        """Return what chunks are when they are opened, which is done once for each."""
        found: dict[bytes, Any] = {link.name: self._opened.get(link.name) for link in links}
        missing = [link for link in links if found[link.name] is None]
        for link, raw in zip(missing, (yield from self.read(missing)), strict=True):
            found[link.name] = opening(raw)
            self._opened.put(link.name, found[link.name])
        return [found[link.name] for link in links]

    def volumes(self, links: Sequence[ContentLink]) -> Plan[list[list[Entry]]]:
        """Return the entries of volumes."""
        found = {link.name: self._volumes.get(link.name) for link in links}
        missing = [link for link in links if found[link.name] is None]
        raw = yield from self.read(missing)
        whole = {link.name: data for link, data in zip(missing, raw, strict=True)}
        chunks = {**(yield from notes.beneath(whole.values())), **whole}
        for name in whole:
            value = decode(
                name, chunks, on_unknown=self.on_unknown, allow_pickle=self.engine.allow_pickle
            )
            entries = found[name] = list(stored_values.items("a volume of calls", value))
            self._volumes.put(name, entries)
        return [found[link.name] or [] for link in links]

    def entries(self, links: Sequence[ContentLink]) -> Plan[list[Entry]]:
        """Return the entries of volumes in one, read some volumes at a time."""
        found: list[Entry] = []
        for start in range(0, len(links), _PAGE):
            for entries in (yield from self.volumes(links[start : start + _PAGE])):
                found += entries
        return found

    def volume(self, entries: Sequence[Entry], into: dict[bytes, bytes]) -> ContentLink:
        """Close a volume; the chunks that it is kept in come ``into`` those to be written."""
        engine = self.engine
        encoded = encode(
            list(entries), seed=engine.seed, allow_pickle=engine.allow_pickle, as_stored=True
        )
        into.update(encoded.chunks)
        return ContentLink(encoded.root)


def write(raw: bytes, into: dict[bytes, bytes], is_leaf: bool) -> ContentLink:
    """Add a chunk to those to be written, and return a link to it."""
    name = chunk_id(raw)
    into[name] = compress(raw)
    return ContentLink(name, is_leaf)


def links_in(value: Any, is_leaf: bool = False) -> tuple[ContentLink, ...]:
    """Return links that were kept, all of one kind."""
    found = tuple(stored_values.items("the record of older calls", value))
    if not all(type(each) is ContentLink and each.is_leaf is is_leaf for each in found):
        raise stored_values.damaged("the record of older calls", "has something else as a link")
    return found


@dataclass(frozen=True)
class Volumes:
    """The closed volumes of a log, the oldest first."""

    levels: tuple[tuple[ContentLink, ...], ...] = ()
    """Links to volumes; to chunks of links to those; and so on. What is older is higher."""

    @property
    def count(self) -> int:
        """How many there are."""
        return sum(len(links) * FULL**level for level, links in enumerate(self.levels))

    def as_value(self) -> list[list[ContentLink]]:
        """Return it as it is kept."""
        return [list(links) for links in self.levels]

    @classmethod
    def of(cls, value: Any) -> Volumes:
        """Return it from what was kept."""
        levels = tuple(map(links_in, stored_values.items("the record of older calls", value)))
        if len(levels) > 8 or any(len(links) >= FULL for links in levels):
            raise stored_values.damaged("the record of older calls", "has more links than it may")
        return cls(levels)

    def with_one(self, volume: ContentLink, into: dict[bytes, bytes]) -> Volumes:
        """Return the same and one volume more; the chunks for that come ``into`` the others."""
        levels = [list(links) for links in self.levels] or [[]]
        added, level = volume, 0
        while True:
            levels[level].append(added)
            if len(levels[level]) < FULL:
                return Volumes(tuple(map(tuple, levels)))
            added = write(pack(levels[level]), into, is_leaf=False)
            levels[level] = []
            level += 1
            if level == len(levels):
                levels.append([])

    def _nodes(self) -> list[Node]:
        """Return all links, the oldest first, each with its level."""
        return [
            (level, link)
            for level in reversed(range(len(self.levels)))
            for link in self.levels[level]
        ]

    def links(self, shelf: Shelf) -> Plan[list[ContentLink]]:
        """Return links to all, the oldest first."""
        return (yield from _every(shelf, self._nodes()[::-1]))

    def numbered(self, shelf: Shelf, numbers: Sequence[int]) -> Plan[dict[int, list[Entry]]]:
        """Return the entries of some volumes, by their numbers from 0."""
        links: dict[int, ContentLink] = {}
        for number in numbers:
            links[number] = yield from self._numbered(shelf, number)
        return dict(zip(links, (yield from shelf.volumes([*links.values()])), strict=True))

    def _numbered(self, shelf: Shelf, number: int) -> Plan[ContentLink]:
        left = number
        for level, link in self._nodes():
            if left < FULL**level:
                return (yield from _within(shelf, level, link, left))
            left -= FULL**level
        raise stored_values.damaged("the record of older calls", f"has no volume {number}")


Node = tuple[int, ContentLink]


def _below(shelf: Shelf, links: Sequence[ContentLink]) -> Plan[list[tuple[ContentLink, ...]]]:
    """Return what full levels link to."""
    found = []
    for raw in (yield from shelf.read(links)):
        below = links_in(unpack(raw))
        if len(below) != FULL:
            raise stored_values.damaged("the record of older calls", "has a level that is not full")
        found.append(below)
    return found


def _within(shelf: Shelf, level: int, link: ContentLink, number: int) -> Plan[ContentLink]:
    while level:
        level -= 1
        below = (yield from _below(shelf, [link]))[0]
        link, number = below[number // FULL**level], number % FULL**level
    return link


def _first(shelf: Shelf, waiting: list[Node], count: int) -> Plan[list[ContentLink]]:
    """Take the first volumes out of nodes, whose last is the oldest."""
    found: list[ContentLink] = []
    while waiting and len(found) < count:
        level, link = waiting.pop()
        if not level:
            found.append(link)
            continue
        below = (yield from _below(shelf, [link]))[0]
        waiting += [(level - 1, each) for each in reversed(below)]
    return found


@dataclass(frozen=True)
class Parting:
    """Where two logs part: the volumes that each has beside those that they share."""

    mine: list[ContentLink]
    theirs: list[ContentLink]


def part(shelf: Shelf, mine: Volumes, theirs: Volumes) -> Plan[Parting]:
    """Return where two logs part; what they share is not read."""
    mine_left, theirs_left = mine._nodes()[::-1], theirs._nodes()[::-1]
    while mine_left and theirs_left:
        (level, link), (their_level, their_link) = mine_left[-1], theirs_left[-1]
        if (level, link) == (their_level, their_link):
            mine_left.pop()
            theirs_left.pop()
        elif level == their_level == 0:
            break
        else:
            top = max(level, their_level)
            for left, at in ((mine_left, level), (theirs_left, their_level)):
                if at == top:
                    _, opened = left.pop()
                    below = (yield from _below(shelf, [opened]))[0]
                    left += [(top - 1, each) for each in reversed(below)]
    return Parting((yield from _every(shelf, mine_left)), (yield from _every(shelf, theirs_left)))


def _every(shelf: Shelf, waiting: list[Node]) -> Plan[list[ContentLink]]:
    return (yield from _first(shelf, waiting, sum(FULL**level for level, _ in waiting)))
