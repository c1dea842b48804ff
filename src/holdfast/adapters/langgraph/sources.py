"""What LangGraph's own savers have written, as it is read to be moved in."""

from __future__ import annotations

import json
import sqlite3
import sys
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.event_hooks import SerdeEvent, register_serde_event_listener

from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
)
from holdfast.stores.base import checked_path
from holdfast.stores.sqlite_schema import APPLICATION_ID

PAGE = 20
"""Checkpoints that are looked at in one view of the source."""


@dataclass(frozen=True, slots=True)
class Found:
    """A checkpoint that a source has; what it holds is not read yet."""

    thread_id: str
    namespace: str
    checkpoint_id: str
    parent: str | None = None

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


class Source(ABC):
    """A database that one of LangGraph's savers wrote. It is only read."""

    def __init__(self, serde: SerializerProtocol) -> None:
        self._serde = serde

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

    def load(self, found: Found, tag: str, data: bytes) -> Any:
        """A value as the source's serializer reads it, but never less than was written."""
        with _lost_types() as lost:
            try:
                value = self._serde.loads_typed((tag, data))
            except Exception as error:  # whatever a serializer that is not ours may raise
                raise found.refused(
                    f"{type(self._serde).__name__} cannot read it ({error}); if it was written "
                    "with another serializer, call move_in(..., serde=that)"
                ) from error
        if lost:
            raise found.refused(f"it holds a {lost[0]}")
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
    for event in seen:
        module, name = event["module"], event["name"]
        if event["kind"] != "msgpack_unregistered_allowed":
            lost.append(
                f"{module}.{name}, which the serializer does not allow; "
                "give move_in a serde whose allowed_msgpack_modules name it"
            )
        elif not hasattr(sys.modules.get(module), name):
            lost.append(
                f"{module}.{name}, which cannot be imported here; "
                "run this where your program's modules are found (PYTHONPATH)"
            )


def open_source(source: str | Path, serde: SerializerProtocol) -> Source:
    """The database at a path, or that of a PostgreSQL URL."""
    if is_dsn(source):
        from holdfast.adapters.langgraph.postgres_source import PostgresSource

        return PostgresSource(str(source), serde)
    return SqliteSource(Path(checked_path(source)), serde)


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

    def __init__(self, path: Path, serde: SerializerProtocol) -> None:
        super().__init__(serde)
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
        except ValueError as error:
            raise found.refused(f"its metadata is no JSON ({error})") from error
        return self.load(found, tag, data), about

    def writes(self, found: Found) -> list[Write]:
        return [Write(*row) for row in self._ask(self._writes, *found.key)]

    def close(self) -> None:
        self._db.close()
