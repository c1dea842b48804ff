"""How the SQLite store finds the records of a query: by an index, reading what is shown.

What is asked for by its sessions (of an agent, by a name or how it begins, by tags) comes out of
them in the order of time: the sessions by when they were touched last, each read from its newest
record on, and only as far as needed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from holdfast.model import microseconds
from holdfast.stores.base import Query
from holdfast.stores.shared.id_bounds import text_bounds
from holdfast.stores.shared.rows import Row, bound_of
from holdfast.stores.shared.tags import numbers_of
from holdfast.stores.shared.touched import (
    has_its_own_index,
    is_by_sessions,
    newest_first,
    span_of,
)
from holdfast.stores.shared.whole_names import divided
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.rows import key_of, now

_COMMON = 1000
"""A tag of more sessions than this is looked for in them; those of a rarer one are found by it."""
_LARGEST_PAGE = 256
"""How many records of a session are read at once, at most; first one, and ever more if wanted."""
_LAST = 2**63 - 1


class _Conditions:
    """Conditions that have to hold together; every value is bound, never written into them."""

    names_few = False
    """Whether they name things that an index finds, and not how many come first."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self.values: list[Any] = []

    def require(self, condition: str, *values: Any) -> None:
        self._texts.append(condition)
        self.values += values

    @property
    def text(self) -> str:
        return " AND ".join(self._texts) or "true"


def text_range(prefix: str) -> tuple[str, str | bytes]:
    """Return the bounds of a prefix; any bytes come after all text."""
    low, high = text_bounds(prefix)
    return low, b"" if high is None else high


def select(
    db: sqlite3.Connection, query: Query, condition: str, bound: Iterable[Any]
) -> Iterable[Row]:
    """Give the rows of a query in its order, all tags left aside; of those with tags all there are.

    Tags are compared by the caller, who stops when there are enough.
    """
    where = _conditions_of(query, condition, bound)
    if not is_by_sessions(query) or _are_everywhere(db, query):
        return _in_order(db, query, where, sql.SELECT_RECORDS)
    sessions = _sessions_of(db, query)
    if query.limit is None or query.oldest_first:
        where.require(sql.BY_SESSION.format(sessions.text), *sessions.values)
        # Of all that have to be read and put in order, no other index finds as few.
        source = sql.SELECT_RECORDS if condition == sql.PLACED_LATER else sql.SELECT_OF_SESSIONS
        return _in_order(db, query, where, source)
    if query.since is not None:
        sessions.require("s.touched >= ?", span_of(bound_of(query.since)))
    return newest_first(_touched(db, sessions), partial(_of_session, db, where))


def heads_of(
    db: sqlite3.Connection, query: Query, before: int | None, moment: int
) -> Iterator[Row]:
    """Give the newest record of each session and how many it has, the session touched last first.

    With a place only sessions whose newest record is older.
    """
    sessions = _sessions_of(db, query)
    if before is not None:
        sessions.require(sql.TOUCHED_UNTIL, span_of(before), moment)
    return _heads(db, _touched(db, sessions), before, moment)


def heads_beginning(db: sqlite3.Connection, prefix: str, moment: int) -> Iterator[Row]:
    """Give the same of sessions whose whole names begin so."""
    ways: list[tuple[str, Sequence[Any]]] = [
        (sql.SESSION_BEGINS, text_range(prefix)),
        (sql.AGENT_BEGINS, text_range(prefix)),
    ]
    for agent, session in divided(prefix):
        ways.append((sql.SESSION_OF_AGENT_BEGINS, (agent, *text_range(session))))
    found: dict[int, int] = {}
    for condition, values in ways:
        sessions = _Conditions()
        sessions.require(condition, *values)
        sessions.names_few = True
        found.update(_touched(db, sessions))
    latest_first = sorted(found.items(), key=itemgetter(1), reverse=True)
    return _heads(db, latest_first, None, moment)


def _heads(
    db: sqlite3.Connection,
    touched: Iterable[tuple[int, int]],
    before: int | None,
    moment: int,
) -> Iterator[Row]:
    has_expired = db.execute(sql.HAS_EXPIRED, (moment,)).fetchone() is not None

    def head_of(key: int) -> Iterator[Row]:
        if has_expired:
            rows = db.execute(sql.SELECT_LIVE_HEAD, {"session": key, "now": moment})
        else:
            rows = db.execute(sql.SELECT_HEAD, (key,))
        return iter([row for row in rows if before is None or row[0] < before])

    return newest_first(touched, head_of)


def _are_everywhere(db: sqlite3.Connection, query: Query) -> bool:
    """Return whether nothing is asked but tags of names that many sessions have new values of.

    Such a session says nothing of where the value is: all are looked through from the newest on.
    """
    names = (query.agent_id, query.session_id, query.session_prefix)
    return all(each is None for each in names) and all(
        _counted(db, numbers_of(name, value)[:1]) > _COMMON for name, value in query.tags.items()
    )


def _counted(db: sqlite3.Connection, numbers: Sequence[int]) -> int:
    """Return how many sessions are filed under some tags, if they are not many."""
    counted = sql.COUNT_TAGGED.format(_marks(numbers))
    (count,) = db.execute(counted, (*numbers, _COMMON + 1)).fetchone()
    return int(count)


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))


def _in_order(
    db: sqlite3.Connection, query: Query, where: _Conditions, source: str
) -> sqlite3.Cursor:
    limit = -1 if query.limit is None or query.tags else query.limit
    order = sql.OLDEST_FIRST if query.oldest_first else sql.NEWEST_FIRST
    statement = f"{source} WHERE {where.text} {order} LIMIT ?"
    return db.execute(statement, (*where.values, limit))


def _touched(db: sqlite3.Connection, sessions: _Conditions) -> Iterable[tuple[int, int]]:
    """Give sessions with the span in which each was touched last, the latest first."""
    # The plus keeps SQLite from going through all sessions in order where an index names a few.
    plus = "+" if sessions.names_few else ""
    rows = db.execute(sql.SELECT_SESSIONS.format(sessions.text, plus), sessions.values)
    # What is no number is damaged: such a session is looked at in any case.
    return ((key, span if type(span) is int else _LAST) for key, span in rows)


def _of_session(db: sqlite3.Connection, where: _Conditions, key: int) -> Iterator[Row]:
    """Give the records of a session that fit, the newest first, read page by page."""
    statement = f"{sql.SELECT_RECORDS} WHERE {sql.OF_SESSION} AND {where.text}"
    statement += f" AND c.seq <= ? {sql.NEWEST_FIRST} LIMIT ?"
    size, last = 1, _LAST
    while True:
        rows = db.execute(statement, (key, *where.values, last, size)).fetchall()
        yield from rows
        if len(rows) < size:
            return
        size, last = min(size * 4, _LARGEST_PAGE), rows[-1][0] - 1


def _sessions_of(db: sqlite3.Connection, query: Query) -> _Conditions:
    """Return what holds for the sessions of the records that are asked for."""
    where = _Conditions()
    _add_names(where, query)
    where.names_few = query.session_id is not None or query.session_prefix is not None
    for name, value in query.tags.items():
        numbers = numbers_of(name, value)
        is_rare = _counted(db, numbers) <= _COMMON
        condition = sql.HAS_TAG if is_rare else sql.HAS_COMMON_TAG
        where.require(condition.format(_marks(numbers)), *numbers)
        where.names_few = where.names_few or is_rare
    return where


def _add_names(where: _Conditions, query: Query, plus: str = "") -> None:
    if query.agent_id is not None:
        where.require(f"{plus}s.agent = ?", query.agent_id)
    if query.session_id is not None:
        where.require(f"{plus}s.session = ?", query.session_id)
    if query.session_prefix is not None:
        range_of = f"{plus}s.session >= ? AND {plus}s.session < ?"
        where.require(range_of, *text_range(query.session_prefix))


def _conditions_of(query: Query, condition: str, bound: Iterable[Any]) -> _Conditions:
    """Return what holds for the records that are asked for."""
    where = _Conditions()
    if condition:
        where.require(condition, *bound)
    if not is_by_sessions(query):
        # The plus keeps SQLite from looking through an agent for what another index finds.
        _add_names(where, query, "+" if has_its_own_index(query) else "")
    if query.ids is not None:
        keys = [key_of(i) for i in query.ids]
        where.require(f"c.id IN ({_marks(keys)})", *keys)
    if query.parent_id is not None:
        where.require("c.parent = ?", key_of(query.parent_id))
    if query.parent_ids is not None:
        parents = [key_of(i) for i in query.parent_ids]
        where.require(f"c.parent IN ({_marks(parents)})", *parents)
    if query.handoff_target is not None:
        where.require("c.target = ?", query.handoff_target)
    if query.is_offered:
        where.require("c.target IS NOT NULL")
    if query.since is not None:
        where.require(sql.MADE_SINCE, bound_of(query.since), microseconds(query.since))
    if query.before is not None:
        where.require(sql.OLDER_THAN, key_of(query.before))
    if not query.include_expired:
        where.require(sql.ALIVE, now())
    return where
