"""What the PostgreSQL store reads, as plans: each yields statements and is sent their rows.

A plan is thrown the error of a statement. It may be begun anew when a connection was lost, so all
of it can be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
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
from holdfast.stores.shared.rows import bound_of

T = TypeVar("T")
Statement = tuple[str, Sequence[Any] | None]
PostgresPlan = Generator[Statement, list[Any], T]
Operation = Callable[[bool], PostgresPlan[T]]
"""Begins a plan; told whether an attempt before lost its connection."""

PAGE = 1000
CHUNKS = 256
"""How many chunks, which may be large, are asked for at once."""


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
        parts = [Where(query)]
        if query.until is not None:  # what was made before it and written after comes last
            parts.insert(len(parts) if query.oldest_first else 0, Where(query, placed_later=True))
        found: list[CheckpointInfo] = []
        for part in parts:
            left = None if query.limit is None else query.limit - len(found)
            found += yield from self._matching(query, part, left)
        return found

    def _matching(
        self, query: Query, where: Where, limit: int | None
    ) -> PostgresPlan[list[CheckpointInfo]]:
        if not query.tags:
            return list(map(record_of, (yield from self._ask(*where.select(limit)))))
        rows = yield from self._ask(*where.select(PAGE))
        found: list[CheckpointInfo] = []
        while True:
            found += filter(query.tagged, map(record_of, rows))
            if (limit is not None and len(found) >= limit) or len(rows) < PAGE:
                return found[:limit]
            rows = yield from self._ask(*where.select(PAGE, rows[-1][0]))

    def heads(self, agent_id: str | None = None) -> PostgresPlan[list[SessionInfo]]:
        """Return sessions, each with its newest record."""
        if agent_id is not None and not is_text(agent_id):
            return []
        rows = yield from self._ask(sql.SELECT_HEADS, now(), agent_id)
        heads = ((record_of(row[:-1]), row[-1]) for row in rows)
        return [SessionInfo(head.agent_id, head.session_id, head, n) for head, n in heads]

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

    def stats(self) -> PostgresPlan[Stats]:
        """Return what there is."""
        (row,) = yield from self._ask(sql.STATS, now())
        return Stats(*row)


def pages(items: list[T], size: int = PAGE) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _session_of(query: Query) -> tuple[bytes, str, str] | None:
    """Return how the one session that a query is about is found, if it is about one."""
    agent, session = query.agent_id, query.session_id
    if agent is None or session is None or not is_text(agent + session):
        return None
    return session_name(agent, session), agent, session


class Where:
    """The conditions of a query; every value is bound, never written into the statement."""

    def __init__(self, query: Query, placed_later: bool = False) -> None:
        self._conditions: list[str] = []
        self._values: list[Any] = []
        self._records = sql.SELECT_RECORDS
        self._is_forward = query.oldest_first
        self._order = sql.OLDEST_FIRST if query.oldest_first else sql.NEWEST_FIRST
        self._add_names(query)
        if query.ids is not None:
            self._add("c.id = ANY ({})", [key_of(name) for name in set(query.ids)])
        if query.parent_id is not None:
            self._add("c.parent = {}", key_of(query.parent_id))
        if query.parent_ids is not None:
            self._add("c.parent = ANY ({})", [key_of(name) for name in set(query.parent_ids)])
        if query.handoff_target is not None:
            self._add_text("c.target", query.handoff_target)
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
            older = "c.seq < (SELECT seq FROM holdfast.checkpoints WHERE id = {})"
            self._add(older, key_of(query.before))
        if not query.include_expired:
            self._add("(c.expires IS NULL OR c.expires > {})", now())

    def _add_names(self, query: Query) -> None:
        agent, session, prefix = query.agent_id, query.session_id, query.session_prefix
        if name := _session_of(query):
            # Nothing to join: what the sessions would tell is known.
            self._records = sql.SELECT_RECORDS_OF_SESSION
            self._order = f"c.session{'' if query.oldest_first else ' DESC'}, {self._order}"
            self._values += name
            self._conditions.append(sql.OF_SESSION)
        else:
            if agent is not None:
                self._add_text("s.agent", agent)
            if session is not None:
                self._add_text("s.session", session)
        if prefix is not None and self._can_hold(prefix):
            start = prefix[:128]
            self._add("left(s.session, 128) >= {}", start)
            self._add("left(s.session, 128) <= {}", start.ljust(128, "\U0010ffff"))
            self._add("starts_with(s.session, {})", prefix)

    def _add(self, condition: str, *values: Any) -> None:
        first = len(self._values) + 1
        self._values += values
        numbers = [f"${number}" for number in range(first, first + len(values))]
        self._conditions.append(condition.format(*numbers))

    def _add_text(self, column: str, text: str) -> None:
        if self._can_hold(text):
            self._add(f"left({column}, 128) = left({{}}, 128)", text)  # which an index can find
            self._add(f"{column} = {{}}", text)

    def _can_hold(self, text: str) -> bool:
        if not is_text(text):
            self._conditions.append("false")
        return is_text(text)

    def select(self, limit: int | None, behind: int | None = None) -> tuple[Any, ...]:
        """Return the statement and its values; for what comes behind a place, if one is given."""
        conditions, values = list(self._conditions), [*self._values]
        if behind is not None:
            values.append(behind)
            conditions.append(f"c.seq {'>' if self._is_forward else '<'} ${len(values)}")
        values.append(limit)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        statement = f"{self._records} {where} ORDER BY {self._order} LIMIT ${len(values)}"
        return statement, *values
