"""The store in one SQLite file: the default."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection, Container
from datetime import datetime
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
from holdfast.stores.sqlite.reads import BATCH, SqliteReads
from holdfast.stores.sqlite.rows import key_of, note_of, session_of
from holdfast.stores.sqlite.writes import PART_SECONDS, Part, SqliteWrites
from holdfast.system import crash_points
from holdfast.system.threads import Threads

T = TypeVar("T")

_BEFORE_ALL = -(2**63)
_SHORTEST_REST, _LONGEST_REST = 0.005, 0.1
"""Longer than another process waits before it looks for the lock again, if it is woken in time."""


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
        is_long = scopes is None and limit is None
        rows = self._db.read(lambda db: self._reads.notes(db, scopes, after, limit), is_long)
        return [note_of(row) for row in rows]

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        rows = self._db.read(lambda db: self._reads.last_notes(db, scopes, count))
        return [note_of(row) for row in rows]

    def targets(self) -> list[str]:
        return self._db.read(self._reads.targets)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        return self._db.read(lambda db: self._reads.match(db, prefix, limit, after))

    def query(self, query: Query) -> list[CheckpointInfo]:
        is_long = query.ids is None and (query.limit is None or query.limit > BATCH)
        found = self._db.read(lambda db: self._reads.query(db, query), is_long or bool(query.tags))
        return [info for _, info in found]

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[SessionInfo]:
        rows = self._db.read(
            lambda db: self._reads.heads(db, agent_id, session_id, limit, before),
            is_long=limit is None and session_id is None,
        )
        return list(map(session_of, rows))

    def beginning(self, prefix: str, limit: int) -> list[SessionInfo]:
        rows = self._db.read(lambda db: self._reads.beginning(db, prefix, limit))
        return list(map(session_of, rows))

    def stats(self) -> Stats:
        return self._db.read(self._reads.stats, is_long=True)

    def roots(self, include_expired: bool, take: Callable[[list[bytes]], object]) -> None:
        self._db.read(lambda db: self._reads.roots(db, include_expired, take), is_long=True)

    def misfiled(self, infos: Collection[CheckpointInfo]) -> list[tuple[str, str]]:
        from holdfast.stores.sqlite.filing import misfiled

        return self._db.read(lambda db: list(misfiled(db, infos)), is_long=True)

    def tick(self) -> tuple[int, int]:
        return self._db.data_version()

    def removals(self) -> tuple[int, int, int]:
        with self._db.write_lock:
            return self._removals_now()

    def _removals_now(self) -> tuple[int, int, int]:
        return (*self._db.others_version(), self._removals)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        return self._delete(deque(map(key_of, checkpoint_ids)))

    def _delete(self, keys: deque[bytes | str]) -> int:
        removed = self._in_part(lambda db, part: writes.delete(db, part, keys))
        while keys:
            removed += self._in_part(lambda db, part: writes.delete(db, part, keys))
        return removed

    def sweep(self, now: datetime) -> int:
        bound, removed = microseconds(now), 0
        while self._in_part(lambda db, part: writes.sweep_notes(db, part, bound)):
            pass
        while keys := self._db.read(lambda db: self._reads.expired(db, bound)):
            gone = self._delete(deque(keys))
            if not gone:  # an index that lists what is not there
                break
            removed += gone
        return removed

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        bound, after = microseconds(before), _BEFORE_ALL
        chunks = size = 0
        while page := self._db.read(
            lambda db: self._reads.chunks_after(db, after, bound),  # noqa: B023  (called at once)
            is_long=True,
        ):
            after = page[-1][0]
            dead = deque(row for row in page if row[3] and row[1] not in live)
            gone = _all_of(dead) if dry_run else self._drop(dead, bound)
            chunks, size = chunks + gone[0], size + gone[1]
        if not dry_run:
            while self._in_part(writes.give_back_space):
                pass
        return Collected(chunks, size)

    def _drop(self, dead: deque[Row], bound: int) -> writes.Dropped:
        chunks = size = 0
        while dead:  # a chunk that is saved again meanwhile is spared
            done = self._in_part(lambda db, part: writes.drop_chunks(db, part, dead, bound))
            chunks, size = chunks + done[0], size + done[1]
        return chunks, size

    def _in_part(self, work: Callable[[sqlite3.Connection, Part], T]) -> T:
        """Remove some, in a transaction that is short, and let others write before the next."""
        with self._db.write_lock:
            began = time.monotonic()
            self._removals += 1
            done = self._db.write(lambda db: work(db, Part()))
        self.flush()  # of this process: locks are not fair, and who waits might never get one
        crash_points.reach("upkeep:part")
        took = time.monotonic() - began
        if took > PART_SECONDS / 2:  # there is more: others look for the lock now and then
            time.sleep(min(max(_SHORTEST_REST, took), _LONGEST_REST))
        return done

    def close(self) -> None:
        self._db.close()
        self.flush()  # tells what was queued too late that the store is closed


def _all_of(rows: Collection[Row]) -> writes.Dropped:
    return len(rows), sum(row[2] for row in rows)


def _settle(batch: list[Pending], error: Exception | None = None) -> None:
    for pending in batch:
        pending.settle(error)
