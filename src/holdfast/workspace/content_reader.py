"""Taking in the bytes of a file that is open, as far as it reached when that began."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Collection

from holdfast.core.chunk_format import ID_BYTES, chunk_id
from holdfast.core.content_cuts import first_piece
from holdfast.workspace.blocks import Block, Blocks, PendingLocation
from holdfast.workspace.entries import EMPTY_FILE, FILE, SMALL, Entry, file_mode, pack_pieces
from holdfast.workspace.stat_keys import MODE, MTIME, SIZE, Key

_AT_ONCE = 2**20


class _Pieces(list[tuple[Block, int]]):
    """The pieces of a large file, whose names are not known before they are hashed."""


class ContentReader:
    """Reads files into blocks, each content once."""

    def __init__(
        self,
        blocks: Blocks,
        stored: Callable[[bytes], object],
        pieces_of: Callable[[Entry], Collection[bytes]],
    ) -> None:
        self._blocks = blocks
        self._stored = stored
        self._pieces_of = pieces_of
        self._new: dict[bytes, object] = {}

    def read(self, fd: int, key: Key, before: Entry | None) -> Entry:
        """Read an open file that has that key, no more of it than it had then; return its entry."""
        mode, mtime = file_mode(key[MODE]), key[MTIME]
        if key[SIZE] > SMALL:
            return self._large(fd, mode, mtime, key[SIZE], before)
        data = os.read(fd, SMALL + 1) if key[SIZE] else os.read(fd, 1)
        while 0 < len(data) < key[SIZE] and (more := os.read(fd, SMALL)):
            data += more
        data = data[:SMALL]  # one that grew past it is seen to have changed, and read again
        if not data:
            return Entry(FILE, mode, mtime, 0, EMPTY_FILE, None)
        content = chunk_id(data)
        location = self._location_of(content, before)
        if location is None:
            location = self._new[content] = self._blocks.add(data)
        return Entry(FILE, mode, mtime, len(data), content, location)

    def _large(self, fd: int, mode: int, mtime: int, length: int, before: Entry | None) -> Entry:
        if before is not None and before.kind == FILE and isinstance(before.location, bytes):
            self._blocks.known.update(self._pieces_of(before))
        digest = hashlib.sha256()
        pieces: list[tuple[Block, int]] = []
        buffer, size, is_end = b"", 0, False
        while not is_end:
            data = os.read(fd, min(_AT_ONCE, length - size))
            size += len(data)
            is_end = not data or size == length  # a log that never stops would never end
            digest.update(data)
            buffer += data
            while taken := first_piece(buffer, is_end):
                pieces.append((self._blocks.piece(buffer[:taken]), taken))
                buffer = buffer[taken:]
        content = digest.digest()[:ID_BYTES]
        if size == 0:
            return Entry(FILE, mode, mtime, 0, EMPTY_FILE, None)
        location = self._location_of(content, before)
        if location is None:
            location = self._new[content] = _Pieces(pieces)
        return Entry(FILE, mode, mtime, size, content, location)

    def _location_of(self, content: bytes, before: Entry | None) -> object:
        if before is not None and before.kind == FILE and before.content == content:
            return before.location
        return self._new[content] if content in self._new else self._stored(content)

    def settled(self, entry: Entry) -> Entry:
        """Return the entry with where its bytes lie, once all blocks have their names."""
        if isinstance(entry.location, PendingLocation):
            return entry._replace(location=entry.location.location())
        if isinstance(entry.location, _Pieces):
            listed = [(block.name, length) for block, length in entry.location]
            return entry._replace(location=self._blocks.keep(pack_pieces(listed)))
        return entry
