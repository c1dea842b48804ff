"""The file of SqliteSaver or AsyncSqliteSaver."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.adapters.langgraph.importing.source import (
    PAGE,
    LoadValue,
    Source,
    SourceCheckpoint,
    SourceWrite,
)
from holdfast.errors import (
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
)
from holdfast.stores.sqlite.schema import APPLICATION_ID

_PAGE = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints
WHERE (thread_id, checkpoint_ns, checkpoint_id) > (?, ?, ?)
ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT ?
"""
_CHECKPOINT = """
SELECT type, checkpoint, metadata FROM checkpoints
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ?
"""
_WRITES = """
SELECT task_id, {task_path}, idx, channel, type, value FROM writes
WHERE thread_id = ? AND checkpoint_ns = ? AND checkpoint_id = ? ORDER BY task_id, idx
"""


class SqliteSource(Source):
    """A file of SqliteSaver or AsyncSqliteSaver; others may write to it meanwhile."""

    def __init__(self, path: Path, load_value: LoadValue) -> None:
        super().__init__(load_value)
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
        self._writes = _WRITES.format(task_path=task_path)

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

    def page(self, after: SourceCheckpoint | None) -> list[SourceCheckpoint]:
        key = ("", "", "") if after is None else after.key
        return [SourceCheckpoint(*row) for row in self._ask(_PAGE, *key, PAGE)]

    def read(self, found: SourceCheckpoint) -> tuple[Any, Any]:
        ((tag, data, metadata),) = self._ask(_CHECKPOINT, *found.key)
        try:
            about = {} if metadata is None else json.loads(metadata)
        except (ValueError, TypeError, RecursionError) as error:
            raise found.refused(f"its metadata is no JSON ({error})") from error
        return self.load(found, tag, data, "$"), about

    def writes(self, found: SourceCheckpoint) -> list[SourceWrite]:
        return [SourceWrite(*row) for row in self._ask(self._writes, *found.key)]

    def close(self) -> None:
        self._db.close()
