"""The store in one SQLite file: the default."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain, count, islice
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar, cast

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    FencedError,
    HoldfastError,
    InvalidArgumentError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
    StoreError,
)
from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.stores.async_base import AsyncStore
from holdfast.stores.base import (
    NOTE_TIES,
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
    gather,
    place_after,
)
from holdfast.stores.shared.rows import Row, bound_of, check_time, info_of, made_at, packed_body
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.connection import Connections, Durability
from holdfast.stores.sqlite.pending import Pending
from holdfast.system import crash_points
from holdfast.system.threads import Threads

T = TypeVar("T")

_BATCH = 500
_BODY = -2
"""Which column of a record may have any size."""

PlacedRecord = tuple[int, CheckpointInfo]
"""A record with its place."""


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
        self._session_keys: dict[tuple[str, str], int] = {}
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
        new_sessions: dict[tuple[str, str], int] = {}

        def write(db: sqlite3.Connection) -> None:
            chunks: list[Row] = []
            crash_points.reach("sqlite:begun")
            now = time.time_ns() // 1000  # not earlier: gc takes older chunks it knows no record of
            for pending in batch:
                try:
                    self._insert(db, pending.commit, new_sessions)
                except HoldfastError as error:
                    pending.error = error
                else:
                    chunks += [(name, now, data) for name, data in pending.commit.chunks.items()]
            crash_points.reach("sqlite:record_written")
            db.executemany(sql.INSERT_CHUNK, chunks)
            crash_points.reach("sqlite:chunks_written")

        self._db.write(write)
        crash_points.reach("sqlite:committed")
        if len(self._session_keys) > 10_000:
            self._session_keys.clear()
        self._session_keys.update(new_sessions)

    def _insert(
        self,
        db: sqlite3.Connection,
        commit: Commit | NotesOnly,
        new_sessions: dict[tuple[str, str], int],
    ) -> None:
        removals = commit.removals if isinstance(commit, NotesOnly) else None
        if removals is not None and removals != self._removals_now():
            raise MissingBaseError
        fence = commit.unless
        if fence is not None and db.execute(sql.EXISTS_NOTE, (_key(fence[0]), fence[1])).fetchone():
            raise FencedError(fence)
        seen: set[tuple[str, str]] = set()
        for note in commit.notes:
            taken = db.execute(sql.EXISTS_NOTE, (_key(note.scope), note.key)).fetchone()
            if taken is not None or (note.scope, note.key) in seen:
                raise NoteExistsError(note)
            seen.add((note.scope, note.key))
        if isinstance(commit, Commit):
            self._insert_record(db, commit, new_sessions)
        if commit.notes:
            (last,) = db.execute(sql.LAST_NOTE).fetchone()
            rows = map(_note_row, count(max(_now() * NOTE_TIES, last + 1)), commit.notes)
            db.executemany(sql.INSERT_NOTE, rows)

    def _insert_record(
        self, db: sqlite3.Connection, commit: Commit, new_sessions: dict[tuple[str, str], int]
    ) -> None:
        info = commit.info
        if commit.base is not None and not _exists(db, commit.base):
            raise MissingBaseError
        parent = info.parent_id if commit.needs_parent else None
        if parent is not None and parent != commit.base and not _exists(db, parent):
            raise MissingParentError
        session = (info.agent_id, info.session_id)
        key = self._session_keys.get(session) or new_sessions.get(session)
        if key is None:
            db.execute(sql.INSERT_SESSION, session)
            (key,) = db.execute(sql.SELECT_SESSION, session).fetchone()
            new_sessions[session] = key
        check_time(info.created_at)
        last = db.execute(sql.LAST_OF_SESSION, (key,)).fetchone()
        if commit.follows is not None and commit.follows != ("" if last is None else _id(last[1])):
            raise NotTheHeadError
        after = None if last is None else last[0]
        if commit.behind is not None:
            after = max((seq for each in commit.behind for seq in _places(db, each)), default=None)
        seq = place_after(info.created_at, after)
        try:
            db.execute(sql.INSERT_CHECKPOINT, _row(info, key, seq))
        except sqlite3.IntegrityError as error:
            if "checkpoints.seq" not in str(error):
                raise CheckpointConflictError(info.checkpoint_id) from None
            (free,) = db.execute(sql.FREE_PLACE, (seq,)).fetchone()
            try:
                db.execute(sql.INSERT_CHECKPOINT, _row(info, key, free))
            except sqlite3.IntegrityError:
                raise CheckpointConflictError(info.checkpoint_id) from None

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        def read(db: sqlite3.Connection) -> Record | None:
            statement = f"{sql.SELECT_RECORDS} WHERE c.id = ? AND {sql.ALIVE}"
            row = db.execute(statement, (_key(checkpoint_id), _now())).fetchone()
            if row is None:
                return None
            info = _info(row)
            try:
                return Record(info, gather(row[8], self._fetching(db), verify))
            except CheckpointIntegrityError as error:
                raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

        return self._db.read(read)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return self._db.read(lambda db: self._fetching(db)(names))

    def _fetching(
        self, db: sqlite3.Connection
    ) -> Callable[[Collection[bytes]], dict[bytes, bytes]]:
        """What fetches chunks, and all in all no more than the file can hold."""
        measure = self._db.allowance.measure()

        def fetch(names: Collection[bytes]) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            for part in _batches(list(names)):
                for name, data in db.execute(sql.select_chunks(len(part)), part):
                    if type(data) is bytes:  # else it is damaged, and lost
                        measure(len(data))
                        found[name] = data
            return found

        return fetch

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        bounds, at_most = (after, _now()), -1 if limit is None else limit
        measured = partial(self._db.allowance.measured, column=4)

        def read(db: sqlite3.Connection) -> list[Row]:
            if scopes is None:
                statement = f"{sql.SELECT_NOTES} {sql.BY_SEQ}"
                return list(measured(db.execute(statement, (*bounds, at_most))))
            rows: list[Row] = []
            for part in _batches([_key(scope) for scope in set(scopes)]):
                among = sql.notes_among(len(part), following=after > 0)
                statement = f"{sql.SELECT_NOTES} {among} {sql.BY_SEQ}"
                rows += measured(db.execute(statement, (*bounds, *part, at_most)))
            return rows

        rows = self._db.read(read)
        rows.sort(key=itemgetter(0))
        return [_note(row) for row in rows[:limit]]

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

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        past = _key(after) if after else b""

        def read(db: sqlite3.Connection) -> list[tuple[bytes | str]]:
            found: list[tuple[bytes | str]] = []
            if isinstance(past, bytes) and _UUID_PREFIX.fullmatch(prefix):
                digits = prefix.replace("-", "")
                low, high = (bytes.fromhex(digits.ljust(32, fill)) for fill in "0f")
                found += db.execute(sql.MATCH_UUID, (low, high, past, limit)).fetchall()
            if len(found) < limit:
                text = past if isinstance(past, str) else ""
                bounds = (*_bounds(prefix), text, limit - len(found))
                found += db.execute(sql.MATCH_TEXT, bounds).fetchall()
            return found

        return [_id(row[0]) for row in self._db.read(read)]

    def query(self, query: Query) -> list[CheckpointInfo]:
        return [info for _, info in self._query(query)]

    def _query(self, query: Query) -> list[PlacedRecord]:
        """The records asked for, each with its place."""
        if query.ids is not None and len(query.ids) > _BATCH:
            parts = [self._query(replace(query, ids=ids)) for ids in _batches(list(set(query.ids)))]
            found = sorted(chain.from_iterable(parts), key=itemgetter(0), reverse=True)
            return found[: query.limit]

        def read(db: sqlite3.Connection) -> list[PlacedRecord]:
            found: list[PlacedRecord] = []
            for bounds in _untils(query):
                left = None if query.limit is None else query.limit - len(found)
                part = replace(query, limit=left)
                selected = self._db.allowance.measured(_select(db, part, *bounds), _BODY)
                rows: Iterator[PlacedRecord] = map(_placed, selected)
                if query.tags:
                    rows = filter(lambda placed: query.tagged(placed[1]), rows)
                found += islice(rows, left)
            return found

        return self._db.read(read)

    def heads(self, agent_id: str | None = None) -> list[SessionInfo]:
        where, values = ("WHERE s.agent = ?", (agent_id,)) if agent_id is not None else ("", ())
        now = _now()
        statement = f"{sql.SELECT_HEADS} {where} {sql.NEWEST_FIRST}"

        def read(db: sqlite3.Connection) -> list[Row]:
            rows = db.execute(statement, (now, now, *values))
            return list(self._db.allowance.measured(rows, _BODY - 1))

        heads = ((_info(row[:-1]), row[-1]) for row in self._db.read(read))
        return [SessionInfo(head.agent_id, head.session_id, head, n) for head, n in heads]

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        keys = [(_key(checkpoint_id),) for checkpoint_id in checkpoint_ids]

        def delete(db: sqlite3.Connection) -> int:
            db.executemany(sql.DELETE_NOTES, keys)
            return db.executemany(sql.DELETE, keys).rowcount

        return self._remove(delete)

    def sweep(self, now: datetime) -> int:
        def sweep(db: sqlite3.Connection) -> int:
            db.execute(sql.SWEEP_NOTES, {"now": microseconds(now)})
            return db.execute(sql.SWEEP, (microseconds(now),)).rowcount

        return self._remove(sweep)

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Collected:
        live = frozenset(live)
        bound = microseconds(before)

        def find(db: sqlite3.Connection) -> list[Row]:
            return [row for row in db.execute(sql.OLD_CHUNKS, (bound,)) if row[1] not in live]

        dead = self._db.read(find)
        if not dry_run:
            for part in _batches(dead):
                # In parts, so that no saver waits long; a chunk saved again meanwhile is spared.
                self._remove(partial(_drop_chunks, [(row[0], bound) for row in part]))
            self._give_back_space()
        return Collected(len(dead), sum(row[2] for row in dead))

    def _give_back_space(self) -> None:
        def give_back(db: sqlite3.Connection) -> int:
            db.execute(f"PRAGMA incremental_vacuum({_BATCH})").fetchall()
            (free,) = db.execute("PRAGMA freelist_count").fetchone()
            return int(free)

        before, free = -1, 0
        while free != before:
            with self._db.write_lock:
                before, free = free, self._db.write(give_back)

    def stats(self) -> Stats:
        return self._db.read(lambda db: Stats(*db.execute(sql.STATS, {"now": _now()}).fetchone()))

    def close(self) -> None:
        self._db.close()
        self.flush()  # tells what was queued too late that the store is closed


def _exists(db: sqlite3.Connection, checkpoint_id: str) -> bool:
    return db.execute(sql.EXISTS, (_key(checkpoint_id),)).fetchone() is not None


def _places(db: sqlite3.Connection, checkpoint_id: str) -> list[int]:
    return [seq for (seq,) in db.execute(sql.PLACE, (_key(checkpoint_id),))]


def _drop_chunks(rows: list[Row], db: sqlite3.Connection) -> None:
    db.executemany(sql.DROP_CHUNK, rows)


def _settle(batch: list[Pending], error: Exception | None = None) -> None:
    for pending in batch:
        pending.settle(error)


def _now() -> int:
    return microseconds(datetime.now(UTC))


def _batches(rows: list[Any]) -> Iterator[list[Any]]:
    for start in range(0, len(rows), _BATCH):
        yield rows[start : start + _BATCH]


def _untils(query: Query) -> list[tuple[str, list[Any]]]:
    """What ``until`` requires, in parts that come one after the other, the newest first."""
    if query.until is None:
        return [("", [])]
    place = bound_of(query.until)
    return [
        (sql.PLACED_LATER, [place, microseconds(query.until)]),
        (sql.MADE_UNTIL, [place]),
    ]


def _select(
    db: sqlite3.Connection, query: Query, condition: str, bound: list[Any]
) -> sqlite3.Cursor:
    where, values = _where(query, condition, bound)
    # Tags are compared by the caller, so with them the statement cannot know where to stop.
    limit = -1 if query.limit is None or query.tags else query.limit
    statement = f"{sql.SELECT_RECORDS} {where} {sql.NEWEST_FIRST} LIMIT ?"
    return db.execute(statement, (*values, limit))


def _where(query: Query, condition: str, bound: list[Any]) -> tuple[str, list[Any]]:
    """The conditions of a query; every value is bound, never written into the statement."""
    conditions = [condition] if condition else []
    values = [*bound]

    def require(condition: str, *bound: Any) -> None:
        conditions.append(condition)
        values.extend(bound)

    if query.ids is not None:
        keys = [_key(i) for i in query.ids]
        require(f"c.id IN ({','.join('?' * len(keys))})", *keys)
    if query.agent_id is not None:
        require("s.agent = ?", query.agent_id)
    if query.session_id is not None:
        require("s.session = ?", query.session_id)
    if query.session_prefix is not None:
        low, high = _bounds(query.session_prefix)
        require("s.session >= ? AND s.session < ?", low, high)
    if query.parent_id is not None:
        require("c.parent = ?", _key(query.parent_id))
    if query.handoff_target is not None:
        require("c.target = ?", query.handoff_target)
    if query.since is not None:
        require(sql.MADE_SINCE, bound_of(query.since), microseconds(query.since))
    if query.before is not None:
        require(sql.OLDER_THAN, _key(query.before))
    if not query.include_expired:
        require(sql.ALIVE, _now())
    return ("WHERE " + " AND ".join(conditions) if conditions else ""), values


_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_UUID_PREFIX = re.compile(
    r"[0-9a-f]{0,8}|[0-9a-f]{8}-([0-9a-f]{0,4}|[0-9a-f]{4}-([0-9a-f]{0,4}|[0-9a-f]{4}-"
    r"([0-9a-f]{0,4}|[0-9a-f]{4}-[0-9a-f]{0,12})))"
)


def _key(checkpoint_id: str) -> bytes | str:
    """An id as it is stored: a UUID in 16 bytes."""
    if _UUID.fullmatch(checkpoint_id):
        return bytes.fromhex(checkpoint_id.replace("-", ""))
    return checkpoint_id


def _id(key: bytes | str) -> str:
    if not isinstance(key, bytes):
        return str(key)  # what is no text either is damaged, and found under no id
    text = key.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def _bounds(prefix: str) -> tuple[str, str | bytes]:
    """Text that begins so is not less than the first of these, and less than the second."""
    rest = prefix.rstrip("\U0010ffff")
    if not rest:
        return prefix, b""  # no text has such an end; any bytes come after all text
    following = ord(rest[-1]) + 1
    return prefix, rest[:-1] + chr(0xE000 if following == 0xD800 else following)


def _row(info: CheckpointInfo, session: int, seq: int) -> Row:
    expires = info.expires_at
    return (
        seq,
        made_at(info.created_at, seq),
        _key(info.checkpoint_id),
        session,
        None if info.parent_id is None else _key(info.parent_id),
        None if expires is None else microseconds(expires),
        info.handoff_target,
        bytes.fromhex(info.content_id),
        info.size,
        packed_body(info),
        bytes.fromhex(info.checksum),
    )


def _placed(row: Row) -> PlacedRecord:
    return row[0], _info(row)


def _info(row: Row) -> CheckpointInfo:
    return info_of(row, _id)


def _note_row(seq: int, note: Note) -> Row:
    expires = None if note.expires_at is None else microseconds(note.expires_at)
    return seq, _key(note.scope), note.key, expires, note.body, note.checksum


def _note(row: Row) -> Note:
    seq, scope, key, expires, body, checksum = row
    name = _id(scope)
    try:
        if not (type(key) is str and type(body) is bytes and type(checksum) is bytes):
            raise TypeError
        end = None if expires is None else moment(expires)
        return Note(name, key, body, checksum, end, seq)
    except (OverflowError, TypeError):  # damaged: no checksum fits it
        return Note(name, str(key), b"", b"", seq=seq)
