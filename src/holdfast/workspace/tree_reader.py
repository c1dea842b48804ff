"""Reading trees and contents back from the store, each proven to be what it is named after."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice

from holdfast.core.chunk_format import ID_BYTES, MAX_CHUNK, checked, chunk_id, decompress
from holdfast.errors import CheckpointIntegrityError
from holdfast.stores.base import Store
from holdfast.workspace.entries import (
    DIRECTORY,
    FILE,
    MAX_BLOCK,
    MAX_DEPTH,
    MAX_ENTRIES,
    BlockLocation,
    DirectoryTree,
    Entry,
    parse_pieces,
    parse_tree,
)
from holdfast.workspace.paths import start_of

_BATCH = 16
_AHEAD = 3
_PAGE = 500
_THREADS = 2


class TreeReader:
    """The trees and contents that a store holds."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def trees(self, chunks: Iterable[bytes]) -> Iterator[tuple[bytes, DirectoryTree]]:
        """Yield the trees of these chunks, each once and one at a time."""
        wanted = list(dict.fromkeys(chunks))
        for start in range(0, len(wanted), _PAGE):
            stored = self._stored(wanted[start : start + _PAGE])
            for name, data in stored.items():
                yield name, parse_tree(checked(name, data))

    def tree(self, chunk: bytes) -> DirectoryTree:
        """Return the tree of a chunk."""
        ((_, tree),) = self.trees([chunk])
        return tree

    def levels(
        self, root: bytes, enter: Callable[[bytes, DirectoryTree], Iterable[tuple[bytes, bytes]]]
    ) -> None:
        """Go through a tree from the root down, within limits, in few round trips.

        ``enter`` is called with each path and its tree, and returns which subtrees are to follow.
        """
        level = [(b"", root)]
        count = 0
        for _ in range(MAX_DEPTH):
            paths: dict[bytes, list[bytes]] = {}
            for path, chunk in level:
                paths.setdefault(chunk, []).append(path)
            level = []
            for chunk, tree in self.trees(paths):
                count += (len(tree.entries) + 1) * len(paths[chunk])
                if count > MAX_ENTRIES:
                    raise too_much()
                for path in paths[chunk]:
                    level += enter(path, tree)
            if not level:
                return
        raise too_much()

    def walk(self, root: bytes) -> list[tuple[bytes, Entry]]:
        """Return everything in a tree with its path, in order of the paths."""
        found: list[tuple[bytes, Entry]] = []

        def enter(path: bytes, tree: DirectoryTree) -> Iterable[tuple[bytes, bytes]]:
            start = start_of(path)
            for name, entry in tree.entries.items():
                found.append((start + name, entry))
                if entry.kind == DIRECTORY:
                    yield start + name, entry.location

        self.levels(root, enter)
        return sorted(found)

    def find(self, root: bytes, path: bytes) -> Entry | None:
        """Return what stands at a path of a tree, if anything does."""
        return TreeLookup(self, root).find(path)

    def pieces(self, entry: Entry) -> list[tuple[bytes, int]]:
        """Return the blocks that a large file is made of, with their sizes."""
        (raw,) = self._fetch([entry.location], MAX_CHUNK).values()
        return parse_pieces(raw, entry.size)

    def read(self, entry: Entry) -> Iterator[bytes]:
        """Yield the bytes of a file, piece by piece; the last of them only if all were right."""
        if entry.kind != FILE or entry.location is None:
            return
        if isinstance(entry.location, BlockLocation):
            (block,) = self._fetch([entry.location.block]).values()
            yield part_of(block, entry)
            return
        digest = hashlib.sha256()
        pieces = self.pieces(entry)
        with Prefetch(self, [name for name, _ in pieces]) as blocks:
            for number, (name, size) in enumerate(pieces, 1):
                raw = blocks.get(name)
                digest.update(raw)
                if len(raw) != size:
                    raise CheckpointIntegrityError(None, "a piece of a file has another size")
                if number == len(pieces) and digest.digest()[:ID_BYTES] != entry.content:
                    raise CheckpointIntegrityError(None, "a file does not match its hash")
                yield raw

    def blocks(self, names: Collection[bytes]) -> Iterator[tuple[bytes, bytes]]:
        """Yield these blocks, unpacked and unproven: ``part_of`` proves what is cut from them."""
        for name, data in self._stored(names).items():
            yield name, _within(MAX_BLOCK, name, decompress(data))

    def _fetch(self, names: Collection[bytes], limit: int = MAX_BLOCK) -> dict[bytes, bytes]:
        stored = self._stored(names).items()
        return {name: _within(limit, name, checked(name, data)) for name, data in stored}

    def _stored(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        stored = self._store.fetch(names)
        missing = next((name for name in names if name not in stored), None)
        if missing is not None:
            raise CheckpointIntegrityError(None, f"chunk {missing.hex()} is missing")
        return {name: stored[name] for name in names}


class TreeLookup:
    """Finds entries of one tree by path, each directory read once."""

    def __init__(self, reader: TreeReader, root: bytes) -> None:
        self._reader = reader
        self._root = root
        self._trees: dict[bytes, DirectoryTree] = {}

    def find(self, path: bytes) -> Entry | None:
        """Return what stands at a path, if anything does."""
        chunk, entry = self._root, None
        for name in path.split(b"/"):
            if entry is not None:
                if entry.kind != DIRECTORY:
                    return None
                chunk = entry.location
            if chunk not in self._trees:
                self._trees[chunk] = self._reader.tree(chunk)
            entry = self._trees[chunk].entries.get(name)
            if entry is None:
                return None
        return entry


class Prefetch:
    """Blocks in a known order, fetched and unpacked by threads ahead of whoever uses them."""

    def __init__(self, reader: TreeReader, names: Iterable[bytes]) -> None:
        self._reader = reader
        self._names = iter(names)
        self._batches: deque[Future[dict[bytes, bytes]]] = deque()
        self._now: dict[bytes, bytes] = {}
        self._pool: ThreadPoolExecutor | None = None

    def __enter__(self) -> Prefetch:
        first = list(islice(self._names, 2))
        if len(first) > 1:
            self._pool = ThreadPoolExecutor(_THREADS, "holdfast-read")
            self._batches.append(self._pool.submit(self._reader._fetch, first))
            self._go_on()
        elif first:
            self._now = self._reader._fetch(first)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def _go_on(self) -> None:
        while self._pool is not None and len(self._batches) < _AHEAD:
            names = list(islice(self._names, _BATCH))
            if not names:
                return
            self._batches.append(self._pool.submit(self._reader._fetch, names))

    def get(self, name: bytes) -> bytes:
        """Return the next block, which has to be asked for in order; one may be asked for again."""
        while name not in self._now:
            self._now = self._batches.popleft().result()
            self._go_on()
        return self._now[name]


def _within(limit: int, name: bytes, raw: bytes) -> bytes:
    if len(raw) > limit:
        raise CheckpointIntegrityError(None, f"block {name.hex()} is larger than any is made")
    return raw


def part_of(block: bytes, entry: Entry) -> bytes:
    """Return the bytes of a small file, cut out of their block."""
    data = block[entry.location.offset : entry.location.offset + entry.size]
    if chunk_id(data) != entry.content:
        raise CheckpointIntegrityError(None, "a file does not match its hash")
    return data


def too_much() -> CheckpointIntegrityError:
    """Return the error for a tree that claims to hold more than anyone has."""
    return CheckpointIntegrityError(None, "a workspace tree holds more than the limits allow")
