"""What the PostgreSQL store writes, as plans: each yields statements and is sent their rows."""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import chain

from psycopg.errors import (
    InsufficientPrivilege,
    ReadOnlySqlTransaction,
    UndefinedColumn,
    UniqueViolation,
)

from holdfast.errors import (
    CheckpointConflictError,
    FencedError,
    MissingBaseError,
    MissingParentError,
    NoteExistsError,
    NotTheHeadError,
    StoreConnectionError,
    StoreFormatError,
)
from holdfast.model import microseconds, moment
from holdfast.stores.base import Collected, Commit, Note, NotesOnly
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.reads import PAGE, PostgresPlan, PostgresReads, pages
from holdfast.stores.postgres.rows import (
    key_of,
    note_columns,
    record_row,
    session_name,
    text_bytes,
)
from holdfast.stores.shared.rows import Row, metadata_in
from holdfast.stores.shared.tags import FiledTags, numbers_of
from holdfast.system import crash_points

logger = logging.getLogger("holdfast")

LARGE = 8 * 2**20
"""Chunks of more bytes than this are sent in several statements."""
_TOLD = 100_000
PART = 100
"""How many records are removed at once: saves wait meanwhile."""
_NO_RECORD: Row = (None,) * 13


class PostgresWrites(PostgresReads):
    """Plans that change what is kept, and all that only read."""

    def _run(self, script: str) -> PostgresPlan[None]:
        yield sql.in_schema(script, self.schema), None

    def open(self) -> PostgresPlan[None]:
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
        version, is_filing = (yield from self._version()) if has_tables else (0, False)
        if version < sql.VERSION:
            yield from self._migrate()
        if is_filing or 0 < version < sql.VERSION:
            try:
                yield from self._file_tags()
            except (InsufficientPrivilege, ReadOnlySqlTransaction):
                logger.info("%s: its sessions are left to be filed to who may write", self.name)

    def _version(self) -> PostgresPlan[tuple[int, bool]]:
        """Return which version the tables are of, and whether records wait to be filed."""
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
        return version, bool(rows[0][1])

    def _migrate(self) -> PostgresPlan[None]:
        yield from self._run(sql.BEGIN)
        yield from self._ask(sql.LOCK_MIGRATIONS)
        ((has_schema,),) = yield from self._ask(sql.HAS_SCHEMA, self.schema)
        if not has_schema:
            yield from self._run(sql.create_schema(self.schema))
        ((has_tables,),) = yield from self._ask(sql.HAS_META)
        if not has_tables:
            yield from self._run(sql.CREATE_META)
        version, _ = yield from self._version()  # another process may have won
        for script in sql.MIGRATIONS[version:]:
            yield from self._run(script)
        if version == 0:  # there is nothing to be filed
            yield from self._run(sql.ALL_FILED)
        yield from self._ask(sql.WRITE_VERSION, sql.VERSION)
        yield from self._run(sql.COMMIT)

    def _file_tags(self) -> PostgresPlan[None]:
        """File the sessions of an older store by the tags of their records, some at a time.

        Others save meanwhile, and what they save is filed. Whoever is killed goes on there the next
        time the store is opened; until then a session that is not filed is looked through.
        """
        ((first,),) = yield from self._ask(sql.FIRST_UNFILED)
        session, seq, done = (0 if first is None else first), -(2**63), 0
        known: dict[int, tuple[FiledTags, set[int]]] = {}
        while rows := (yield from self._ask(sql.UNFILED, session, seq, PAGE)):
            for key, _, body in rows:
                filed, numbers = known.setdefault(key, (FiledTags(), set()))
                numbers.update(filed.unfiled(metadata_in(body)))
            session, seq, _ = rows[-1]
            done += len(rows)
            whole = {key: known.pop(key)[1] for key in list(known) if key != session}
            yield from self._file(whole)
            if done % _TOLD < len(rows):
                logger.info("%s: %s checkpoints are filed by their tags", self.name, f"{done:,}")
        yield from self._file({key: numbers for key, (_, numbers) in known.items()})
        yield from self._run(sql.ALL_FILED)

    def _file(self, tags: dict[int, set[int]]) -> PostgresPlan[None]:
        if tags:
            pairs = [(key, tag) for key, numbers in tags.items() for tag in (None, *numbers)]
            yield from self._ask(sql.FILE, *map(list, zip(*pairs, strict=True)))

    def commit(self, commit: Commit | NotesOnly, lost: bool = False) -> PostgresPlan[None]:
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
        if refusal is not None:
            if not (lost and (yield from self._is_kept(commit))):
                raise self._refused(commit, refusal)
            yield from self._ask(sql.FLUSH)
        crash_points.reach("postgres:committed")

    def _keep(self, commit: Commit | NotesOnly) -> PostgresPlan[str | None]:
        """Keep all in one statement, if it is not too large; return why it was refused, if so."""
        names = sorted(commit.chunks)
        record = (
            *(*record_values(commit), *note_columns(commit.notes)),
            *(*_conditions(commit), _tags_of(commit)),
        )
        parts = _parts(names, commit.chunks)
        first = next(parts, ([], []))
        if len(first[0]) < len(names):
            return (yield from self._keep_in_parts(commit, names, chain([first], parts), record))
        values = (*first, *record)
        if _scopes_told(commit):
            ((refusal,),) = yield from self._ask(sql.PUBLISH, *values, *_dropped(commit))
        elif commit.instead_of:
            ((refusal, _),) = yield from self._ask(sql.KEEP_INSTEAD, *values, *_dropped(commit))
        else:
            ((refusal,),) = yield from self._ask(sql.KEEP, *values)
        return refusal  # type: ignore[no-any-return]

    def _keep_in_parts(
        self,
        commit: Commit | NotesOnly,
        names: list[bytes],
        parts: Iterable[tuple[list[bytes], list[bytes]]],
        record: Row,
    ) -> PostgresPlan[str | None]:
        """Keep all in one transaction of several statements."""
        yield from self._run(sql.BEGIN)
        try:
            yield from self._run(sql.END_IDLE)
            yield from self._ask(sql.ENTER, *_entering(commit))  # before any chunk is locked
            for part in parts:
                yield from self._ask(sql.KEEP_CHUNKS, *part)
            ((refusal,),) = yield from self._ask(sql.KEEP, names, None, *record)
            if refusal is None and commit.instead_of:
                yield from self._ask(sql.DROP_NOTES, *_dropped(commit))
        except UniqueViolation:
            yield from self._run(sql.ROLLBACK)
            raise
        yield from self._run(sql.COMMIT if refusal is None else sql.ROLLBACK)
        if refusal is None and (told := _scopes_told(commit)):
            yield from self._ask(sql.TELL, told)
        return refusal  # type: ignore[no-any-return]

    def _is_kept(self, commit: Commit | NotesOnly) -> PostgresPlan[bool]:
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

    def delete(self, checkpoint_ids: Collection[str]) -> PostgresPlan[int]:
        """Remove records and notes, in parts so that no save waits long."""
        removed = 0
        for part in pages([key_of(name) for name in checkpoint_ids], PART):
            ((count, _),) = yield from self._ask(sql.REMOVE, part)
            crash_points.reach("upkeep:part")
            removed += count
        if checkpoint_ids:
            yield from self._ask(sql.FLUSH)
        return removed

    def sweep(self, moment: datetime) -> PostgresPlan[int]:
        """Remove what has expired, in parts so that no save waits long."""
        removed, more = 0, True
        while more:
            ((count, more, _),) = yield from self._ask(sql.SWEEP, microseconds(moment), PART)
            crash_points.reach("upkeep:part")
            removed += count
        yield from self._ask(sql.FLUSH)
        return removed

    def collect(
        self, live: Container[bytes], before: datetime, dry_run: bool
    ) -> PostgresPlan[Collected]:
        """Remove dead chunks page by page; one that is saved again meanwhile is spared."""
        bound = microseconds(before - (yield from self._ahead()))
        chunks, size, last = 0, 0, b""
        while True:
            page = yield from self._ask(sql.OLD_CHUNKS, bound, last, PAGE)
            dead = [(name, length) for name, length, old in page if old and name not in live]
            if dead and not dry_run:
                names = [name for name, _ in dead]
                dead = yield from self._ask(sql.DROP_CHUNKS, names, bound)
                crash_points.reach("upkeep:part")
            chunks += len(dead)
            size += sum(row[-1] for row in dead)
            if len(page) < PAGE:
                return Collected(chunks, size)
            last = page[-1][0]

    def _ahead(self) -> PostgresPlan[timedelta]:
        """Return how far our clock is before the server's, which dates chunks; 0 if it is not."""
        asked = datetime.now(UTC)
        ((there,),) = yield from self._ask(sql.NOW)
        ahead = asked > moment(there)
        return datetime.now(UTC) - moment(there) if ahead else timedelta(0)


def _check_keys(notes: Sequence[Note]) -> None:
    """Refuse a key that comes twice in one commit."""
    seen: set[tuple[str, str]] = set()
    for note in notes:
        if (note.scope, note.key) in seen:
            raise NoteExistsError(note)
        seen.add((note.scope, note.key))


def _entering(commit: Commit | NotesOnly) -> Row:
    """Return the locks of a commit, as the function ``enter`` takes them."""
    scope = None if commit.unless is None else commit.unless[0]
    alone = any(note.scope == scope for note in commit.notes)
    session = None
    if isinstance(commit, Commit):
        session = session_name(commit.info.agent_id, commit.info.session_id)
    return (None if scope is None else key_of(scope), alone, session)


def _scopes_told(commit: Commit | NotesOnly) -> list[bytes]:
    """Return the names under which others may wait for what is noted."""
    if isinstance(commit, NotesOnly) and commit.is_quiet:
        return []
    return [key_of(note.scope) for note in commit.notes if note.scope.startswith("/")]


def _dropped(commit: Commit | NotesOnly) -> Row:
    """Return the notes that mean nothing any more, as the function ``drop_notes`` takes them."""
    scopes = [key_of(scope) for scope, _ in commit.instead_of]
    return (scopes, [text_bytes(key) for _, key in commit.instead_of])


def _conditions(commit: Commit | NotesOnly) -> Row:
    """Return what a commit requires besides, as the function ``keep`` takes it."""
    scope, key = commit.unless or (None, None)
    fence = (None if scope is None else key_of(scope), None if key is None else text_bytes(key))
    if isinstance(commit, NotesOnly):
        return (*fence, None, None)
    follows = None if commit.follows is None else key_of(commit.follows)
    behind = None if commit.behind is None else [key_of(each) for each in commit.behind]
    return (*fence, follows, behind)


def _tags_of(commit: Commit | NotesOnly) -> list[int]:
    if isinstance(commit, NotesOnly):
        return []
    return [numbers_of(*tag)[-1] for tag in commit.info.metadata.items()]


def record_values(commit: Commit | NotesOnly) -> Row:
    if isinstance(commit, NotesOnly):
        return (None, None, *_NO_RECORD)
    parent = commit.info.parent_id if commit.needs_parent else None
    return (
        None if commit.base is None else key_of(commit.base),
        None if parent is None else key_of(parent),
        *record_row(commit.info, commit.chunks),
    )


def _parts(
    names: list[bytes], chunks: Mapping[bytes, bytes]
) -> Iterator[tuple[list[bytes], list[bytes]]]:
    """Yield names and chunks in parts that have at most ``LARGE`` bytes, or one chunk."""
    part: tuple[list[bytes], list[bytes]] = [], []
    size = 0
    for name in names:
        data = chunks[name]
        size += len(data)
        if size > LARGE and part[0]:
            yield part
            part, size = ([], []), len(data)
        part[0].append(name)
        part[1].append(data)
    if part[0]:
        yield part
