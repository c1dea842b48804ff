"""Opens chunks for who compares states: fetched when they are needed, and within the limits.

What is read stays shallow, as ``shallow_reader`` gives it, until the value itself is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from typing import Any, TypeVar

from holdfast.core.chunk_decoder import DEFAULT_LIMITS, decode, inner_index, references, too_much
from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    unpack_index,
)
from holdfast.core.kinds import Ready, bytes_codes
from holdfast.core.page_alignment import Part, parts_of
from holdfast.core.shallow_reader import Hole, packed, shallow
from holdfast.errors import CheckpointIntegrityError
from holdfast.system.drive import drive

T = TypeVar("T")
Asking = Generator[Any, Any, T]
Fetch = Callable[[Collection[bytes]], Asking[Mapping[bytes, bytes]]]
"""Gives chunks by name, and may have to wait for them."""

_ATOMS = (str, int, bool, float, bytes, type(None))
_DEEPEST = 17
"""More levels than any index has."""


class _Chunks(dict[bytes, bytes]):
    """The chunks at hand. Opening them is counted: shared ones must not multiply without end."""

    def __init__(self) -> None:
        super().__init__()
        self._bytes = DEFAULT_LIMITS.bytes
        self._count = DEFAULT_LIMITS.chunks

    def opened(self, name: bytes) -> bytes:
        raw = self[name]
        self._bytes -= len(raw)
        self._count -= 1
        if self._bytes < 0 or self._count < 0:
            raise too_much()
        return raw

    def get(self, name: bytes, default: Any = None) -> Any:
        """Return a chunk as the decoder asks for it."""
        return self.opened(name) if name in self else default


class ChunkOpener:
    """Follows what chunks refer to, as far as it is told to."""

    def __init__(self, fetch: Fetch, allow_pickle: bool) -> None:
        self._fetch = fetch
        self._allow_pickle = allow_pickle
        self._chunks = _Chunks()

    def need(self, names: Iterable[bytes]) -> Asking[None]:
        """Ask for those that are not at hand, all in one go."""
        missing = [name for name in dict.fromkeys(names) if name not in self._chunks]
        if missing:
            given = yield from self._fetch(missing)
            for name in missing:
                if name not in given:
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
                self._chunks[name] = given[name]

    def read(self, name: bytes) -> Any:
        """Return the shallow value of a chunk that is at hand."""
        return shallow(self._chunks.opened(name))

    def resolved(self, value: Any) -> Asking[Any]:
        """Return what a reference leads to; pages stay closed."""
        while type(value) is Hole and value.code in (REF_LEAF, REF_NODE):
            yield from self.need((value.data,))
            value = self.read(value.data)
        return value

    def opened(self, value: Any) -> Asking[Any]:
        """Resolve, and return a paged list or dict as a whole, its elements shallow."""
        value = yield from self.resolved(value)
        if type(value) is Hole and value.code in (PAGED_LIST, PAGED_DICT):
            pages = yield from self._flat(value.data)
            return (yield from self.joined(pages, value.code))
        return value

    # Pages.

    def _flat(self, index: bytes) -> Asking[list[bytes]]:
        """Return the pages of an index, in order."""
        level, entries = unpack_index(index)
        return (yield from self._pages(level, [entry[0] for entry in entries], _DEEPEST))

    def _pages(self, level: int, names: list[bytes], below: int) -> Asking[list[bytes]]:
        if level >= below:
            raise CheckpointIntegrityError(None, "an index that does not end")
        if level == 0:
            return names
        yield from self.need(names)
        pages: list[bytes] = []
        for name in names:
            inner, entries = unpack_index(inner_index(self._chunks.opened(name)))
            pages += yield from self._pages(inner, [entry[0] for entry in entries], level)
        return pages

    def one_level_down(self, parts: list[Part], level: int) -> list[Part]:
        """Return what indexes of that level are made of; they are at hand."""
        found: list[Part] = []
        for part in parts:
            inner, entries = unpack_index(inner_index(self._chunks.opened(part.name)))
            if inner != level - 1:
                raise CheckpointIntegrityError(None, "an index of uneven depth")
            found += parts_of(entries, part.start)
        return found

    def joined(self, pages: list[bytes], code: int) -> Asking[Any]:
        """Return what is in some pages, together."""
        yield from self.need(pages)
        return self._together(pages, code)

    def _together(self, pages: list[bytes], code: int) -> Any:
        raws = map(self._chunks.opened, pages)
        if code == PAGED_BYTES:
            return b"".join(raws)
        if code == PAGED_STR:
            try:
                return b"".join(raws).decode()
            except UnicodeDecodeError as error:
                raise CheckpointIntegrityError(None, f"text that is not UTF-8 ({error})") from None
        cls = list if code == PAGED_LIST else dict
        parts = [shallow(raw) for raw in raws]
        if any(type(part) is not cls for part in parts):
            raise CheckpointIntegrityError(None, f"a page that is no {cls.__name__}")
        if cls is list:
            return [element for part in parts for element in part]
        return {key: value for part in parts for key, value in part.items()}

    # Whole values.

    def full(self, value: Any) -> Asking[Any]:
        """Return the value that a shallow one stands for, with everything it refers to."""
        if type(value) in _ATOMS:
            return value
        yield from self.need_all(value)
        return self.value(value)

    def need_all(self, value: Any) -> Asking[None]:
        """Ask for all that a shallow value refers to."""
        level, seen = references(packed(value)), set[bytes]()
        while level:
            yield from self.need([name for name, _ in level])
            names = {name for name, refers in level if refers} - seen
            seen |= names
            level = [ref for name in names for ref in references(self._chunks.opened(name))]

    def value(self, value: Any) -> Any:
        """Return the same as ``full``, of what was asked for before."""
        name = b"\x00"
        self._chunks[name] = packed(value)
        return decode(name, self._chunks, on_unknown="raw", allow_pickle=self._allow_pickle)

    def whole(self, value: Any) -> Any:
        """Return a shallow value with the content of all it refers to in its place."""
        cls = type(value)
        if cls is list:
            return [self.whole(part) for part in value]
        if cls is dict:
            return {key: self.whole(part) for key, part in value.items()}
        if cls is Ready:
            return (
                value if value.code in bytes_codes else Ready(value.code, self.whole(value.plain))
            )
        if cls is not Hole:
            return value
        if value.code in (REF_LEAF, REF_NODE):
            return self.whole(self.read(value.data))
        pages = _answered(self._flat(value.data))
        return self.whole(self._together(pages, value.code))


def _answered(asking: Asking[T]) -> T:
    """Return the result of what has all it would ask for."""
    return drive(asking, _refuse)


def _refuse(asked: Any) -> None:
    raise CheckpointIntegrityError(None, "a chunk is missing")
