"""Following links: to chunks that are kept with a state and not read with it, such as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import checked
from holdfast.errors import CheckpointIntegrityError
from holdfast.runtime import steps
from holdfast.runtime.steps import Plan

PAGE = 50
"""Chunks that are fetched at once; those of files are large."""

Level = Mapping[bytes, bool]
"""Names of chunks, each with whether it may refer to more."""


def links_of(root: bytes, chunks: Mapping[bytes, bytes]) -> dict[bytes, bool]:
    """Return what the links of a state lead to, given the chunks it needs itself, unpacked."""
    found: dict[bytes, bool] = {}
    seen: set[bytes] = set()
    level: Level = {root: True}
    while level:
        following: dict[bytes, bool] = {}
        for name, refers in level.items():
            raw = chunks.get(name)
            if raw is None:
                found[name] = refers or found.get(name, False)
            elif refers and name not in seen:
                seen.add(name)
                following.update(references(raw, links=True))
        level = following
    return found


class Walk:
    """A walk along links, a page at a time; each chunk once, proven."""

    def __init__(self, level: Level, seen: set[bytes]) -> None:
        self._seen = seen
        self._waiting = dict(level)
        self._asked: dict[bytes, bool] = {}

    def wanted(self) -> list[bytes]:
        """Return the chunks to be given next; none at the end."""
        self._asked = {}
        while self._waiting and len(self._asked) < PAGE:
            name, refers = self._waiting.popitem()
            if name not in self._seen:
                self._asked[name] = refers
        return list(self._asked)

    def give(self, stored: Mapping[bytes, bytes]) -> None:
        """Go on from the chunks that were wanted, as they are stored."""
        for name, refers in self._asked.items():
            if name not in stored:
                raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
            raw = checked(name, stored[name])
            if refers:
                self._waiting.update(references(raw, links=True))
            self._seen.add(name)


def copy_linked(
    level: Level, seen: set[bytes], take: Callable[[Mapping[bytes, bytes]], object]
) -> Plan[None]:
    """Hand over every chunk that links lead to, as it is stored, page by page."""
    walk = Walk(level, seen)
    while names := walk.wanted():
        stored = yield from steps.fetch(names)
        walk.give(stored)
        yield from steps.do(lambda s=stored: take(s))  # type: ignore[misc]
