"""Tables on disk for what may be too much for memory; gone with the process, however it ends."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import Any, Self

from holdfast.errors import StoreFullError

_CACHE = 16 * 1024
"""KiB of them that are held in memory."""


class Scratch:
    """Tables in a temporary file that has no name, so that nothing is left of it.

    >>> from holdfast.system.scratch import Scratch
    >>> with Scratch("CREATE TABLE seen (name BLOB PRIMARY KEY) WITHOUT ROWID") as seen:
    ...     seen.write("INSERT INTO seen VALUES (?)", [(b"one",), (b"two",)])
    ...     seen.ask("SELECT count(*) FROM seen")
    [(2,)]
    """

    def __init__(self, tables: str) -> None:
        import sqlite3

        self._failed = sqlite3.OperationalError
        # One thread at a time asks, whichever that is. An empty name is that of a temporary file.
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute("PRAGMA journal_mode = OFF")
        self._db.execute(f"PRAGMA cache_size = -{_CACHE}")
        self._db.executescript(tables)

    def write(self, statement: str, rows: Iterable[tuple[Any, ...]]) -> None:
        """Run a statement once for each row."""
        try:
            self._db.execute("BEGIN")
            try:
                self._db.executemany(statement, rows)
            finally:
                self._db.execute("COMMIT")
        except self._failed as error:
            raise self._full(error) from error

    def ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Run a statement, and return the rows it has."""
        try:
            return self._db.execute(statement, values).fetchall()
        except self._failed as error:
            raise self._full(error) from error

    def _full(self, error: Exception) -> StoreFullError:
        return StoreFullError(
            f"the directory for temporary files has no room ({error}): set TMPDIR to another"
        )

    def close(self) -> None:
        """Let go of the file; a second call does nothing."""
        self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
