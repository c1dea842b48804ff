"""A store of plain files: one readable document for each checkpoint."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Literal

from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    Stats,
    Store,
    checked_path,
)
from holdfast.stores.file.chunks import ChunkFiles
from holdfast.stores.file.errors import translating
from holdfast.stores.file.folders import DocumentFolders
from holdfast.stores.file.notes import Notes
from holdfast.stores.file.reads import FileReads
from holdfast.stores.file.writes import FileWrites


class FileStore(Store):
    """Keeps a checkpoint as ``<directory>/<agent>/<session>/<checkpoint id>.json``.

    Documents are made whole and durable before they get their name, and never change. With
    ``fmt="pickle"`` they are binary and end in ``.pkl``; only their first line is readable.
    Notes are documents of their own, in ``<directory>/.notes``, and so are the chunks of files.
    """

    shares_chunks = False
    files_apart: tuple[str, ...] = ()

    def __init__(
        self,
        directory: str | os.PathLike[str],
        fmt: Literal["json", "pickle"] = "json",
        allow_pickle: bool = False,
    ) -> None:
        if fmt not in ("json", "pickle"):
            raise InvalidArgumentError(f'fmt is "json" or "pickle", not {fmt!r}')
        self._root = os.path.abspath(checked_path(directory))
        self.files = (self._root,)
        self.allow_pickle = allow_pickle or fmt == "pickle"
        self._closed = False
        with translating(self.name, writing=True):
            folders = self._folders = DocumentFolders(self._root)
            self._notes = Notes(folders)
            self._chunks = ChunkFiles(self._root)
            self._reads = FileReads(folders, self.allow_pickle)
            as_json = fmt == "json"
            self._writes = FileWrites(folders, self._notes, self._chunks, self._reads, as_json)
            self._check()

    @property
    def name(self) -> str:
        return f"the file store {self._root}"

    def commit(self, commit: Commit | NotesOnly) -> None:
        with self._working(writing=True):
            self._writes.commit(commit)

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        with self._working():
            return self._reads.load(checkpoint_id, verify)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        with self._working():
            return self._chunks.fetch(names)  # those of a document are in it alone

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        with self._working():
            return self._notes.find(scopes, after, limit, datetime.now(UTC))

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        with self._working():
            return self._notes.find_last(scopes, count, datetime.now(UTC))

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        with self._working():
            return self._reads.match(prefix, limit, after)

    def query(self, query: Query) -> list[CheckpointInfo]:
        with self._working():
            return self._reads.query(query)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        with self._working(writing=True):
            return self._writes.delete(checkpoint_ids)

    def sweep(self, now: datetime) -> int:
        with self._working(writing=True):
            return self._writes.sweep(now)

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        with self._working(writing=not dry_run):
            return self._chunks.collect(live, before, dry_run)

    def stats(self) -> Stats:
        with self._working():
            return self._reads.stats(self._chunks.sizes())

    def glance(self) -> tuple[int, int] | None:
        with self._working():
            return self._folders.touched(self._notes.root)

    def close(self) -> None:
        self._closed = True

    def _check(self) -> None:
        # With a separator at its end, a path that is no directory is an error.
        os.stat(os.path.join(self._root, ""))

    @contextmanager
    def _working(self, writing: bool = False) -> Iterator[None]:
        if self._closed:
            raise StoreClosedError(self.name)
        with translating(self.name, writing):
            self._check()
            yield
