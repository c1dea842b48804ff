"""Being woken: connections on which those wait who follow a name, told by NOTIFY of new notes.

The truth is in the table, which is looked at before and after. A pooler that gives out connections
by transaction takes LISTEN and tells nothing; so nobody waits longer than a few seconds at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import psycopg

from holdfast.errors import StoreClosedError
from holdfast.stores.postgres.connection import (
    AnyConnection,
    ServerAddress,
    abandon,
    leave_to_parent,
)
from holdfast.stores.shared.per_loop import PerLoop
from holdfast.system.forks import Locked

_LONGEST = 2.0
_KEPT = 4
_LISTEN, _UNLISTEN = "LISTEN holdfast_notes", "UNLISTEN *"
_FAILURES = (psycopg.Error, OSError)


class Listeners(Locked):
    """Connections that listen, of threads and of event loops; a few are kept for the next time."""

    def __init__(self, place: ServerAddress) -> None:
        super().__init__()
        self._place = place
        self._closed = False
        self._idle: list[psycopg.Connection[Any]] = []
        self._of_loops: PerLoop[list[psycopg.AsyncConnection[Any]]] = PerLoop(
            list, end=_abandon_all, leave=_leave_all_to_parent
        )

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            idle, self._idle = self._idle, []
            _leave_all_to_parent(idle)

    def listen(self) -> psycopg.Connection[Any]:
        """Return a connection that is told from now on; give it to ``rest``."""
        connection: psycopg.Connection[Any] | None = _taken(self._idle)
        try:
            if connection is None:
                self._check()
                connection = psycopg.Connection.connect(**self._place.options)
            connection.execute(_LISTEN)
            return connection
        except _FAILURES as error:
            raise self._place.translated(error) from error

    def rest(self, connection: psycopg.Connection[Any], seconds: float) -> None:
        """Wait until it is told something, or so long."""
        try:
            if seconds > 0:
                for _ in connection.notifies(timeout=min(seconds, _LONGEST), stop_after=1):
                    pass
            connection.execute(_UNLISTEN)
        except _FAILURES as error:
            abandon(connection)
            raise self._place.translated(error) from error
        with self._lock:
            if not self._closed and len(self._idle) < _KEPT:
                self._idle.append(connection)
                return
        abandon(connection)

    async def listen_async(self) -> psycopg.AsyncConnection[Any]:
        """See listen."""
        connection: psycopg.AsyncConnection[Any] | None = _taken(self._of_loops.get())
        try:
            if connection is None:
                self._check()
                connection = await psycopg.AsyncConnection.connect(**self._place.options)
            await connection.execute(_LISTEN)
            return connection
        except _FAILURES as error:
            raise self._place.translated(error) from error

    async def rest_async(self, connection: psycopg.AsyncConnection[Any], seconds: float) -> None:
        """See rest."""
        try:
            if seconds > 0:
                async for _ in connection.notifies(timeout=min(seconds, _LONGEST), stop_after=1):
                    pass
            await connection.execute(_UNLISTEN)
        except _FAILURES as error:
            abandon(connection)
            raise self._place.translated(error) from error
        except BaseException:  # cancelled: what is under way on it is anyone's guess
            abandon(connection)
            raise
        kept = self._of_loops.get()
        if not self._closed and len(kept) < _KEPT:
            kept.append(connection)
        else:
            abandon(connection)

    def _check(self) -> None:
        if self._closed:
            raise StoreClosedError(self._place.name)

    def close(self) -> None:
        """Close those that are kept."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        _abandon_all(idle)
        for kept in self._of_loops.take_all():
            _abandon_all(kept)


def _abandon_all(connections: Iterable[AnyConnection]) -> None:
    for connection in connections:
        abandon(connection)


def _leave_all_to_parent(connections: Iterable[AnyConnection]) -> None:
    for connection in connections:
        leave_to_parent(connection)


def _taken(idle: list[Any]) -> Any:
    while idle:
        connection = idle.pop()
        if not connection.closed:
            return connection
    return None
