"""What each method of the PostgreSQL store does, as statements; no I/O of its own.

A method is a generator that yields statements and is sent their rows, or thrown the error of one.
It may be begun anew when a connection was lost, so all of it can be done twice.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from psycopg.errors import UndefinedColumn, UniqueViolation

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    FencedError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
    StoreConnectionError,
    StoreFormatError,
)
from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    unfold,
)
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.rows import (
    Row,
    bounds_of,
    is_text,
    key_of,
    name_of,
    note_columns,
    note_of,
    now,
    record_of,
    record_row,
    session_name,
    text_bytes,
)
from holdfast.stores.shared.rows import bound_of
from holdfast.system import crash_points

T = TypeVar("T")
Statement = tuple[str, Sequence[Any] | None]
Steps = Generator[Statement, list[Any], T]
Operation = Callable[[bool], Steps[T]]
"""Begins the steps of a method; told whether an attempt before lost its connection."""

PAGE = 1000
CHUNKS = 256
"""How many chunks, which may be large, are asked for at once."""
LARGE = 8 * 2**20
"""Chunks of more bytes than this are sent in several statements."""
_NO_RECORD: Row = (None,) * 13


class Methods:
    """The methods of a store whose tables are in one schema."""

    def __init__(self, name: str, schema: str) -> None:
        self.name = name
        self.schema = schema

    def _ask(self, statement: str, *values: Any) -> Steps[list[Any]]:
        return (yield sql.in_schema(statement, self.schema), values)

    def _run(self, script: str) -> Steps[None]:
        yield sql.in_schema(script, self.schema), None

    def open(self) -> Steps[None]:
        """Check the server, and make or bring up to date the tables."""
        ((server, encoding, isolation, has_tables),) = yield from self._ask(sql.SERVER)
        if server < sql.OLDEST_SERVER:
            raise StoreConnectionError(
                f"{self.name} is on PostgreSQL {server}: it needs {sql.OLDEST_SERVER} or newer"
            )
        if encoding != "UTF8":
            raise StoreConnectionError(
                f"{self.name} keeps text as {encoding}: "
                "make a database with CREATE DATABASE … ENCODING 'UTF8'"
            )
        if isolation != "read committed":
            raise StoreConnectionError(
                f"{self.name} has default_transaction_isolation = {isolation!r}, under which saves "
                "would fail: ALTER ROLE … SET default_transaction_isolation = 'read committed'"
            )
        if not has_tables or (yield from self._version()) < sql.VERSION:
            yield from self._migrate()

    def _version(self) -> Steps[int]:
        try:
            rows = yield from self._ask(sql.READ_VERSION)
        except UndefinedColumn:
            rows = []
        if not rows:
            raise StoreFormatError(
                f"{self.name}: the schema {self.schema} is that of another program; "
                "choose one with schema="
            )
        version = int(rows[0][0])
        if version > sql.VERSION:
            raise StoreFormatError(
                f"{self.name} has format {version}, this Holdfast reads up to {sql.VERSION}: "
                "upgrade Holdfast to open it"
            )
        return version

    def _migrate(self) -> Steps[None]:
        yield from self._run(sql.BEGIN)
        yield from self._ask(sql.LOCK_MIGRATIONS)
        ((has_schema,),) = yield from self._ask(sql.HAS_SCHEMA, self.schema)
        if not has_schema:
            yield from self._run(sql.create_schema(self.schema))
        ((has_tables,),) = yield from self._ask(sql.HAS_META)
        if not has_tables:
            yield from self._run(sql.CREATE_META)
        version = yield from self._version()  # another process may have won
        for script in sql.MIGRATIONS[version:]:
            yield from self._run(script)
        yield from self._ask(sql.WRITE_VERSION, sql.VERSION)
        yield from self._run(sql.COMMIT)

    def commit(self, commit: Commit | NotesOnly, lost: bool = False) -> Steps[None]:
        """Keep all, or raise why not.

        After a lost connection nobody knows whether it was kept: one that was is not refused.
        """
        _check_keys(commit.notes)
        crash_points.reach("postgres:begun")
        try:
            refusal = yield from self._keep(commit)
        except UniqueViolation:
            # Another save of this id or note was committed meanwhile: now it can be seen.
            refusal = yield from self._keep(commit)
        if refusal is not None and not (lost and (yield from self._is_kept(commit))):
            raise self._refused(commit, refusal)
        crash_points.reach("postgres:committed")

    def _keep(self, commit: Commit | NotesOnly) -> Steps[str | None]:
        """All in one transaction, usually of one statement; returns why it was refused, if so."""
        names = sorted(commit.chunks)
        record = *_record_values(commit), *note_columns(commit.notes), *_conditions(commit)
        if sum(map(len, commit.chunks.values())) <= LARGE:
            data = [commit.chunks[name] for name in names]
            ((refusal,),) = yield from self._ask(sql.KEEP, names, data, *record)
            return refusal  # type: ignore[no-any-return]
        yield from self._run(sql.BEGIN)
        try:
            yield from self._run(sql.END_IDLE)
            yield from self._ask(sql.ENTER, *_entering(commit))  # before any chunk is locked
            for part in _parts(names, commit.chunks):
                data = [commit.chunks[name] for name in part]
                yield from self._ask(sql.KEEP_CHUNKS, part, data)
            ((refusal,),) = yield from self._ask(sql.KEEP, names, None, *record)
        except UniqueViolation:
            yield from self._run(sql.ROLLBACK)
            raise
        yield from self._run(sql.COMMIT if refusal is None else sql.ROLLBACK)
        return refusal  # type: ignore[no-any-return]

    def _is_kept(self, commit: Commit | NotesOnly) -> Steps[bool]:
        if isinstance(commit, Commit):
            rows = yield from self._ask(sql.KEPT_RECORD, key_of(commit.info.checkpoint_id))
            return bool(rows) and rows[0][0].hex() == commit.info.checksum
        for note in commit.notes:
            rows = yield from self._ask(sql.KEPT_NOTE, key_of(note.scope), text_bytes(note.key))
            if not rows or rows[0][0] != note.checksum:
                return False
        return True

    def _refused(self, commit: Commit | NotesOnly, refusal: str) -> Exception:
        if isinstance(commit, Commit) and refusal == "conflict":
            return CheckpointConflictError(commit.info.checkpoint_id)
        if refusal == "fenced" and commit.unless is not None:
            return FencedError(commit.unless)
        if refusal == "head":
            return NotTheHeadError()
        if refusal in ("base", "parent"):
            return MissingBaseError() if refusal == "base" else MissingParentError()
        return NoteExistsError(commit.notes[int(refusal) - 1])

    def load(self, checkpoint_id: str, verify: bool = True) -> Steps[Record | None]:
        """The record with its root and what is near it, then a statement for each level below."""
        return (yield from self._whole(verify, sql.LOAD, key_of(checkpoint_id), now()))

    def newest(self, agent_id: str, session_id: str) -> Steps[Record | None]:
        """The newest record of a session, in as many statements as if its id were known."""
        name = _session_of(Query(agent_id=agent_id, session_id=session_id))
        if name is None:
            return None
        return (yield from self._whole(True, sql.LOAD_NEWEST, *name, now()))

    def _whole(self, verify: bool, statement: str, *values: Any) -> Steps[Record | None]:
        rows = yield from self._ask(statement, *values)
        if not rows:
            return None
        *row, names, data = rows[0]
        info = record_of(row)
        near = dict(zip(names or (), data or (), strict=True))

        def fetch(wanted: Collection[bytes]) -> Steps[dict[bytes, bytes]]:
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

    def fetch(self, names: Collection[bytes]) -> Steps[dict[bytes, bytes]]:
        """Chunks by name."""
        found: dict[bytes, bytes] = {}
        for part in _pages(list(names), CHUNKS):
            found.update((yield from self._ask(sql.FETCH, part)))
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> Steps[list[Note]]:
        """Notes past a place; of one named scope none is missed by who goes on from the last."""
        keys = None if scopes is None else [key_of(scope) for scope in set(scopes)]
        rows = yield from self._ask(sql.SELECT_NOTES, after, now(), limit, keys)
        return [note_of(row) for row in rows]

    def match(self, prefix: str, limit: int, after: str = "") -> Steps[list[str]]:
        """Ids by their beginning: UUIDs first, then all others."""
        past = key_of(after) if after else b""
        rows = yield from self._ask(sql.MATCH, *bounds_of(prefix), past, limit)
        return [name_of(row[0]) for row in rows]

    def query(self, query: Query) -> Steps[list[CheckpointInfo]]:
        """Records; those with tags page by page, as tags are compared here."""
        if query == Query(
            agent_id=query.agent_id, session_id=query.session_id, limit=query.limit
        ) and (name := _session_of(query)):
            rows = yield from self._ask(sql.NEWEST, *name, now(), query.limit)
            return [record_of(row) for row in rows]
        where = _Where(query)
        found: list[CheckpointInfo] = []
        if query.until is not None:
            rows = yield from self._ask(*_Where(query, placed_later=True).select(None))
            found = list(filter(query.tagged, map(record_of, rows)))[: query.limit]
        if not query.tags:
            left = None if query.limit is None else query.limit - len(found)
            rows = yield from self._ask(*where.select(left))
            return [*found, *map(record_of, rows)]
        rows = yield from self._ask(*where.select(PAGE))
        while True:
            found += filter(query.tagged, map(record_of, rows))
            enough = query.limit is not None and len(found) >= query.limit
            if enough or len(rows) < PAGE:
                return found[: query.limit]
            rows = yield from self._ask(*where.select(PAGE, rows[-1][0]))

    def heads(self, agent_id: str | None = None) -> Steps[list[SessionInfo]]:
        """Sessions, each with its newest record."""
        if agent_id is not None and not is_text(agent_id):
            return []
        rows = yield from self._ask(sql.SELECT_HEADS, now(), agent_id)
        heads = ((record_of(row[:-1]), row[-1]) for row in rows)
        return [SessionInfo(head.agent_id, head.session_id, head, n) for head, n in heads]

    def delete(self, checkpoint_ids: Collection[str]) -> Steps[int]:
        """Remove records and notes, in parts so that no save waits long."""
        removed = 0
        for part in _pages([key_of(name) for name in checkpoint_ids]):
            ((count,),) = yield from self._ask(sql.REMOVE, part)
            removed += count
        return removed

    def sweep(self, moment: datetime) -> Steps[int]:
        """Remove what has expired, in parts so that no save waits long."""
        removed, more = 0, True
        while more:
            ((count, more),) = yield from self._ask(sql.SWEEP, microseconds(moment), PAGE)
            removed += count
        return removed

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Steps[Collected]:
        """Remove dead chunks page by page; one that is saved again meanwhile is spared."""
        live = frozenset(live)
        bound = microseconds(before - (yield from self._ahead()))
        chunks, size, last = 0, 0, b""
        while True:
            page = yield from self._ask(sql.OLD_CHUNKS, bound, last, PAGE)
            dead = [(name, length) for name, length, old in page if old and name not in live]
            if dead and not dry_run:
                names = [name for name, _ in dead]
                dead = yield from self._ask(sql.DROP_CHUNKS, names, bound)
            chunks += len(dead)
            size += sum(row[-1] for row in dead)
            if len(page) < PAGE:
                return Collected(chunks, size)
            last = page[-1][0]

    def _ahead(self) -> Steps[timedelta]:
        """How far our clock is before the server's, which chunks are dated by; 0 if it is not."""
        asked = datetime.now(UTC)
        ((there,),) = yield from self._ask(sql.NOW)
        ahead = asked > moment(there)
        return datetime.now(UTC) - moment(there) if ahead else timedelta(0)

    def stats(self) -> Steps[Stats]:
        """What there is."""
        (row,) = yield from self._ask(sql.STATS, now())
        return Stats(*row)


def _check_keys(notes: Sequence[Note]) -> None:
    """Refuse a key that comes twice in one commit."""
    seen: set[tuple[str, str]] = set()
    for note in notes:
        if (note.scope, note.key) in seen:
            raise NoteExistsError(note)
        seen.add((note.scope, note.key))


def _entering(commit: Commit | NotesOnly) -> Row:
    """The locks of a commit, as the function ``enter`` takes them."""
    scope = None if commit.unless is None else commit.unless[0]
    alone = any(note.scope == scope for note in commit.notes)
    session = None
    if isinstance(commit, Commit):
        session = session_name(commit.info.agent_id, commit.info.session_id)
    return (None if scope is None else key_of(scope), alone, session)


def _conditions(commit: Commit | NotesOnly) -> Row:
    """What a commit requires besides, as the function ``keep`` takes it."""
    scope, key = commit.unless or (None, None)
    fence = (None if scope is None else key_of(scope), None if key is None else text_bytes(key))
    if isinstance(commit, NotesOnly):
        return (*fence, None, None)
    follows = None if commit.follows is None else key_of(commit.follows)
    behind = None if commit.behind is None else [key_of(each) for each in commit.behind]
    return (*fence, follows, behind)


def _record_values(commit: Commit | NotesOnly) -> Row:
    if isinstance(commit, NotesOnly):
        return (None, None, *_NO_RECORD)
    parent = commit.info.parent_id if commit.needs_parent else None
    return (
        None if commit.base is None else key_of(commit.base),
        None if parent is None else key_of(parent),
        *record_row(commit.info, commit.chunks),
    )


def _pages(items: list[T], size: int = PAGE) -> Iterator[list[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _parts(names: list[bytes], chunks: Any) -> Iterator[list[bytes]]:
    """The names in parts whose chunks have about ``LARGE`` bytes together."""
    part: list[bytes] = []
    size = 0
    for name in names:
        part.append(name)
        size += len(chunks[name])
        if size > LARGE:
            yield part
            part, size = [], 0
    if part:
        yield part


def _session_of(query: Query) -> tuple[bytes, str, str] | None:
    """How the one session that a query is about is found, if it is about one."""
    agent, session = query.agent_id, query.session_id
    if agent is None or session is None or not is_text(agent + session):
        return None
    return session_name(agent, session), agent, session


class _Where:
    """The conditions of a query; every value is bound, never written into the statement."""

    def __init__(self, query: Query, placed_later: bool = False) -> None:
        self._conditions: list[str] = []
        self._values: list[Any] = []
        self._records = sql.SELECT_RECORDS
        self._order = sql.NEWEST_FIRST
        self._add_names(query)
        if query.ids is not None:
            self._add("c.id = ANY ({})", [key_of(name) for name in set(query.ids)])
        if query.parent_id is not None:
            self._add("c.parent = {}", key_of(query.parent_id))
        if query.handoff_target is not None:
            self._add_text("c.target", query.handoff_target)
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
            self._order = f"c.session DESC, {sql.NEWEST_FIRST}"
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

    def select(self, limit: int | None, older_than: int | None = None) -> tuple[Any, ...]:
        """The statement, newest first, and its values."""
        conditions, values = list(self._conditions), [*self._values]
        if older_than is not None:
            values.append(older_than)
            conditions.append(f"c.seq < ${len(values)}")
        values.append(limit)
        where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
        statement = f"{self._records} {where} ORDER BY {self._order} LIMIT ${len(values)}"
        return statement, *values
