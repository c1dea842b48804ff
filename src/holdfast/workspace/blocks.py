"""Putting contents into the store, block by block, ahead of the note or record that needs them."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

from holdfast.core.chunk_format import chunk_id, compress, uncompressed
from holdfast.stores.base import NotesOnly, Store
from holdfast.workspace.entries import BlockLocation

SOLID = 256 * 1024
"""Small files are put into one block until it has this many bytes: together they compress well."""
_FEW = 4096
_FLUSH = 8 * 2**20
_WAITING = 24
_THREADS = min(4, os.cpu_count() or 1)


class Block:
    """A block whose name is not known before it is hashed."""

    __slots__ = ("name",)

    def __init__(self) -> None:
        self.name = b""


class PendingLocation(NamedTuple):
    """Where bytes begin in a block that is still being made."""

    block: Block
    offset: int

    def location(self) -> BlockLocation:
        """Return the location, once the block has its name."""
        return BlockLocation(self.block.name, self.offset)


class Blocks:
    """Collects contents, hashes and compresses them in threads, and commits them as they come.

    What is committed is young, so gc leaves it alone until a note or record leads to it. To compare
    alone nothing is kept: contents have names then, and are forgotten.
    """

    def __init__(self, store: Store, keeps: bool = True) -> None:
        self._store = store
        self._keeps = keeps
        self._parts: list[bytes] = []
        self._size = 0
        self._block = Block()
        self._tasks: deque[Future[None]] = deque()
        self._committing: Future[None] | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()
        self._done: dict[bytes, bytes] = {}
        self._done_bytes = 0
        self._committed: set[bytes] = set()
        self.known: set[bytes] = set()
        """Blocks that the store has for certain, so that they are not sent again."""
        self.new_bytes = 0
        """What was added to the store, compressed."""

    def add(self, data: bytes) -> PendingLocation:
        """Take in the bytes of a small file."""
        location = PendingLocation(self._block, self._size)
        self._parts.append(data)
        self._size += len(data)
        if self._size >= SOLID:
            self._close_block()
        return location

    def piece(self, data: bytes) -> Block:
        """Take in a piece of a large file, which is a block of its own."""
        block = Block()
        self._submit(block, [data])
        return block

    def keep(self, raw: bytes) -> bytes:
        """Take in a tree or a list of pieces; returns the name of its chunk.

        A small one is mostly hashes: compressing it wins a sixth, and takes longer than making it.
        """
        name = chunk_id(raw)
        if self._keeps:
            self._finished(name, compress(raw) if len(raw) > _FEW else uncompressed(raw))
        return name

    def settle(self) -> None:
        """Wait until every block has its name."""
        if self._parts and not self._tasks:
            self._make(self._block, self._parts)  # not worth a thread
            self._block, self._parts, self._size = Block(), [], 0
        elif self._parts:
            self._close_block()
        while self._tasks:
            self._collect()

    def rest(self) -> Mapping[bytes, bytes]:
        """Return the chunks that are not committed yet, to go with whatever leads to them all."""
        self._await_commit()
        rest, self._done, self._done_bytes = self._done, {}, 0
        return rest

    def close(self) -> None:
        """Let go of the threads; what was not committed is forgotten."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _close_block(self) -> None:
        self._submit(self._block, self._parts)
        self._block, self._parts, self._size = Block(), [], 0

    def _submit(self, block: Block, parts: list[bytes]) -> None:
        while len(self._tasks) >= _WAITING:
            self._collect()
        self._tasks.append(self._threads().submit(self._make, block, parts))
        if self._done_bytes >= _FLUSH:
            self._flush()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS + 1, "holdfast-blocks")
        return self._pool

    def _collect(self) -> None:
        self._tasks.popleft().result()

    def _make(self, block: Block, parts: list[bytes]) -> None:
        raw = parts[0] if len(parts) == 1 else b"".join(parts)
        name = chunk_id(raw)
        if self._keeps and name not in self.known and name not in self._committed:
            self._finished(name, compress(raw))
        block.name = name

    def _finished(self, name: bytes, stored: bytes) -> None:
        with self._lock:
            if name not in self._done:
                self._done[name] = stored
                self._done_bytes += len(stored)
                self.new_bytes += len(stored)

    def _flush(self) -> None:
        self._await_commit()
        with self._lock:
            chunks, self._done, self._done_bytes = self._done, {}, 0
            self._committed.update(chunks)
        self._committing = self._threads().submit(self._store.commit, NotesOnly((), chunks))

    def _await_commit(self) -> None:
        if self._committing is not None:
            committing, self._committing = self._committing, None
            committing.result()
