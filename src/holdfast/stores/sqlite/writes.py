"""What the SQLite store writes, in one transaction with all who came together."""

from __future__ import annotations

import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any

from holdfast.errors import (
    CheckpointConflictError,
    FencedError,
    HoldfastError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
)
from holdfast.stores.base import NOTE_TIES, Commit, NotesOnly, place_after
from holdfast.stores.shared.rows import Row, check_time, metadata_in
from holdfast.stores.shared.tags import FiledTags
from holdfast.stores.shared.touched import span_of
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.pending import Pending
from holdfast.stores.sqlite.reads import BATCH
from holdfast.stores.sqlite.rows import key_of, name_of, note_row, now, record_row
from holdfast.system import crash_points

_SESSIONS_KNOWN = 10_000
PART_SECONDS = 0.025
"""How long upkeep writes before others have their turn."""
_PAGES = 64

Dropped = tuple[int, int]
"""How many chunks were removed, and their bytes."""


class SqliteWrites:
    """What is written by the connection that writes, in a transaction."""

    def __init__(self, removals: Callable[[], Any]) -> None:
        self._removals = removals
        self._session_keys: dict[tuple[str, str], int] = {}
        self._new_sessions: dict[tuple[str, str], int] = {}
        self._tags: dict[int, FiledTags] = {}
        self._is_settled = True

    def commit(self, db: sqlite3.Connection, batch: list[Pending]) -> None:
        """Write all that can be kept; what cannot be is told why."""
        if not self._is_settled:  # what was written last was taken back
            self._tags.clear()
        self._is_settled = False
        self._new_sessions = {}
        kept: list[Mapping[bytes, bytes]] = []
        crash_points.reach("sqlite:begun")
        moment = time.time_ns() // 1000  # not earlier: gc takes older chunks it knows no record of
        for pending in batch:
            try:
                self._insert(db, pending.commit)
            except HoldfastError as error:
                pending.error = error
            else:
                kept.append(pending.commit.chunks)
        crash_points.reach("sqlite:record_written")
        rows = ((name, moment, data) for chunks in kept for name, data in chunks.items())
        db.executemany(sql.INSERT_CHUNK, rows)  # one by one: all of them may be a large state
        crash_points.reach("sqlite:chunks_written")

    def committed(self) -> None:
        """Remember the sessions that were new, now that they are there."""
        crash_points.reach("sqlite:committed")
        if len(self._session_keys) > _SESSIONS_KNOWN:
            self._session_keys.clear()
            self._tags.clear()
        self._session_keys.update(self._new_sessions)
        self._is_settled = True

    def _insert(self, db: sqlite3.Connection, commit: Commit | NotesOnly) -> None:
        removals = commit.removals if isinstance(commit, NotesOnly) else None
        if removals is not None and removals != self._removals():
            raise MissingBaseError
        fence = commit.unless
        if (
            fence is not None
            and db.execute(sql.EXISTS_NOTE, (key_of(fence[0]), fence[1])).fetchone()
        ):
            raise FencedError(fence)
        seen: set[tuple[str, str]] = set()
        for note in commit.notes:
            taken = db.execute(sql.EXISTS_NOTE, (key_of(note.scope), note.key)).fetchone()
            if taken is not None or (note.scope, note.key) in seen:
                raise NoteExistsError(note)
            seen.add((note.scope, note.key))
        if isinstance(commit, Commit):
            self._insert_record(db, commit)
        if commit.notes:
            (last,) = db.execute(sql.LAST_NOTE).fetchone()
            rows = map(note_row, count(max(now() * NOTE_TIES, last + 1)), commit.notes)
            db.executemany(sql.INSERT_NOTE, rows)
        if commit.instead_of:
            gone = [(key_of(scope), key) for scope, key in commit.instead_of]
            db.executemany(sql.DELETE_NOTE, gone)

    def _insert_record(self, db: sqlite3.Connection, commit: Commit) -> None:
        info = commit.info
        if commit.base is not None and not _exists(db, commit.base):
            raise MissingBaseError
        parent = info.parent_id if commit.needs_parent else None
        if parent is not None and parent != commit.base and not _exists(db, parent):
            raise MissingParentError
        session = (info.agent_id, info.session_id)
        key = self._session_keys.get(session) or self._new_sessions.get(session)
        if key is None:
            db.execute(sql.INSERT_SESSION, session)
            (key,) = db.execute(sql.SELECT_SESSION, session).fetchone()
            self._new_sessions[session] = key
        check_time(info.created_at)
        last = db.execute(sql.LAST_OF_SESSION, (key,)).fetchone()
        if commit.follows is not None and commit.follows != (
            "" if last is None else name_of(last[1])
        ):
            raise NotTheHeadError
        after = None if last is None else last[0]
        if commit.behind is not None:
            after = max((seq for each in commit.behind for seq in _places(db, each)), default=None)
        seq = place_after(info.created_at, after)
        try:
            db.execute(sql.INSERT_CHECKPOINT, record_row(info, key, seq))
        except sqlite3.IntegrityError as error:
            if "checkpoints.seq" not in str(error):
                raise CheckpointConflictError(info.checkpoint_id) from None
            (seq,) = db.execute(sql.FREE_PLACE, (seq,)).fetchone()
            try:
                db.execute(sql.INSERT_CHECKPOINT, record_row(info, key, seq))
            except sqlite3.IntegrityError:
                raise CheckpointConflictError(info.checkpoint_id) from None
        if last is None or span_of(seq) > span_of(last[0]):
            db.execute(sql.TOUCH, (span_of(seq), key, span_of(seq)))
        if info.metadata:
            filed = self._tags.setdefault(key, FiledTags())
            for tag in filed.unfiled(info.metadata):
                db.execute(sql.INSERT_TAG, (tag, key))


def file_tags(db: sqlite3.Connection, filed: dict[int, FiledTags], limit: int) -> int:
    """File the newest records that are not filed by their tags yet; return how many there were.

    What is damaged has no tags, and reading it says so.
    """
    place = max((row[0] for row in db.execute(sql.FILED_FROM)), default=None)
    tags: list[Row] = []
    found = 0
    for seq, session, body in db.execute(sql.UNFILED, (place, limit)):
        known = filed.setdefault(session, FiledTags())
        tags += [(tag, session) for tag in known.unfiled(metadata_in(body))]
        place, found = seq, found + 1
    db.executemany(sql.INSERT_TAG, tags)
    db.execute(sql.FILED, (place,))
    return found


class Part:
    """What one transaction of upkeep may do: so much that nobody waits long for its end."""

    def __init__(self) -> None:
        self._end = time.monotonic() + PART_SECONDS
        self._is_begun = False

    def goes_on(self) -> bool:
        """Return whether there is time for one more thing; for the first there always is."""
        is_begun, self._is_begun = self._is_begun, True
        return not is_begun or time.monotonic() < self._end


def delete(db: sqlite3.Connection, part: Part, keys: deque[bytes | str]) -> int:
    """Remove records and all notes of these scopes, and take those done off the list.

    The record first: notes without one do no harm. Returns how many records there were.
    """
    removed, sessions = 0, set[Row]()
    while keys and part.goes_on():
        sessions.update(db.execute(sql.SESSION_OF, (keys[0],)))
        removed += db.execute(sql.DELETE, (keys[0],)).rowcount
        if db.execute(sql.DELETE_NOTES, (keys[0], BATCH)).rowcount < BATCH:
            keys.popleft()
    db.executemany(sql.TOUCHED_BEFORE, sessions)
    return removed


def sweep_notes(db: sqlite3.Connection, part: Part, bound: int) -> bool:
    """Remove some of the notes that have expired; return whether there may be more."""
    while part.goes_on():
        if db.execute(sql.SWEEP_NOTES, (bound, BATCH)).rowcount < BATCH:
            return False
    return True


def drop_chunks(db: sqlite3.Connection, part: Part, rows: deque[Row], bound: int) -> Dropped:
    """Remove chunks, but for those that were saved again meanwhile, and take them off the list."""
    chunks = size = 0
    while rows and part.goes_on():
        seq, _, length, _ = rows.popleft()
        if db.execute(sql.DROP_CHUNK, (seq, bound)).rowcount:
            chunks, size = chunks + 1, size + length
    return chunks, size


def give_back_space(db: sqlite3.Connection, part: Part) -> bool:
    """Shorten the file by some of its free pages; return whether there are more."""
    free = _free_pages(db)
    while free and part.goes_on():
        db.execute(f"PRAGMA incremental_vacuum({_PAGES})").fetchall()
        before, free = free, _free_pages(db)
        if free == before:  # of a file that was made without
            return False
    return free > 0


def _free_pages(db: sqlite3.Connection) -> int:
    (free,) = db.execute("PRAGMA freelist_count").fetchone()
    return int(free)


def _exists(db: sqlite3.Connection, checkpoint_id: str) -> bool:
    return db.execute(sql.EXISTS, (key_of(checkpoint_id),)).fetchone() is not None


def _places(db: sqlite3.Connection, checkpoint_id: str) -> list[int]:
    return [seq for (seq,) in db.execute(sql.PLACE, (key_of(checkpoint_id),))]
