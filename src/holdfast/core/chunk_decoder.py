"""Reading chunks: back to values, and to the references they hold."""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from holdfast.core.chunk_format import (
    PAGED_BYTES,
    PAGED_DICT,
    PAGED_LIST,
    PAGED_STR,
    REF_LEAF,
    REF_NODE,
    unpack_index,
)
from holdfast.core.codec import OnUnknown, Trusts, Unpacker
from holdfast.core.hooked_unpacker import HookedUnpacker
from holdfast.core.kinds import by_code, bytes_codes, shape_of
from holdfast.core.rewrite import path_of_raw
from holdfast.errors import CheckpointIntegrityError, UnknownTypeError

Chunks = Mapping[bytes, bytes]
_PAGED = (PAGED_LIST, PAGED_DICT, PAGED_STR, PAGED_BYTES)
_PART = 2**20
"""Bytes of a long text that are decoded at once, or more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much stored data may make a reader do; what asks for more is refused as damaged."""

    bytes: int = 2**32
    chunks: int = 4_000_000


DEFAULT_LIMITS = Limits()


class _Budget:
    """Counts what a reader has opened, so that shared chunks cannot multiply without end."""

    def __init__(self, chunks: Chunks, limits: Limits) -> None:
        self._chunks = chunks
        self._bytes = limits.bytes
        self._count = limits.chunks

    def __getitem__(self, name: bytes) -> bytes:
        raw = self._chunks.get(name)
        if raw is None:
            raise CheckpointIntegrityError(None, f"chunk {name.hex()} is missing")
        self._bytes -= len(raw)
        self._count -= 1
        if self._bytes < 0 or self._count < 0:
            raise too_much()
        return raw


def too_much() -> CheckpointIntegrityError:
    """Return the error for data that claims to be more than any state is."""
    return CheckpointIntegrityError(None, "it holds more data than the limits allow")


def decode(
    root: bytes,
    chunks: Chunks,
    *,
    on_unknown: OnUnknown = "raise",
    allow_pickle: bool = False,
    limits: Limits = DEFAULT_LIMITS,
    trusts: Trusts | None = None,
) -> Any:
    """Return the value that a root chunk stands for, given all chunks it needs.

    Values of a class that ``trusts`` does not name are given as Raw.

    >>> from holdfast.core.chunk_encoder import encode
    >>> from holdfast.core.chunk_decoder import decode
    >>> encoded = encode([1, (2, 3)])
    >>> decode(encoded.root, encoded.chunks)
    [1, (2, 3)]
    """
    try:
        return _Decoder(chunks, on_unknown, allow_pickle, limits, trusts).value(root)
    except UnknownTypeError as error:
        # The hooks see no path; look for the value in the raw form, where it can be found.
        raw = _Decoder(chunks, "raw", allow_pickle, limits).value(root)
        path = path_of_raw(raw, error.type_name)
        why = error.problem.removeprefix(error.type_name + " ").partition(";")[0]
        raise UnknownTypeError(path, error.type_name, why) from None


class _Decoder:
    def __init__(
        self,
        chunks: Chunks,
        on_unknown: OnUnknown,
        allow_pickle: bool,
        limits: Limits,
        trusts: Trusts | None = None,
    ) -> None:
        self.chunks = _Budget(chunks, limits)
        self.unpacker = Unpacker(on_unknown, allow_pickle, self._extra, trusts)

    def value(self, name: bytes) -> Any:
        return self.unpacker.unpack(self.chunks[name])

    def _extra(self, code: int, data: bytes) -> Any:
        if code in (REF_LEAF, REF_NODE):
            return self.value(data)
        if code not in _PAGED:
            raise CheckpointIntegrityError(None, f"unknown kind of value {code}")
        pages = self._pages(data, 17)
        if code == PAGED_LIST:
            return [part for page in pages for part in self._typed(page, list)]
        if code == PAGED_DICT:
            whole: dict[str, Any] = {}
            for page in pages:
                whole.update(self._typed(page, dict))
            return whole
        try:
            return joined_bytes(pages) if code == PAGED_BYTES else joined_text(pages)
        except UnicodeDecodeError as error:
            raise CheckpointIntegrityError(None, f"text that is not UTF-8 ({error})") from None

    def _typed(self, page: bytes, cls: type) -> Any:
        value = self.unpacker.unpack(page)
        if type(value) is not cls:
            raise CheckpointIntegrityError(None, f"a page that is no {cls.__name__}")
        return value

    def _pages(self, index: bytes, below: int) -> Iterator[bytes]:
        level, entries = unpack_index(index)
        if level >= below:
            raise CheckpointIntegrityError(None, "an index that does not end")
        for name, *_ in entries:
            if level:
                yield from self._pages(inner_index(self.chunks[name]), level)
            else:
                yield self.chunks[name]


def joined_bytes(pages: Iterable[bytes]) -> bytes:
    """Return pages in one; each is let go of before the next: all would be the whole once more."""
    joined = BytesIO()
    for page in pages:
        joined.write(page)
    return joined.getvalue()


def joined_text(pages: Iterable[bytes]) -> str:
    """Return the text of pages; UnicodeDecodeError if it is none."""
    text = ""
    for part in _texts(pages):
        text += part  # of a local name: lengthened in its place, where a join would hold it twice
    return text


def _texts(pages: Iterable[bytes]) -> Iterator[str]:
    """Yield the text of pages in parts, so few that lengthening a text by them costs little."""
    decode = getincrementaldecoder("utf-8")().decode
    some: list[bytes] = []
    done, size = 0, 0
    for page in pages:
        some.append(page)
        size += len(page)
        if size > max(_PART, done // 16):
            yield decode(b"".join(some))
            done, size = done + size, 0
            some.clear()
    yield decode(b"".join(some), True)


def references(raw: bytes, links: bool = False) -> list[tuple[bytes, bool]]:
    """Return the chunks that a chunk refers to, each with whether it may itself refer to more.

    What a Link leads to is not needed to read the value, and is told only where it is asked for.
    """
    scan = _References(links)
    scan.unpack(raw)
    return scan.found


class _References(HookedUnpacker):
    __slots__ = ("found", "links")

    def __init__(self, links: bool) -> None:
        super().__init__()
        self.found: list[tuple[bytes, bool]] = []
        self.links = links

    def meet(self, code: int, data: bytes) -> None:
        if code in (REF_LEAF, REF_NODE):
            self.found.append((data, code == REF_NODE))
        elif code in _PAGED:
            self.found.extend(index_references(data))
        elif code in bytes_codes:
            meant = shape_of(code).chunk_meant(data) if self.links else None
            if meant is not None:
                self.found.append(meant)
        elif code in by_code:
            self.unpack(data)


def check_unfolded(
    sizes: Mapping[bytes, int],
    inner: Mapping[bytes, Sequence[bytes]],
    limits: Limits = DEFAULT_LIMITS,
) -> None:
    """Refuse chunks that refer to each other so often that the state would be beyond all limits.

    Forty chunks, each with two references to the next, say a state of 2**40 parts. What each
    stands for is counted once, given its bytes and which it refers to; nothing is unfolded.
    """
    counted: dict[bytes, tuple[int, int]] = {}
    for start in inner:
        way, stack = set[bytes](), [start]
        while stack:
            name = stack[-1]
            if name in counted:
                stack.pop()
                continue
            below = inner.get(name, ())
            if name not in way:
                way.add(name)
                waiting = [each for each in below if each not in counted]
                if not way.isdisjoint(waiting):
                    raise CheckpointIntegrityError(None, f"chunk {name.hex()} refers to itself")
                stack += waiting
                if waiting:
                    continue
            stack.pop()
            way.discard(name)
            count, size = 1, sizes[name]
            for each in below:
                count += counted[each][0]
                size += counted[each][1]
            if count > limits.chunks or size > limits.bytes:
                raise too_much()
            counted[name] = count, size


def index_references(data: bytes) -> list[tuple[bytes, bool]]:
    """Return the chunks an index names; those of an upper level are indexes, and refer to more."""
    level, entries = unpack_index(data)
    return [(name, has_refs or level > 0) for name, _, _, has_refs in entries]


def inner_index(raw: bytes) -> bytes:
    """Return the index that a chunk of an upper level holds."""
    data = _Content().unpack(raw)
    if type(data) is not bytes:
        raise CheckpointIntegrityError(None, "an index that is none")
    return data


class _Content(HookedUnpacker):
    __slots__ = ()

    def meet(self, code: int, data: bytes) -> bytes:
        return data
