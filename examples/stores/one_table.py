"""A store of your own: Holdfast on one table of bytes, in a page of code.

Any database that keeps bytes under ordered keys does as well: LMDB, RocksDB, FoundationDB…
`tests/integration/test_store_contract.py` runs the suite of `holdfast.testing` on this one.
"""

import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast import SyncClient
from holdfast.stores import KeyValueStore


class OneTableStore(KeyValueStore):
    """Keeps everything in one table of an SQLite file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS kept (key BLOB PRIMARY KEY, value BLOB)")

    @property
    def name(self) -> str:
        return f"the one-table store {self._path}"

    def _get(self, keys: Collection[bytes]) -> Mapping[bytes, bytes]:
        with self._lock:
            asked = [(key, self._db.execute(_ONE, (key,)).fetchone()) for key in keys]
        return {key: row[0] for key, row in asked if row}

    def _scan(self, start: bytes, stop: bytes, reverse: bool = False) -> list[tuple[bytes, bytes]]:
        with self._lock:
            return self._db.execute(_DOWN if reverse else _UP, (start, stop)).fetchall()

    def _write(self, puts: Mapping[bytes, bytes], removes: Collection[bytes]) -> None:
        self._db.executemany("REPLACE INTO kept VALUES (?, ?)", puts.items())
        self._db.executemany("DELETE FROM kept WHERE key = ?", [(key,) for key in removes])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            super().close()
            self._db.close()


_ONE = "SELECT value FROM kept WHERE key = ?"
_UP = "SELECT key, value FROM kept WHERE key >= ? AND key < ? ORDER BY key"
_DOWN = f"{_UP} DESC"


if __name__ == "__main__":
    with (
        TemporaryDirectory() as directory,
        SyncClient(OneTableStore(Path(directory) / "kept.db")) as client,
    ):
        for step in (1, 2):
            client.save("coder", execution_state={"step": step}, session_id="fix-42")
        for kept in client.timeline("coder", "fix-42", with_state=True):
            print(f"{kept.checkpoint_id}: {kept.execution_state}")
