"""The database of PostgresSaver or AsyncPostgresSaver."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraph.checkpoint.base import writes_sort_key
from langgraph.checkpoint.serde.types import TASKS

from holdfast.adapters.langgraph.channel_codec import value_path
from holdfast.adapters.langgraph.importing.source import (
    PAGE,
    LoadValue,
    Source,
    SourceCheckpoint,
    SourceWrite,
)
from holdfast.errors import (
    InvalidArgumentError,
    MissingPackageError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
)

if TYPE_CHECKING:
    import psycopg

_COLUMNS = """
SELECT attname FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped
"""
_PAGE = """
SELECT thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id FROM checkpoints
WHERE (thread_id, checkpoint_ns, checkpoint_id) > (%s, %s, %s)
ORDER BY thread_id, checkpoint_ns, checkpoint_id LIMIT %s
"""
_CHECKPOINT = """
SELECT checkpoint, metadata FROM checkpoints
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s
"""
_BLOBS = """
SELECT channel, blobs.type, blobs.blob
FROM checkpoints
CROSS JOIN jsonb_each_text(checkpoint -> 'channel_versions') AS current (channel, version)
JOIN checkpoint_blobs AS blobs USING (thread_id, checkpoint_ns, channel, version)
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s AND blobs.type <> 'empty'
"""
_WRITES = """
SELECT task_id, {task_path}, idx, channel, type, blob FROM checkpoint_writes
WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = %s ORDER BY task_id, idx
"""
_SENDS_APART = 4
"""Checkpoints of a format before this have their sends among the writes of their parents."""


class PostgresSource(Source):
    """The tables of PostgresSaver or AsyncPostgresSaver; others may write to them meanwhile."""

    def __init__(self, dsn: str, load_value: LoadValue) -> None:
        super().__init__(load_value)
        self._db = _connect(dsn)
        try:
            with self._translated():
                self._check()
        except BaseException:
            self._db.close()
            raise

    def _check(self) -> None:
        checkpoints, writes = self._columns("checkpoints"), self._columns("checkpoint_writes")
        if not {"thread_id", "checkpoint"} <= checkpoints or not writes:
            raise StoreFormatError(
                "this database holds no checkpoints of a LangGraph saver; "
                "if they are in a schema, name it: ?options=-csearch_path%3Dschema"
            )
        if "checkpoint_id" not in checkpoints:
            raise StoreFormatError(
                "this database was written by ShallowPostgresSaver, which keeps no history: "
                "there is nothing to move in but the last state of each thread"
            )
        task_path = "task_path" if "task_path" in writes else "''"
        self._writes = _WRITES.format(task_path=task_path)

    def _columns(self, table: str) -> set[str]:
        return {name for (name,) in self._ask(_COLUMNS, table)}

    def _ask(self, query: str, *values: Any) -> list[Any]:
        return self._db.execute(query, values).fetchall()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        import psycopg

        try:
            yield
        except psycopg.OperationalError as error:
            raise StoreConnectionError(
                f"the PostgreSQL server went away ({_brief(error)}); run again to go on"
            ) from error
        except psycopg.Error as error:
            raise StoreError(f"the PostgreSQL database cannot be read: {_brief(error)}") from error

    @contextmanager
    def view(self) -> Iterator[None]:
        with self._translated(), self._db.transaction():
            yield

    def count(self) -> int:
        with self._translated():
            return int(self._ask("SELECT count(*) FROM checkpoints")[0][0])

    def page(self, after: SourceCheckpoint | None) -> list[SourceCheckpoint]:
        key = ("", "", "") if after is None else after.key
        return [SourceCheckpoint(*row) for row in self._ask(_PAGE, *key, PAGE)]

    def read(self, found: SourceCheckpoint) -> tuple[Any, Any]:
        ((checkpoint, metadata),) = self._ask(_CHECKPOINT, *found.key)
        values = dict(checkpoint.get("channel_values") or {})
        for channel, tag, data in self._ask(_BLOBS, *found.key):
            values[channel] = self.load(found, tag, data, value_path(channel))
        versions = dict(checkpoint.get("channel_versions") or {})
        sends = self._sends_of(found) if checkpoint.get("v", 1) < _SENDS_APART else []
        if sends:
            values[TASKS] = sends
            versions[TASKS] = max(versions.values(), default=f"{1:032}.{0:016}")
        parts = {"channel_values": values, "channel_versions": versions}
        return {**checkpoint, **parts}, metadata

    def _sends_of(self, found: SourceCheckpoint) -> list[Any]:
        """Return what the parent's tasks sent: before v4 it is not kept in the checkpoint."""
        if found.parent is None:
            return []
        written = self.writes(SourceCheckpoint(found.thread_id, found.namespace, found.parent))
        sends = [write for write in written if write.channel == TASKS]
        sends.sort(key=lambda write: writes_sort_key(write.task_path, write.task_id, write.index))
        path = value_path(TASKS)
        return [
            self.load(found, write.tag, write.data, f"{path}[{index}]")
            for index, write in enumerate(sends)
        ]

    def writes(self, found: SourceCheckpoint) -> list[SourceWrite]:
        return [SourceWrite(*row) for row in self._ask(self._writes, *found.key)]

    def close(self) -> None:
        self._db.close()


def _connect(dsn: str) -> psycopg.Connection[Any]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingPackageError("reading a PostgreSQL database", "psycopg", "postgres") from None
    # Messages about a URL that cannot be parsed may show a part of its password.
    unclear = InvalidArgumentError(
        "the PostgreSQL URL cannot be understood: percent-encode what is special in its "
        "user name and password, as in postgresql://user:p%40ss@host:5432/database"
    )
    try:
        parts = conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise unclear from None
    if (
        "@" in str(parts.get("host", ""))
        or not str(parts.get("port", "0")).replace(",", "").isdigit()
    ):
        raise unclear
    try:
        db = psycopg.connect(dsn, autocommit=True, prepare_threshold=None)
    except psycopg.OperationalError as error:
        raise StoreConnectionError(
            f"the PostgreSQL server cannot be reached: {_brief(error)}"
        ) from None
    db.read_only = True
    db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    return db


def _brief(error: Exception) -> str:
    """Return the first line of a message; what follows shows the query or asks questions."""
    return str(error).partition("\n")[0]
