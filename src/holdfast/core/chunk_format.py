"""The stored form of chunks: names, references, indexes, compression."""

from __future__ import annotations

import hashlib
import threading
from typing import Any

import ormsgpack

from holdfast.errors import CheckpointIntegrityError, SerializationError

ID_BYTES = 20

REF_LEAF, REF_NODE = 64, 65
LINK = 61
"""The code of a link (``kinds/content_links``), whose data is a name, and a mark for a leaf."""
PAGED_LIST, PAGED_DICT, PAGED_STR, PAGED_BYTES = 66, 67, 68, 69

RECORD_KEYS = 32
RECORD_SPLIT = 1024
"""In a dict of few keys, a value above this many bytes gets a chunk of its own."""
ELEMENT_SPLIT = 8192
"""Elsewhere, an element above this many bytes does."""
WHOLE = 3072
"""What has up to this many bytes is not cut; a list or dict whose parts have, not into pages."""

MAX_CHUNK = 64 * 2**20
"""No chunk is larger than this when unpacked; a stored one that claims to be is refused."""


def chunk_id(raw: bytes) -> bytes:
    """Return the name of a chunk: SHA-256 of its bytes, cut to 160 bits."""
    return hashlib.sha256(raw).digest()[:ID_BYTES]


def pack_index(level: int, entries: list[tuple[bytes, int, bool, bool]]) -> bytes:
    """Return an index of pages (level 0) or indexes: each entry a name, a count and two marks."""
    names = b"".join([entry[0] for entry in entries])
    marks = [count * 4 + natural * 2 + has_refs for _, count, natural, has_refs in entries]
    return ormsgpack.packb([level, names, marks])


def unpack_index(data: bytes) -> tuple[int, list[tuple[bytes, int, bool, bool]]]:
    """Return the level and entries of an index."""
    try:
        level, names, marks = ormsgpack.unpackb(data)
        if not (type(level) is int and 0 <= level <= 16 and len(names) == ID_BYTES * len(marks)):
            raise ValueError("an index of the wrong shape")
        if not all(type(mark) is int and 4 <= mark < 2**40 for mark in marks):
            raise ValueError("an index of impossible counts")
        return level, [
            (names[i * ID_BYTES : (i + 1) * ID_BYTES], mark >> 2, bool(mark & 2), bool(mark & 1))
            for i, mark in enumerate(marks)
        ]
    except (TypeError, ValueError) as error:
        raise CheckpointIntegrityError(None, f"unreadable index ({error})") from None


_LINKS = tuple(bytes((0xC7, ID_BYTES + extra, LINK)) for extra in (0, 1))


def may_link(raw: bytes) -> bool:
    """Return whether there may be links in a chunk: one without the bytes they begin with has none.

    What says whether a chunk refers to more counts them, as those who collect garbage go by it.
    """
    return any(link in raw for link in _LINKS)


def array_header(count: int) -> bytes:
    """Return the bytes msgpack puts before that many list elements."""
    if count < 16:
        return bytes((0x90 | count,))
    return (
        b"\xdc" + count.to_bytes(2, "big") if count < 2**16 else b"\xdd" + count.to_bytes(4, "big")
    )


def map_header(count: int) -> bytes:
    """Return the bytes msgpack puts before that many dict items."""
    if count < 16:
        return bytes((0x80 | count,))
    return (
        b"\xde" + count.to_bytes(2, "big") if count < 2**16 else b"\xdf" + count.to_bytes(4, "big")
    )


_PLAIN, _ZSTD = b"\x00", b"\x01"
_APART = (b"\x02", b"\x03")
"""Not a chunk, but where in object storage it is; written and read by stores/objects/keys.py."""
_WORTH_COMPRESSING = 400


class _Zstd(threading.local):
    """One compressor for each thread: they must not be shared."""

    def __init__(self) -> None:
        import zstandard

        self.compress = zstandard.ZstdCompressor(level=1).compress
        self.decompress = zstandard.ZstdDecompressor().decompress
        self.error: Any = zstandard.ZstdError
        self.frame_size = zstandard.frame_content_size


_zstd: _Zstd | None = None


def _codec() -> _Zstd:
    global _zstd
    if _zstd is None:
        _zstd = _Zstd()
    return _zstd


def prepare() -> None:
    """Load what compression needs: not during a first save, where a fork would cut it short."""
    _codec()


def check_size(raw: bytes) -> None:
    """Refuse a chunk that no reader would take."""
    if len(raw) > MAX_CHUNK:
        raise SerializationError(
            "$", f"a part of {len(raw)} bytes cannot be cut; the limit is {MAX_CHUNK}"
        )


def compress(raw: bytes) -> bytes:
    """Return the stored form of a chunk."""
    check_size(raw)
    if len(raw) >= _WORTH_COMPRESSING:
        packed: bytes = _codec().compress(raw)
        if len(packed) < len(raw):
            return _ZSTD + packed
    return _PLAIN + raw


def uncompressed(raw: bytes) -> bytes:
    """Return the stored form of a chunk that is to stay readable."""
    check_size(raw)
    return _PLAIN + raw


def decompress(stored: bytes) -> bytes:
    """Return the bytes of a stored chunk, its size checked before any is made."""
    method, data = stored[:1], memoryview(stored)[1:]
    if method == _PLAIN:
        return bytes(data)
    if method in _APART:
        raise CheckpointIntegrityError(
            None, "a chunk is in object storage: open the store with its blobs (?blobs=…)"
        )
    if method != _ZSTD:
        raise CheckpointIntegrityError(None, "a chunk of unknown compression")
    zstd = _codec()
    try:
        size = zstd.frame_size(data)
        if not 0 <= size <= MAX_CHUNK:
            raise CheckpointIntegrityError(None, f"a chunk that claims {size} bytes")
        raw: bytes = zstd.decompress(data)
    except zstd.error as error:
        raise CheckpointIntegrityError(None, f"a chunk that cannot be unpacked ({error})") from None
    return raw


def claimed_size(stored: bytes) -> int:
    """Return how many bytes a stored chunk says it has when it is unpacked; nothing is unpacked."""
    if stored[:1] != _ZSTD:
        return len(stored) - 1
    zstd = _codec()
    try:
        size: int = zstd.frame_size(memoryview(stored)[1:])
    except zstd.error:  # which is found when it is unpacked
        return 0
    return size


def checked(name: bytes, stored: bytes) -> bytes:
    """Return the bytes of a stored chunk, proven to be those it is named after."""
    raw = decompress(stored)
    if chunk_id(raw) != name:
        raise CheckpointIntegrityError(None, f"chunk {name.hex()} does not match its name")
    return raw
