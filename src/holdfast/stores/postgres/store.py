"""The store in a PostgreSQL database: for agents on many machines."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Collection
from concurrent.futures import wait
from typing import Any, TypeVar

from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.model import CheckpointInfo
from holdfast.stores.async_base import AsyncStore
from holdfast.stores.base import Commit, NotesOnly, Store
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.connection import ServerAddress
from holdfast.stores.postgres.listen import LONGEST, Listener
from holdfast.stores.postgres.pool import AsyncPool, Pool
from holdfast.stores.postgres.reads import Operation
from holdfast.stores.postgres.writes import PostgresWrites
from holdfast.stores.shared.per_loop import PerLoop
from holdfast.stores.shared.planned import PlannedStore
from holdfast.system import patience
from holdfast.system.threads import Threads

C = TypeVar("C")
T = TypeVar("T")


class _PostgresMethods(PlannedStore):
    """What is asked of a database, however it is carried out."""

    _plans: PostgresWrites

    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Any:
        return self._run(lambda lost: plan(*args))

    @abstractmethod
    def _run(self, operation: Operation[Any]) -> Any:
        """Carry out an operation, anew where that helps; it is told if a connection was lost."""

    def commit(self, commit: Commit | NotesOnly) -> Any:
        return self._run(lambda lost: self._plans.commit(commit, lost))

    def newest(self, agent_id: str, session_id: str) -> Any:
        return self._carry_out(self._plans.newest, agent_id, session_id)

    def last_notes(self, scopes: Collection[str], count: int) -> Any:
        return self._carry_out(self._plans.last_notes, scopes, count)

    def targets(self) -> Any:
        return self._carry_out(self._plans.targets)

    def roots(self, include_expired: bool, take: Callable[[list[bytes]], object]) -> Any:
        return self._carry_out(self._plans.roots, include_expired, take)

    def beginning(self, prefix: str, limit: int) -> Any:
        return self._carry_out(self._plans.beginning, prefix, limit)

    def misfiled(self, infos: Collection[CheckpointInfo]) -> Any:
        return self._carry_out(self._plans.misfiled, infos)


class PostgresStore(_PostgresMethods, Store):
    """Keeps checkpoints in a schema of a PostgreSQL database, version 14 or newer.

    Safe for many threads, event loops and processes at once, also behind a pooler such as
    PgBouncer that gives out connections by transaction. ``timeout`` is how many seconds the server
    may be silent before an operation fails.
    """

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
        place = ServerAddress(dsn, sql.checked_schema(schema), patience.seconds(timeout))
        self._plans = PostgresWrites(place.name, schema)
        self._size = pool_size
        self._pool = Pool(place, pool_size)
        self._pools = PerLoop(self._pool_for_loop, end=AsyncPool.close, leave=AsyncPool.forget)
        self._listener = Listener(place)
        try:
            self._pool.run(lambda lost: self._plans.open())
        except BaseException:
            self._pool.close()
            raise

    @property
    def name(self) -> str:
        return self._pool.place.name

    def _run(self, operation: Operation[T]) -> T:
        return self._pool.run(operation)

    def wait(self, scope: str, after: int, timeout: float) -> None:
        with self._listener.listening(scope) as woken:
            if not self.notes([scope], after, 1):  # looked at once more, now that nothing is missed
                wait([woken], min(timeout, LONGEST))

    def async_store(self, threads: Threads) -> AsyncStore:
        return _AsyncPostgresStore(self)

    def close(self) -> None:
        self._pool.close()
        for pool in self._pools.take_all():
            pool.close()
        self._listener.close()

    def pool_of_the_loop(self) -> AsyncPool:
        """Return the connections of the running event loop."""
        return self._pools.get()

    def _pool_for_loop(self) -> AsyncPool:
        if self._pool.closed:
            raise StoreClosedError(self.name)
        return AsyncPool(self._pool.place, self._size)


class _AsyncPostgresStore(_PostgresMethods):
    """The same, as event loops ask it."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._plans = store._plans

    def _run(self, operation: Operation[T]) -> Awaitable[T]:
        return self._store.pool_of_the_loop().run(operation)

    async def wait(self, scope: str, after: int, timeout: float) -> None:
        async with self._store._listener.listening_async(scope) as woken:
            if not await self.notes([scope], after, 1):
                await asyncio.wait([woken], timeout=min(timeout, LONGEST))

    def capability(self, kind: type[C]) -> C | None:
        return self if isinstance(self, kind) else None

    def release(self) -> None:
        """Do nothing: the store has all of it, and closes it."""

    async def close(self) -> None:
        self._store.close()
