"""What the PostgreSQL store reads, as plans: each yields statements and is sent their rows.

A plan is thrown the error of a statement. It may be begun anew when a connection was lost, so all
of it can be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from holdfast.core.chunk_format import ID_BYTES
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo, microseconds
from holdfast.stores.base import Note, Query, Record, SessionInfo, Stats, unfold
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.rows import (
    bounds_of,
    is_text,
    key_of,
    name_of,
    note_of,
    now,
    record_of,
    session_name,
)
from holdfast.stores.shared.misfiled import asked_for, reasons
from holdfast.stores.shared.rows import Row, bound_of
from holdfast.stores.shared.tags import numbers_of
from holdfast.stores.shared.touched import is_by_sessions, span_of
from holdfast.stores.shared.whole_names import divided

T = TypeVar("T")
Statement = tuple[str, Sequence[Any] | None]
PostgresPlan = Generator[Statement, list[Any], T]
Operation = Callable[[bool], PostgresPlan[T]]
"""Begins a plan; told whether an attempt before lost its connection."""

PAGE = 1000
_SESSIONS = 32
"""So many sessions are looked at first for the newest records of many."""
_FEW = 64
"""For a tag of up to so many sessions each page is read from all of them."""
_MANY = 1000
"""For one of more, all records are looked through from the newest on, or all of an agent."""
_SPARE = 4
_LARGE_PAGE = 10 * PAGE
CHUNKS = 256
"""How many chunks, which may be large, are asked for at once."""

_FILED_AT = """
    SELECT c.id, c.seq, s.touched, s.tags
    FROM holdfast.checkpoints c JOIN holdfast.sessions s ON s.key = c.session
    WHERE c.id = ANY ($1) AND s.filed
"""


class PostgresReads:
    """Plans that change nothing, of a store whose tables are in one schema."""

    def __init__(self, name: str, schema: str) -> None:
        self.name = name
        self.schema = schema

    def _ask(self, statement: str, *values: Any) -> PostgresPlan[list[Any]]:
        return (yield sql.in_schema(statement, self.schema), values)

    def load(self, checkpoint_id: str, verify: bool = True) -> PostgresPlan[Record | None]:
        """Return a record, read with what is near its root; then a statement for each level."""
        return (yield from self._whole(verify, sql.LOAD, key_of(checkpoint_id), now()))

    def newest(self, agent_id: str, session_id: str) -> PostgresPlan[Record | None]:
        """Return the newest record of a session, in as many statements as if its id were known."""
        name = _session_of(Query(agent_id=agent_id, session_id=session_id))
        if name is None:
            return None
        return (yield from self._whole(True, sql.LOAD_NEWEST, *name, now()))

    def _whole(self, verify: bool, statement: str, *values: Any) -> PostgresPlan[Record | None]:
        rows = yield from self._ask(statement, *values)
        if not rows:
            return None
        *row, names, data = rows[0]
        info = record_of(row)
        near = dict(zip(names or (), data or (), strict=True))

        def fetch(wanted: Collection[bytes]) -> PostgresPlan[dict[bytes, bytes]]:
            far = yield from self.fetch([name for name in wanted if name not in near])
            return near | far

        try:
            root = bytes.fromhex(info.content_id)
            return Record(info, (yield from unfold({root: True}, {}, fetch, verify)))
        except CheckpointIntegrityError as error:
            again = yield from self._ask(statement, *values)
            if not again or again[0][2] != row[2]:  # removed and collected while it was read
                return (yield from self._whole(verify, statement, *values)) if again else None
            raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None

    def fetch(self, names: Collection[bytes]) -> PostgresPlan[dict[bytes, bytes]]:
        """Return chunks by name."""
        found: dict[bytes, bytes] = {}
        for part in pages(list(names), CHUNKS):
            found.update((yield from self._ask(sql.FETCH, part)))
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> PostgresPlan[list[Note]]:
        """Return notes past a place; of one scope, none is missed by who goes on from the last."""
        keys = None if scopes is None else [key_of(scope) for scope in set(scopes)]
        rows = yield from self._ask(sql.SELECT_NOTES, after, now(), limit, keys)
        return [note_of(row) for row in rows]

    def last_notes(self, scopes: Collection[str], count: int) -> PostgresPlan[list[Note]]:
        """Return the last notes of each of some scopes."""
        keys = [key_of(scope) for scope in set(scopes)]
        rows = yield from self._ask(sql.LAST_NOTES, keys, now(), count)
        return [note_of(row) for row in rows]

    def targets(self) -> PostgresPlan[list[str]]:
        """Return to whom checkpoints were handed off, each once."""
        return [name for (name,) in (yield from self._ask(sql.TARGETS))]

    def match(self, prefix: str, limit: int, after: str = "") -> PostgresPlan[list[str]]:
        """Return ids by their beginning: UUIDs first, then all others."""
        past = key_of(after) if after else b""
        rows = yield from self._ask(sql.MATCH, *bounds_of(prefix), past, limit)
        return [name_of(row[0]) for row in rows]

    def query(self, query: Query) -> PostgresPlan[list[CheckpointInfo]]:
        """Return records; those with tags page by page, as tags are compared here."""
        if query == Query(
            agent_id=query.agent_id, session_id=query.session_id, limit=query.limit
        ) and (name := _session_of(query)):
            rows = yield from self._ask(sql.NEWEST, *name, now(), query.limit)
            return [record_of(row) for row in rows]
        parts = [False]
        if query.until is not None:  # what was made before it and written after comes last
            parts.insert(len(parts) if query.oldest_first else 0, True)
        found: list[CheckpointInfo] = []
        for placed_later in parts:
            left = None if query.limit is None else query.limit - len(found)
            if left != 0:
                found += yield from self._matching(query, placed_later, left)
        return found

    def _matching(
        self, query: Query, placed_later: bool, limit: int | None
    ) -> PostgresPlan[list[CheckpointInfo]]:
        where, is_merged = yield from self._found_by(query, placed_later, limit)
        if not query.tags:
            rows = yield from self._page(where, limit, is_merged=is_merged)
            return list(map(record_of, rows))
        page = PAGE if limit is None else min(PAGE, limit * _SPARE)
        found: list[CheckpointInfo] = []
        last = None
        while True:
            rows = yield from self._page(where, page, last, is_merged)
            found += filter(query.tagged, map(record_of, rows))
            if (limit is not None and len(found) >= limit) or len(rows) < page:
                return found[:limit]
            page, last = min(_LARGE_PAGE, page * _SPARE), rows[-1][0]

    def _found_by(
        self, query: Query, placed_later: bool, limit: int | None
    ) -> PostgresPlan[tuple[Where, bool]]:
        """Return what records have to fulfil, and whether sessions tell which are the newest."""
        where = Where(query, placed_later)
        is_merged = limit is not None and where.is_merged
        if not (query.tags and where.is_merged):
            return where, is_merged
        ((sessions,),) = yield from self._ask(*where.count_sessions(_MANY + 1))
        if sessions <= _MANY:
            return where, is_merged and sessions <= _FEW
        # The tag is of so many that it says little of where the newest are.
        where = Where(replace(query, tags={}), placed_later)
        return where, limit is not None and where.is_merged

    def _page(
        self,
        where: Where,
        limit: int | None,
        behind: int | None = None,
        is_merged: bool = False,
    ) -> PostgresPlan[list[Any]]:
        """Return the rows that come next; of many sessions those touched last are read first."""
        if limit is None or not is_merged:
            return (yield from self._ask(*where.select(limit, behind)))
        select = partial(where.merged, limit, behind)
        return (yield from self._newest(where, select, limit, _SESSIONS))

    def _newest(
        self,
        where: Where,
        select: Callable[[int | None], tuple[Any, ...]],
        limit: int,
        number: int,
    ) -> PostgresPlan[list[Any]]:
        """Return rows of so many sessions touched last; of more, if those may have newer ones."""
        while True:
            last = yield from self._ask(*where.touched_last(number))
            if not last:
                return (yield from self._ask(*select(None)))
            rows = yield from self._ask(*select(number))
            if len(rows) == limit and span_of(rows[-1][0]) > last[0][0]:
                return rows
            number *= _SPARE

    def heads(
        self,
        agent_id: str | None,
        session_id: str | None,
        limit: int | None,
        before: str | None,
    ) -> PostgresPlan[list[SessionInfo]]:
        """Return sessions, each with its newest record."""
        where = Where(Query(agent_id=agent_id, session_id=session_id), by_sessions=True)
        if before is not None:
            where.begin_behind(before)
        select = partial(where.heads, limit)
        if limit is None:
            rows = yield from self._ask(*select(None))
        else:
            rows = yield from self._newest(where, select, limit, limit + _SESSIONS)
        return list(map(_session_info, rows))

    def beginning(self, prefix: str, limit: int) -> PostgresPlan[list[SessionInfo]]:
        """Return some sessions whose whole names begin so."""
        where = Where(Query(), by_sessions=True)
        where.begin_so(prefix)
        select = partial(where.heads, limit)
        rows = yield from self._newest(where, select, limit, limit + _SESSIONS)
        return list(map(_session_info, rows))

    def roots(
        self, include_expired: bool, take: Callable[[list[bytes]], object]
    ) -> PostgresPlan[None]:
        """Hand over the root chunk of every record, in pages of what there is at one moment."""
        moment = None if include_expired else now()
        yield sql.BEGIN, None
        yield sql.END_IDLE, None
        yield from self._ask(sql.DECLARE_ROOTS, moment)
        while rows := (yield from self._ask(sql.FETCH_ROOTS)):
            if any(root is None or len(root) != ID_BYTES for (root,) in rows):
                raise CheckpointIntegrityError(None, "a record has lost the name of its state")
            take([root for (root,) in rows])
        yield sql.COMMIT, None

    def misfiled(self, infos: Collection[CheckpointInfo]) -> PostgresPlan[list[tuple[str, str]]]:
        """Return those of some records that would not be found where their sessions are filed."""
        known = {info.checkpoint_id: info for info in infos}
        wrong: list[tuple[str, str]] = []
        for part in pages([key_of(name) for name in known]):
            for key, place, touched, tags in (yield from self._ask(_FILED_AT, part)):
                wrong += reasons(asked_for(known, name_of(key)), place, touched, tags)
        return wrong

    def stats(self) -> PostgresPlan[Stats]:
        """Return what there is."""
        (row,) = yield from self._ask(sql.STATS, now())
        return Stats(*row)


def pages(items: list[T], size: int = PAGE) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _session_info(row: Row) -> SessionInfo:
    head = record_of(row[:-1])
    return SessionInfo(head.agent_id, head.session_id, head, row[-1])


def _session_of(query: Query) -> tuple[bytes, str, str] | None:
    """Return how the one session that a query is about is found, if it is about one."""
    agent, session = query.agent_id, query.session_id
    if agent is None or session is None or not is_text(agent + session):
        return None
    return session_name(agent, session), agent, session


class Where:
    """The conditions of a query; every value is bound, never written into the statement."""

    def __init__(self, query: Query, placed_later: bool = False, by_sessions: bool = False) -> None:
        self._conditions: list[str] = []
        self._sessions: list[str] = []
        """Those of them that are about the sessions of the records."""
        self._values: list[Any] = []
        self._records = sql.SELECT_RECORDS
        self._is_forward = query.oldest_first
        self._by_sessions = by_sessions or is_by_sessions(query)
        self._order = sql.OLDEST_FIRST if query.oldest_first else sql.NEWEST_FIRST
        self._add_names(query)
        for name, value in query.tags.items() if self._by_sessions else ():
            self._sessions.append(sql.HAS_TAG.format(self._bind(list(numbers_of(name, value)))))
        if query.ids is not None:
            self._add("c.id = ANY ({})", [key_of(name) for name in set(query.ids)])
        if query.parent_id is not None:
            self._add("c.parent = {}", key_of(query.parent_id))
        if query.parent_ids is not None:
            self._add("c.parent = ANY ({})", [key_of(name) for name in set(query.parent_ids)])
        if query.handoff_target is not None:
            self._add_text(self._conditions, "c.target", query.handoff_target)
        if query.is_offered:
            self._add("c.target IS NOT NULL")
        if query.since is not None:
            self._add("c.seq >= {}", bound_of(query.since))
            self._add(sql.MADE_SINCE, microseconds(query.since))
        if query.until is not None and placed_later:
            self._add(sql.PLACED_LATER, microseconds(query.until), bound_of(query.until))
        elif query.until is not None:
            self._add("c.seq < {}", bound_of(query.until))
        if query.before is not None:
            self._add(sql.OLDER_THAN, key_of(query.before))
        if not query.include_expired and not by_sessions:
            self._add("(c.expires IS NULL OR c.expires > {})", now())

    def _add_names(self, query: Query) -> None:
        agent, session, prefix = query.agent_id, query.session_id, query.session_prefix
        if not self._by_sessions and (name := _session_of(query)):
            # Nothing to join: what the sessions would tell is known.
            self._records = sql.SELECT_RECORDS_OF_SESSION
            self._order = f"c.session{'' if query.oldest_first else ' DESC'}, {self._order}"
            self._values += name
            self._conditions.append(sql.OF_SESSION)
        else:
            if agent is not None:
                self._add_text(self._sessions, "s.agent", agent)
            if session is not None:
                self._add_text(self._sessions, "s.session", session)
        if prefix is not None and self._can_hold(self._sessions, prefix):
            self._add_beginning(self._sessions, "s.session", prefix)

    def _bind(self, value: Any) -> str:
        self._values.append(value)
        return f"${len(self._values)}"

    def _add(self, condition: str, *values: Any) -> None:
        self._conditions.append(condition.format(*map(self._bind, values)))

    def _add_text(self, conditions: list[str], column: str, text: str) -> None:
        if self._can_hold(conditions, text):  # the first of which an index can find
            conditions.append(f"left({column}, 128) = left({self._bind(text)}, 128)")
            conditions.append(f"{column} = {self._bind(text)}")

    def _add_beginning(self, conditions: list[str], column: str, prefix: str) -> None:
        start = prefix[:128]
        last = start.ljust(128, "\U0010ffff")
        conditions.append(f"left({column}, 128) >= {self._bind(start)}")
        conditions.append(f"left({column}, 128) <= {self._bind(last)}")
        conditions.append(f"starts_with({column}, {self._bind(prefix)})")

    def begin_so(self, prefix: str) -> None:
        """Leave out sessions whose whole names do not begin so."""
        if not self._can_hold(self._sessions, prefix):
            return
        ways: list[list[str]] = [[], []]
        self._add_beginning(ways[0], "s.session", prefix)
        self._add_beginning(ways[1], "s.agent", prefix)
        for agent, session in divided(prefix):
            ways.append([])
            self._add_text(ways[-1], "s.agent", agent)
            self._add_beginning(ways[-1], "s.session", session)
        self._sessions.append(f"({' OR '.join(f'({_all_of(way)})' for way in ways)})")

    def _can_hold(self, conditions: list[str], text: str) -> bool:
        if not is_text(text):
            conditions.append("false")
        return is_text(text)

    def begin_behind(self, before: str) -> None:
        """Leave out sessions whose newest record is not older than this one."""
        key = self._bind(key_of(before))
        self._conditions.append(sql.OLDER_THAN.format(key))
        self._sessions.append(sql.TOUCHED_UNTIL.format(key, self._bind(now())))

    @property
    def is_merged(self) -> bool:
        """Whether sessions tell which records are the newest."""
        return self._by_sessions and not self._is_forward

    def select(self, limit: int | None, behind: int | None = None) -> tuple[Any, ...]:
        """Return the statement and its values; for what comes behind a place, if one is given."""
        values, records = self._behind(behind)
        if self._by_sessions:
            records.append(sql.OF_SESSIONS.format(_all_of(self._sessions)))
        else:
            records += self._sessions
        values.append(limit)
        where = f"WHERE {' AND '.join(records)}" if records else ""
        statement = f"{self._records} {where} ORDER BY {self._order} LIMIT ${len(values)}"
        return statement, *values

    def _behind(self, behind: int | None) -> tuple[list[Any], list[str]]:
        values, records = [*self._values], [*self._conditions]
        if behind is not None:
            values.append(behind)
            records.append(f"c.seq {'>' if self._is_forward else '<'} ${len(values)}")
        return values, records

    def touched_last(self, number: int) -> tuple[Any, ...]:
        """Return the statement for when the last of so many sessions was touched."""
        return self._of_sessions(sql.TOUCHED_LAST, [*self._values], number=number - 1)

    def count_sessions(self, most: int) -> tuple[Any, ...]:
        """Return the statement for how many sessions are meant, of so many that are counted."""
        return self._of_sessions(sql.COUNT_SESSIONS, [*self._values], limit=most)

    def merged(self, limit: int, behind: int | None, number: int | None) -> tuple[Any, ...]:
        """Return the statement for the newest records of so many sessions."""
        values, records = self._behind(behind)
        return self._of_sessions(
            sql.SELECT_MERGED, values, records=records, number=number, limit=limit
        )

    def heads(self, limit: int | None, number: int | None) -> tuple[Any, ...]:
        """Return the statement for the newest record of each of so many sessions."""
        return self._of_sessions(
            sql.SELECT_HEADS,
            [*self._values],
            records=self._conditions,
            number=number,
            limit=limit,
            now=now(),
        )

    def _of_sessions(
        self, statement: str, values: list[Any], records: list[str] | None = None, **named: Any
    ) -> tuple[Any, ...]:
        used = {"sessions": _all_of(self._sessions), "records": _all_of(records or [])}
        for name, value in named.items():
            values.append(value)
            used[name] = f"${len(values)}"
        return statement.format(**used), *values


def _all_of(conditions: list[str]) -> str:
    return " AND ".join(conditions) or "true"
