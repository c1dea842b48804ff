"""The store in one SQLite file: the default."""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Callable, Collection
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from holdfast.errors import HoldfastError, InvalidArgumentError, StoreError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.async_base import AsyncStore
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    Store,
    checked_path,
)
from holdfast.stores.shared.rows import Row
from holdfast.stores.sqlite import writes
from holdfast.stores.sqlite.connection import Connections, Durability
from holdfast.stores.sqlite.pending import Pending
from holdfast.stores.sqlite.reads import SqliteReads, batches
from holdfast.stores.sqlite.rows import note_of, record_of
from holdfast.stores.sqlite.writes import SqliteWrites
from holdfast.system.threads import Threads

T = TypeVar("T")


class SqliteStore(Store):
    """Keeps checkpoints in an SQLite file, safe for many threads and processes at once.

    Savers that come together are committed together: whoever gets the write lock first takes along
    all that wait for it, so that one flush to disk serves them all.
    """

    files_apart: tuple[str, ...] = ()

    def __init__(self, path: str | Path, durability: Durability = "full") -> None:
        if checked_path(path) == ":memory:":
            raise InvalidArgumentError('an SQLite store needs a file; use "memory://" for memory')
        self._waiting: deque[Pending] = deque()
        self._db = Connections(Path(path), durability, in_child=self._waiting.clear)
        self._reads = SqliteReads(self._db.allowance)
        self._writes = SqliteWrites(self._removals_now)
        self._removals = 0
        file = os.path.abspath(path)
        self.files = (file, *(f"{file}-{log}" for log in ("wal", "shm", "journal")))

    @property
    def name(self) -> str:
        return self._db.name

    def async_store(self, threads: Threads) -> AsyncStore:
        from holdfast.stores.sqlite.group_commit import AsyncSqliteStore

        return cast(AsyncStore, AsyncSqliteStore(self, threads))

    def commit(self, commit: Commit | NotesOnly) -> None:
        pending = Pending(commit)
        self.submit(pending)
        self.flush(pending)
        if pending.error is not None:
            raise pending.error
        if not pending.done:  # another thread took it along and was interrupted
            raise StoreError(f"{self.name}: the save was interrupted; save again")

    def submit(self, pending: Pending) -> None:
        """Put a commit in the queue; ``flush`` carries it out."""
        self._db.check()
        self._waiting.append(pending)
        if self._db.closed:  # meanwhile, so that nobody else may come to tell it
            self.flush()

    def flush(self, mine: Pending | None = None) -> list[Pending]:
        """Commit all that wait, in one transaction; returns them. Stops early if mine is done."""
        with self._db.write_lock:
            if mine is not None and mine.done:
                return []
            batch: list[Pending] = []
            while self._waiting:
                batch.append(self._waiting.popleft())
            if not batch:
                return batch
            try:
                self._write(batch)
            except HoldfastError as error:
                _settle(batch, error)
            except Exception as error:
                _settle(batch, StoreError(f"{self.name} failed: {error}"))
            except BaseException:  # an interrupt of this thread: the others must not think it done
                _settle(batch, StoreError(f"{self.name}: the thread that wrote was interrupted"))
                raise
            else:
                _settle(batch)
            return batch

    def _write(self, batch: list[Pending]) -> None:
        self._db.write(lambda db: self._writes.commit(db, batch))
        self._writes.committed()

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        return self._db.read(lambda db: self._reads.load(db, checkpoint_id, verify))

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return self._db.read(lambda db: self._reads.fetch(db, names))

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        rows = self._db.read(lambda db: self._reads.notes(db, scopes, after, limit))
        return [note_of(row) for row in rows]

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        return self._db.read(lambda db: self._reads.match(db, prefix, limit, after))

    def query(self, query: Query) -> list[CheckpointInfo]:
        return [info for _, info in self._db.read(lambda db: self._reads.query(db, query))]

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[SessionInfo]:
        rows = self._db.read(lambda db: self._reads.heads(db, agent_id, session_id, limit, before))
        heads = ((record_of(row[:-1]), row[-1]) for row in rows)
        return [SessionInfo(head.agent_id, head.session_id, head, n) for head, n in heads]

    def stats(self) -> Stats:
        return self._db.read(self._reads.stats)

    def tick(self) -> tuple[int, int]:
        return self._db.data_version()

    def removals(self) -> tuple[int, int, int]:
        with self._db.write_lock:
            return self._removals_now()

    def _removals_now(self) -> tuple[int, int, int]:
        return (*self._db.others_version(), self._removals)

    def _remove(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with self._db.write_lock:
            self._removals += 1
            return self._db.write(work)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        return self._remove(lambda db: writes.delete(db, checkpoint_ids))

    def sweep(self, now: datetime) -> int:
        return self._remove(lambda db: writes.sweep(db, now))

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Collected:
        kept, bound = frozenset(live), microseconds(before)
        dead = self._db.read(lambda db: writes.dead_chunks(db, kept, bound))
        if not dry_run:
            for part in batches(dead):
                # In parts, so that no saver waits long; a chunk saved again meanwhile is spared.
                rows: list[Row] = [(row[0], bound) for row in part]
                self._remove(partial(writes.drop_chunks, rows=rows))
            self._give_back_space()
        return Collected(len(dead), sum(row[2] for row in dead))

    def _give_back_space(self) -> None:
        before, free = -1, 0
        while free != before:
            with self._db.write_lock:
                before, free = free, self._db.write(writes.give_back_space)

    def close(self) -> None:
        self._db.close()
        self.flush()  # tells what was queued too late that the store is closed


def _settle(batch: list[Pending], error: Exception | None = None) -> None:
    for pending in batch:
        pending.settle(error)
