"""Where stores are made: a file, or a database on a server that is started for it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.servers import PostgresPlace, RedisPlace
from holdfast import SyncClient


class SqlitePlace:
    """A file."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "scale.db"
        self.url = f"sqlite:///{self._file}"

    @contextmanager
    def loading(self) -> Iterator[str]:
        """Give a URL by which nothing is flushed but the log when it is moved into the file."""
        yield f"{self.url}?durability=normal"

    def cpu(self) -> float:
        """Return 0: it has no server."""
        return 0.0

    def bytes(self) -> int:
        """Return the size of the file, and of what is still in its log."""
        return sum(file.stat().st_size for file in self._file.parent.glob(f"{self._file.name}*"))

    def remove(self) -> None:
        """Remove the file: stores may be large."""
        for file in self._file.parent.glob(f"{self._file.name}*"):
            file.unlink()


class PostgresScalePlace(PostgresPlace):
    """A database, vacuumed once it is loaded, as autovacuum would have within the minute."""

    @contextmanager
    def loading(self) -> Iterator[str]:
        """Give its URL while commits do not wait for the disk."""
        self.execute(f"ALTER DATABASE {self.name} SET synchronous_commit = off")
        try:
            yield self.url
        finally:
            self.execute(f"ALTER DATABASE {self.name} RESET synchronous_commit")
            self.execute("VACUUM (ANALYZE)")
            self.execute("CHECKPOINT")


class RedisScalePlace(RedisPlace):
    """A server that flushes its log with every write, but while it is loaded."""

    def __init__(self, size: int) -> None:
        super().__init__(f"scale-{size}", "always")

    @contextmanager
    def loading(self) -> Iterator[str]:
        """Give its URL while the log is flushed once a second."""
        with self.configured(appendfsync="everysec"):
            yield self.url


AnyPlace = SqlitePlace | PostgresScalePlace | RedisScalePlace
PLACES = ("sqlite", "postgres", "redis")


def place_of(kind: str, directory: Path, size: int) -> AnyPlace:
    """Return an empty place of a kind for a store of some size."""
    if kind == "sqlite":
        return SqlitePlace(directory)
    return PostgresScalePlace() if kind == "postgres" else RedisScalePlace(size)


def checkpoints_in(url: str) -> int:
    """Return how many checkpoints a store holds."""
    with SyncClient.open(url) as client:
        return client.stats().checkpoints
