"""What LangGraph's own savers have written, as it is read to be moved in."""

from __future__ import annotations

import json
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from holdfast.adapters.langgraph.reading import STRICT, At, load, trusting
from holdfast.errors import (
    AdapterError,
    HoldfastError,
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    UnknownTypeError,
)
from holdfast.stores.base import checked_path
from holdfast.stores.sqlite.schema import APPLICATION_ID

PAGE = 20
"""Checkpoints that are looked at in one view of the source."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that a source has; what it holds is not read yet."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent: str | None = None

    def __post_init__(self) -> None:
        names = (*self.key, self.parent or "")
        if not all(type(name) is str for name in names):
            raise StoreFormatError(f"a row is no checkpoint of LangGraph's: {names!r:.200}")

    @property
    def key(self) -> tuple[str, str, str]:
        return self.thread_id, self.namespace, self.checkpoint_id

    def refused(self, reason: object) -> AdapterError:
        """The error that this one cannot be moved."""
        place = f" in {self.namespace!r}" if self.namespace else ""
        return AdapterError(
            f"checkpoint {self.checkpoint_id!r} of thread {self.thread_id!r}{place} cannot be "
            f"moved: {reason}. What came before it is kept; run again to go on"
        )


@dataclass(frozen=True, slots=True)
class Write:
    """A write of a task as the source keeps it."""

    task_id: str
    task_path: str
    index: int
    channel: str
    tag: str
    data: bytes

    def __post_init__(self) -> None:
        names = (self.task_id, self.task_path, self.channel, self.tag)
        if not all(type(name) is str for name in names) or type(self.index) is not int:
            raise StoreFormatError(f"a write is no write of LangGraph's: {names!r:.200}")


class Source(ABC):
    """A database that one of LangGraph's savers wrote. It is only read."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    @abstractmethod
    def view(self) -> AbstractContextManager[None]:
        """While this is open, all reads see the source as it was at one moment."""

    @abstractmethod
    def count(self) -> int:
        """How many checkpoints there are."""

    @abstractmethod
    def page(self, after: Found | None) -> list[Found]:
        """The next checkpoints by thread, namespace and age, the oldest first."""

    @abstractmethod
    def read(self, found: Found) -> tuple[Any, Any]:
        """A checkpoint and its metadata."""

    @abstractmethod
    def writes(self, found: Found) -> list[Write]:
        """What tasks wrote on a checkpoint, as it is kept."""

    @abstractmethod
    def close(self) -> None:
        """Leave the source."""

    def load(self, found: Found, tag: str, data: bytes, path: str) -> Any:
        """A value of a checkpoint, at this path of it; never less than was written."""
        if type(tag) is not str or not isinstance(data, (bytes, type(None))):
            raise found.refused(
                f"{path} is kept as {type(data).__name__}, and not as LangGraph does"
            )
        with _lost_types() as lost:
            try:
                value = self._reader(tag, data or b"", At(path))
            except UnknownTypeError as error:
                raise found.refused(error) from error
            except Exception as error:  # whatever a serializer that is not ours may raise
                raise found.refused(
                    f"it cannot be read ({error}); if it was written with a serializer of your "
                    "own, call move_in(..., serde=that)"
                ) from error
        if lost:
            raise found.refused(f"{path} holds a {lost[0]}")
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


@contextmanager
def _lost_types() -> Iterator[list[str]]:
    """Which classes LangGraph's serializer does not revive: it gives their fields instead."""
    seen: list[SerdeEvent] = []
    lost: list[str] = []
    here = threading.get_ident()

    def listen(event: SerdeEvent) -> None:
        if threading.get_ident() == here:
            seen.append(event)

    unregister = register_serde_event_listener(listen)
    try:
        yield lost
    finally:
        unregister()
    lost += [
        f"{event['module']}.{event['name']}, which the serializer does not allow; "
        "give move_in a serde whose allowed_msgpack_modules name it"
        for event in seen
        if event["kind"] != "msgpack_unregistered_allowed"
    ]


Reader = Callable[[str, bytes, At], Any]
"""Gives the value of a serializer's tag and bytes, which belong at a path."""


def reader_of(serde: SerializerProtocol | None, trust: Collection[str | type] = ()) -> Reader:
    """How a source is read: strictly, but for classes that are trusted; or by the user's serde."""
    if serde is None:
        return trusting(trust).load
    if trust:
        raise InvalidArgumentError(
            "give serde= or trust=, not both: a serializer says itself what it allows "
            "(allowed_msgpack_modules)"
        )
    return partial(load, serde)


def open_source(source: str | Path, reader: Reader = STRICT.load) -> Source:
    """The database at a path, or that of a PostgreSQL URL."""
    if is_dsn(source):
        from holdfast.adapters.langgraph.postgres_source import PostgresSource

        return PostgresSource(str(source), reader)
    return SqliteSource(Path(checked_path(source)), reader)


@contextmanager
def explaining(store: str | Path | None) -> Iterator[None]:
    """Where a store cannot be opened because it is a file of LangGraph's, say how it comes over."""
    try:
        yield
    except StoreFormatError as error:
        path = Path(unquote(urlsplit(str(store)).path)[1:] if "://" in str(store) else str(store))
        if not _is_of_langgraph(path):
            raise
        raise StoreFormatError(
            f"{path} is a file of LangGraph's own saver, which stays as it is: bring its threads "
            f"into a store with `holdfast import langgraph-sqlite {path} --store "
            "sqlite:///agent.db` (or move_in), and open that"
        ) from error


def _is_of_langgraph(path: Path) -> bool:
    try:
        SqliteSource(path, STRICT.load).close()
    except HoldfastError:
        return False
    return True


def is_dsn(source: object) -> bool:
    """Whether a source is named by a PostgreSQL URL."""
    return isinstance(source, str) and source.startswith(("postgres://", "postgresql://"))


_SQLITE_PAGE = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints
WHERE (thread_id, checkpoint_ns, checkpoint_id) > (?, ?, ?)
ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT ?
"""
_SQLITE_CHECKPOINT = """
SELECT type, checkpoint, metadata FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_SQLITE_WRITES = """
SELECT task_id, {task_path}, idx, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx
"""


class SqliteSource(Source):
    """A file of SqliteSaver or AsyncSqliteSaver; others may write to it meanwhile."""

    def __init__(self, path: Path, reader: Reader) -> None:
        super().__init__(reader)
        self._path = path
        if not path.is_file():
            raise InvalidArgumentError(f"there is no file {path}: name the SQLite file of a saver")
        try:
            self._db = sqlite3.connect(
                f"file:{quote(str(path.absolute()))}?mode=ro",
                uri=True,
                timeout=30,
                isolation_level=None,
                check_same_thread=False,
            )
        except sqlite3.Error as error:
            raise StoreConnectionError(f"{path} cannot be opened: {error}") from error
        try:
            self._check()
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        if self._ask("PRAGMA application_id") == [(APPLICATION_ID,)]:
            raise StoreFormatError(
                f"{self._path} is a Holdfast store already: open it with "
                "HoldfastSaver.from_sqlite(path)"
            )
        # A view, say, could take for ever, or run what the file says.
        self._ask("PRAGMA trusted_schema = OFF")
        checkpoints, writes = self._columns("checkpoints"), self._columns("writes")
        if not {"thread_id", "checkpoint"} <= checkpoints:
            raise StoreFormatError(f"{self._path} holds no checkpoints of a LangGraph saver")
        if not {"checkpoint_ns", "type"} <= checkpoints or not writes:
            raise StoreFormatError(
                f"{self._path} was written by langgraph-checkpoint-sqlite before 1.0, "
                "which today's LangGraph cannot read either"
            )
        task_path = "task_path" if "task_path" in writes else "''"
        self._writes = _SQLITE_WRITES.format(task_path=task_path)

    def _columns(self, table: str) -> set[str]:
        made = self._ask("SELECT type, sql FROM sqlite_master WHERE name = ?", table)
        for kind, sql in made:
            if kind != "table" or not str(sql).upper().startswith("CREATE TABLE"):
                raise StoreFormatError(
                    f"{self._path} has a {kind} in place of the table {table}: no saver made it"
                )
        return {name for (name,) in self._ask("SELECT name FROM pragma_table_info(?)", table)}

    def _ask(self, query: str, *values: Any) -> list[Any]:
        try:
            return self._db.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            code = getattr(error, "sqlite_errorcode", None)
            if code == sqlite3.SQLITE_NOTADB:
                raise StoreFormatError(f"{self._path} is not an SQLite file") from error
            hint = ""
            if code == sqlite3.SQLITE_CANTOPEN:
                hint = "; in a directory that is read-only, copy it (and the -wal file) elsewhere"
            raise StoreError(f"{self._path} cannot be read: {error}{hint}") from error

    @contextmanager
    def view(self) -> Iterator[None]:
        self._ask("BEGIN")
        try:
            yield
        finally:
            if self._db.in_transaction:
                self._ask("ROLLBACK")

    def count(self) -> int:
        return int(self._ask("SELECT count(*) FROM checkpoints")[0][0])

    def page(self, after: Found | None) -> list[Found]:
        key = ("", "", "") if after is None else after.key
        return [Found(*row) for row in self._ask(_SQLITE_PAGE, *key, PAGE)]

    def read(self, found: Found) -> tuple[Any, Any]:
        ((tag, data, metadata),) = self._ask(_SQLITE_CHECKPOINT, *found.key)
        try:
            about = {} if metadata is None else json.loads(metadata)
        except (ValueError, TypeError, RecursionError) as error:
            raise found.refused(f"its metadata is no JSON ({error})") from error
        return self.load(found, tag, data, "$"), about

    def writes(self, found: Found) -> list[Write]:
        return [Write(*row) for row in self._ask(self._writes, *found.key)]

    def close(self) -> None:
        self._db.close()
