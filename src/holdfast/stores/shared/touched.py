"""When a session was touched last, as coarsely as it is filed by the stores that speak SQL.

A session is filed anew only if its newest record begins another of these spans of about a second,
so that a save in a session that is busy changes nothing but its own row. Whoever lists the newest
looks at all sessions of one span, and never at those of earlier ones that cannot come before.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from holdfast.stores.base import Query
from holdfast.stores.shared.rows import Row

BITS = 30
"""A place is microseconds times 1024: this many of its bits tell nothing about the span."""
K = TypeVar("K")


def span_of(place: int) -> int:
    """Return the span of time that a place is in."""
    return place >> BITS


def is_by_sessions(query: Query) -> bool:
    """Return whether sessions, more than one, are what the records of a query are found by."""
    names_one = query.agent_id is not None and query.session_id is not None
    asked = (query.agent_id, query.session_id, query.session_prefix)
    return (
        not names_one
        and not has_its_own_index(query)
        and (bool(query.tags) or any(each is not None for each in asked))
    )


def has_its_own_index(query: Query) -> bool:
    """Return whether a query asks for what is found by itself, whatever its session."""
    asked = (query.ids, query.parent_id, query.parent_ids, query.handoff_target)
    return query.is_offered or any(each is not None for each in asked)


def newest_first(
    sessions: Iterable[tuple[K, int]], rows_of: Callable[[K], Iterator[Row]]
) -> Iterator[Row]:
    """Give the rows of sessions together, the newest first; each row begins with its place.

    The sessions come with the span in which each was touched last, the latest first. No row of a
    session is read before it may be the next.
    """
    waiting: list[tuple[int, int, Row, Iterator[Row]]] = []
    for number, (key, span) in enumerate(sessions):
        yield from _drawn(waiting, (span + 1) << BITS)
        _wait(waiting, number, rows_of(key))
    yield from _drawn(waiting, None)


def _drawn(waiting: list[tuple[int, int, Row, Iterator[Row]]], behind: int | None) -> Iterator[Row]:
    """Give the rows that wait at a place or later; all of them for None."""
    while waiting and (behind is None or waiting[-1][0] >= behind):
        _, number, row, rows = waiting.pop()
        yield row
        _wait(waiting, number, rows)


def _wait(
    waiting: list[tuple[int, int, Row, Iterator[Row]]], number: int, rows: Iterator[Row]
) -> None:
    for row in rows:
        insort(waiting, (row[0], number, row, rows))
        return
