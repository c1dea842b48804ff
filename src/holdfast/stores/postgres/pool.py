"""Connections that are shared: by threads, or by the tasks of one event loop.

The pools are our own and small: they have no threads and no tasks, so that a fork or the end of an
event loop leaves nothing half alive, and whoever asks for a connection gets the server's own words
when there is none to be had.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

import psycopg
from psycopg import pq, waiting

from holdfast.errors import StoreClosedError, StoreConnectionError
from holdfast.stores.postgres.connection import (
    ServerAddress,
    abandon,
    exchange,
    leave_to_parent,
)
from holdfast.stores.postgres.errors import (
    CannotConnect,
    NoAnswer,
    is_conflict,
    is_cut,
    is_failure,
)
from holdfast.stores.postgres.reads import Operation, Statement
from holdfast.stores.shared.retry import Attempts, Rule, retry, retry_async
from holdfast.system import forks
from holdfast.system.drive import drive, drive_async

T = TypeVar("T")

_IDLE = pq.TransactionStatus.IDLE
_GLANCE = 0.1
"""Seconds between looks at whether a silent server has been so for too long."""
_ATTEMPTS = 6
_LONGEST_WAIT = 0.05


@contextmanager
def _connecting() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, OSError) as error:
        raise CannotConnect(str(error)) from error


class _Connections:
    """What both pools have: connections that are idle, newest last, and all there are."""

    def __init__(self, place: ServerAddress) -> None:
        self.place = place
        self.closed = False
        self._idle: list[Any] = []
        self._all: WeakSet[Any] = WeakSet()
        self._in_the_way = Rule(
            lambda error: not self.closed and is_conflict(error),
            attempts=_ATTEMPTS,
            shortest=_LONGEST_WAIT,
            longest=_LONGEST_WAIT,
        )
        self._lost = Rule(lambda error: not self.closed and is_cut(error), attempts=2)

    def _attempts(self) -> Attempts:
        return Attempts((self._in_the_way, self._lost), self._explained)

    def _explained(self, error: Exception) -> Exception:
        if not is_failure(error):
            return error
        return StoreClosedError(self.place.name) if self.closed else self.place.translated(error)

    def _begin_after(self, attempts: Attempts) -> bool:
        """Return whether an attempt before lost its connection: then nobody knows what it did."""
        if not attempts.has_met(self._lost):
            return False
        self.drop_idle()
        return True

    def _taken(self) -> Any:
        """Return an idle connection, or None."""
        if self.closed:
            raise StoreClosedError(self.place.name)
        while self._idle:
            connection = self._idle.pop()
            if not connection.closed:
                return connection
        return None

    def _put_back(self, connection: Any) -> None:
        if self.closed or connection.pgconn.transaction_status != _IDLE:
            abandon(connection)
        else:
            self._idle.append(connection)

    def drop_idle(self) -> None:
        """Close those that wait: they were opened before one that turned out to be lost."""
        while self._idle:
            abandon(self._idle.pop())

    def close(self) -> None:
        """Close those that wait; those in use are closed when they come back."""
        self.closed = True
        self.drop_idle()

    def forget(self) -> None:
        """Leave every connection to the parent, in a forked child."""
        for connection in list(self._all):
            leave_to_parent(connection)
        self._all.clear()
        self._idle.clear()

    def _none_free(self) -> StoreConnectionError:
        return StoreConnectionError(
            f"{self.place.name}: no connection was free for {self.place.timeout:g} s; "
            "raise pool_size"
        )


class Pool(_Connections):
    """Connections for threads."""

    def __init__(self, place: ServerAddress, size: int) -> None:
        super().__init__(place)
        self._size = size
        self._free = threading.BoundedSemaphore(size)
        forks.watch(self)

    def _before_fork(self) -> None:
        pass

    def _after_fork(self, in_child: bool) -> None:
        if in_child:
            self.forget()

    def forget(self) -> None:
        super().forget()
        self._free = threading.BoundedSemaphore(self._size)

    @contextmanager
    def _connection(self) -> Iterator[psycopg.Connection[Any]]:
        free = self._free
        if not free.acquire(timeout=self.place.timeout):
            raise self._none_free()
        try:
            connection = self._taken()
            if connection is None:
                with _connecting():
                    connection = psycopg.Connection.connect(**self.place.options)
                self._all.add(connection)
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            free.release()

    def run(self, operation: Operation[T]) -> T:
        """Carry out an operation in this thread, anew where that helps."""
        attempts = self._attempts()

        def attempt() -> T:
            lost = self._begin_after(attempts)
            with self._connection() as connection:
                return drive(operation(lost), partial(self._execute, connection))

        return retry(attempts, attempt)

    def _execute(self, connection: psycopg.Connection[Any], statement: Statement) -> list[Any]:
        work = exchange(connection, statement, self.place.timeout)
        try:
            return waiting.wait(work, connection.pgconn.socket, interval=_GLANCE)
        except (NoAnswer, KeyboardInterrupt):
            abandon(connection)
            raise


class AsyncPool(_Connections):
    """Connections for the tasks of one event loop."""

    def __init__(self, place: ServerAddress, size: int) -> None:
        super().__init__(place)
        self._free = asyncio.Semaphore(size)

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
        try:
            async with asyncio.timeout(self.place.timeout):
                await self._free.acquire()
        except TimeoutError:
            raise self._none_free() from None
        try:
            connection = self._taken()
            if connection is None:
                with _connecting():
                    connection = await psycopg.AsyncConnection.connect(**self.place.options)
                self._all.add(connection)
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    async def run(self, operation: Operation[T]) -> T:
        """Carry out an operation on the running loop, anew where that helps."""
        attempts = self._attempts()

        async def attempt() -> T:
            lost = self._begin_after(attempts)
            async with self._connection() as connection:
                return await drive_async(operation(lost), partial(self._execute, connection))

        return await retry_async(attempts, attempt)

    async def _execute(
        self, connection: psycopg.AsyncConnection[Any], statement: Statement
    ) -> list[Any]:
        work = exchange(connection, statement, self.place.timeout)
        try:
            return await waiting.wait_async(work, connection.pgconn.socket, interval=_GLANCE)
        except (NoAnswer, asyncio.CancelledError):
            abandon(connection)  # rather than wait for a server that may be silent
            raise
