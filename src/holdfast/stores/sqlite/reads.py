"""What the SQLite store reads, each from one unchanging view of the file."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import partial
from itertools import chain, islice, pairwise
from operator import itemgetter
from typing import Any

from holdfast.core.chunk_format import ID_BYTES
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import microseconds
from holdfast.stores.base import Query, Record, Stats, gather
from holdfast.stores.shared.id_bounds import uuid_bounds
from holdfast.stores.shared.rows import Row, bound_of
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.guard import Allowance
from holdfast.stores.sqlite.listing import heads_beginning, heads_of, select, text_range
from holdfast.stores.sqlite.rows import RecordAtPlace, key_of, name_of, now, placed_of, record_of

BATCH = 500
_ROOTS = 10_000
_CHUNKS = 2000
_BODY = -2
"""Which column of a record may have any size."""


class SqliteReads:
    """What is read by a connection in a transaction, and no more than the file can hold."""

    def __init__(self, allowance: Allowance) -> None:
        self._allowance = allowance

    def load(
        self, db: sqlite3.Connection, checkpoint_id: str, verify: bool = True
    ) -> Record | None:
        """Return a record with everything it needs, or None."""
        statement = f"{sql.SELECT_RECORDS} WHERE c.id = ? AND {sql.ALIVE}"
        row = db.execute(statement, (key_of(checkpoint_id), now())).fetchone()
        if row is None:
            return None
        info = record_of(row)
        try:
            return Record(info, gather(row[8], self._fetching(db), verify))
        except CheckpointIntegrityError as error:
            raise CheckpointIntegrityError(checkpoint_id, error.reason) from None

    def fetch(self, db: sqlite3.Connection, names: Collection[bytes]) -> dict[bytes, bytes]:
        """Return those of the chunks that are there."""
        return self._fetching(db)(names)

    def _fetching(
        self, db: sqlite3.Connection
    ) -> Callable[[Collection[bytes]], dict[bytes, bytes]]:
        """Return what fetches chunks, and all in all no more than the file can hold."""
        measure = self._allowance.measure()

        def fetch(names: Collection[bytes]) -> dict[bytes, bytes]:
            found: dict[bytes, bytes] = {}
            for part in batches(list(names)):
                for name, data in db.execute(sql.select_chunks(len(part)), part):
                    if type(data) is bytes:  # else it is damaged, and lost
                        measure(len(data))
                        found[name] = data
            return found

        return fetch

    def notes(
        self,
        db: sqlite3.Connection,
        scopes: Collection[str] | None,
        after: int,
        limit: int | None,
    ) -> list[Row]:
        """Return the rows of notes, by their place."""
        bounds, at_most = (after, now()), -1 if limit is None else limit
        measured = partial(self._allowance.measured, column=4)
        if scopes is None:
            statement = f"{sql.SELECT_NOTES} {sql.BY_SEQ}"
            return list(measured(db.execute(statement, (*bounds, at_most))))
        rows: list[Row] = []
        for part in batches([key_of(scope) for scope in set(scopes)]):
            among = sql.notes_among(len(part))
            statement = f"{sql.SELECT_NOTES} {among} {sql.BY_SEQ}"
            rows += measured(db.execute(statement, (*bounds, *part, at_most)))
        return sorted(rows, key=itemgetter(0))[:limit]

    def last_notes(self, db: sqlite3.Connection, scopes: Collection[str], count: int) -> list[Row]:
        """Return the rows of the last notes of each of some scopes, by their place."""
        bounds = (0, now())
        measured = partial(self._allowance.measured, column=4)
        rows: list[Row] = []
        for key in {key_of(scope) for scope in scopes}:
            rows += measured(db.execute(sql.LAST_NOTES, (*bounds, key, count)))
        return sorted(rows, key=itemgetter(0))

    def targets(self, db: sqlite3.Connection) -> list[str]:
        """Return to whom checkpoints were handed off, each once."""
        return [name for (name,) in db.execute(sql.TARGETS)]

    def match(self, db: sqlite3.Connection, prefix: str, limit: int, after: str) -> list[str]:
        """Return ids that begin so, in order: UUIDs first, then all others."""
        past = key_of(after) if after else b""
        found: list[tuple[bytes | str]] = []
        uuids = uuid_bounds(prefix)
        # Of two lower bounds SQLite seeks by one, and reads from there on to the other.
        if isinstance(past, bytes) and uuids is not None:
            low, high = uuids
            bounds = (max(low, past), high, past, limit)
            found += db.execute(sql.MATCH_UUID, bounds).fetchall()
        if len(found) < limit:
            text = past if isinstance(past, str) else ""
            first, end = text_range(prefix)
            rest = (max(first, text), end, text, limit - len(found))
            found += db.execute(sql.MATCH_TEXT, rest).fetchall()
        return [name_of(row[0]) for row in found]

    def query(self, db: sqlite3.Connection, query: Query) -> list[RecordAtPlace]:
        """Return the records asked for, each with its place."""
        if (some := _in_parts(query)) is not None:
            parts = [self.query(db, part) for part in some]
            is_reversed = not query.oldest_first
            together = sorted(chain.from_iterable(parts), key=itemgetter(0), reverse=is_reversed)
            return together[: query.limit]
        found: list[RecordAtPlace] = []
        for bounds in _untils(query):
            left = None if query.limit is None else query.limit - len(found)
            part = replace(query, limit=left)
            selected = self._allowance.measured(select(db, part, *bounds), _BODY)
            rows: Iterator[RecordAtPlace] = map(placed_of, selected)
            if query.tags:
                rows = filter(lambda placed: query.tagged(placed[1]), rows)
            found += islice(rows, left)
        return found

    def heads(
        self,
        db: sqlite3.Connection,
        agent_id: str | None,
        session_id: str | None,
        limit: int | None,
        before: str | None,
    ) -> list[Row]:
        """Return the rows of sessions, each with its newest record and how many it has."""
        bound = None
        if before is not None:
            place = db.execute(sql.PLACE, (key_of(before),)).fetchone()
            if place is None:
                return []
            (bound,) = place
        rows = heads_of(db, Query(agent_id=agent_id, session_id=session_id), bound, now())
        return list(islice(self._allowance.measured(rows, _BODY - 1), limit))

    def beginning(self, db: sqlite3.Connection, prefix: str, limit: int) -> list[Row]:
        """Return the same of some sessions whose whole names begin so."""
        rows = heads_beginning(db, prefix, now())
        return list(islice(self._allowance.measured(rows, _BODY - 1), limit))

    def roots(
        self, db: sqlite3.Connection, include_expired: bool, take: Callable[[list[bytes]], object]
    ) -> None:
        """Hand over the root chunk of every record, in pages of one view."""
        asked = (sql.ROOTS, ()) if include_expired else (sql.ROOTS_ALIVE, (now(),))
        rows = db.execute(*asked)
        while page := [root for (root,) in rows.fetchmany(_ROOTS)]:
            if any(type(root) is not bytes or len(root) != ID_BYTES for root in page):
                raise CheckpointIntegrityError(None, "a record has lost the name of its state")
            take(page)

    def chunks_after(self, db: sqlite3.Connection, after: int, bound: int) -> list[Row]:
        """Return the next chunks: place, name, size, and whether written before the bound."""
        rows = db.execute(sql.CHUNKS_AFTER, (bound, after, _CHUNKS)).fetchall()
        places = [after, *(row[0] for row in rows)]
        if any(later <= earlier for earlier, later in pairwise(places)):
            raise CheckpointIntegrityError(None, "its chunks come again behind themselves")
        return rows

    def expired(self, db: sqlite3.Connection, bound: int) -> list[bytes | str]:
        """Return the keys of some records that have expired."""
        return [key for (key,) in db.execute(sql.EXPIRED, (bound, BATCH))]

    def stats(self, db: sqlite3.Connection) -> Stats:
        """Return what there is."""
        return Stats(*db.execute(sql.STATS, (now(),)).fetchone())


def batches(rows: list[Any]) -> Iterator[list[Any]]:
    """Yield the same, some at a time."""
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def _in_parts(query: Query) -> list[Query] | None:
    """Return queries for a few names each, if there are more than one statement takes."""
    if query.ids is not None and len(query.ids) > BATCH:
        return [replace(query, ids=part) for part in batches(list(set(query.ids)))]
    if query.parent_ids is not None and len(query.parent_ids) > BATCH:
        return [replace(query, parent_ids=part) for part in batches(list(set(query.parent_ids)))]
    return None


def _untils(query: Query) -> list[tuple[str, list[Any]]]:
    """Return what ``until`` requires, in parts that come one after the other."""
    if query.until is None:
        return [("", [])]
    place = bound_of(query.until)
    parts = [
        (sql.PLACED_LATER, [place, microseconds(query.until)]),
        (sql.MADE_UNTIL, [place]),
    ]
    return parts[::-1] if query.oldest_first else parts
