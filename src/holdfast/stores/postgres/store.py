"""The store in a PostgreSQL database: for agents on many machines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, TypeVar

from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    Store,
)
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.connection import Place, abandon
from holdfast.stores.postgres.listen import Listeners
from holdfast.stores.postgres.pool import AsyncPool, Pool
from holdfast.stores.postgres.steps import Methods, Operation, Steps
from holdfast.system.forks import Locked

T = TypeVar("T")


class PostgresStore(Locked, Store):
    """Keeps checkpoints in a schema of a PostgreSQL database, version 14 or newer.

    Safe for many threads, event loops and processes at once, also behind a pooler such as
    PgBouncer that gives out connections by transaction. ``timeout`` is how many seconds the server
    may be silent before an operation fails.
    """

    speaks_async = True
    waits = True
    finds_newest = True

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = sql.DEFAULT_SCHEMA,
        pool_size: int = 8,
        timeout: float = 30.0,
    ) -> None:
        if isinstance(pool_size, bool) or not isinstance(pool_size, int) or pool_size < 1:
            raise InvalidArgumentError(f"pool_size is a number from 1, not {pool_size!r}")
        if not isinstance(timeout, (int, float)) or not 0 < timeout <= 86400:
            raise InvalidArgumentError(f"timeout is a number of seconds, not {timeout!r}")
        place = Place(dsn, sql.checked_schema(schema), timeout)
        self._methods = Methods(place.name, schema)
        self._size = pool_size
        self._pool = Pool(place, pool_size)
        self._loops: dict[asyncio.AbstractEventLoop, AsyncPool] = {}
        self._listeners = Listeners(place)
        try:
            self._pool.run(lambda lost: self._methods.open())
        except BaseException:
            self._pool.close()
            raise
        super().__init__()

    @property
    def name(self) -> str:
        return self._pool.place.name

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            for pool in (self._pool, *self._loops.values()):
                pool.forget()
            self._loops = {}

    def _do(self, steps: Callable[..., Steps[T]], *args: Any) -> T:
        return self._pool.run(lambda lost: steps(*args))

    def commit(self, commit: Commit | NotesOnly) -> None:
        self._pool.run(lambda lost: self._methods.commit(commit, lost))

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        return self._do(self._methods.load, checkpoint_id, verify)

    def newest(self, agent_id: str, session_id: str) -> Record | None:
        return self._do(self._methods.newest, agent_id, session_id)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return self._do(self._methods.fetch, names)

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        return self._do(self._methods.notes, scopes, after, limit)

    def wait(self, scope: str, after: int, timeout: float) -> None:
        connection = self._listeners.listen()
        try:  # looked at once more, now that nothing is missed
            there = self.notes([scope], after, 1)
        except BaseException:
            abandon(connection)
            raise
        self._listeners.rest(connection, 0 if there else timeout)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        return self._do(self._methods.match, prefix, limit, after)

    def query(self, query: Query) -> list[CheckpointInfo]:
        return self._do(self._methods.query, query)

    def heads(self, agent_id: str | None = None) -> list[SessionInfo]:
        return self._do(self._methods.heads, agent_id)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        return self._do(self._methods.delete, checkpoint_ids)

    def sweep(self, now: datetime) -> int:
        return self._do(self._methods.sweep, now)

    def collect(self, live: Collection[bytes], before: datetime, dry_run: bool) -> Collected:
        return self._do(self._methods.collect, live, before, dry_run)

    def stats(self) -> Stats:
        return self._do(self._methods.stats)

    def close(self) -> None:
        with self._lock:
            pools = [self._pool, *self._loops.values()]
            self._loops = {}
        for pool in pools:
            pool.close()
        self._listeners.close()

    async def answer(self, method: str, args: tuple[Any, ...]) -> Any:
        if method == "wait":
            return await self._wait(*args)
        steps = getattr(self._methods, method)
        operation: Operation[Any] = lambda lost: steps(*args)  # noqa: E731
        if method == "commit":
            operation = lambda lost: steps(*args, lost)  # noqa: E731
        return await self._pool_of_the_loop().run(operation)

    async def _wait(self, scope: str, after: int, timeout: float) -> None:
        connection = await self._listeners.listen_async()
        try:
            there = await self.answer("notes", ([scope], after, 1))
        except BaseException:
            abandon(connection)
            raise
        await self._listeners.rest_async(connection, 0 if there else timeout)

    def _pool_of_the_loop(self) -> AsyncPool:
        loop = asyncio.get_running_loop()
        pool = self._loops.get(loop)
        if pool is None:
            pool = AsyncPool(self._pool.place, self._size)
            with self._lock:
                if self._pool.closed:
                    raise StoreClosedError(self.name)
                for gone in [known for known in self._loops if known.is_closed()]:
                    self._loops.pop(gone).close()
                self._loops[loop] = pool
        return pool

    async def aclose(self) -> None:
        self.close()
