"""Being woken: one connection of the process, on which NOTIFY tells of new notes.

A thread reads it and wakes those who wait, threads and tasks of event loops alike. It is started
for the first of them and ends when nobody has waited for a while. The truth is in the table, which
is looked at before and after. A pooler that gives out connections by transaction takes LISTEN and
tells nothing; so nobody waits longer than a few seconds at once.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import selectors
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg

from holdfast.errors import StoreClosedError
from holdfast.stores.postgres.connection import ServerAddress, abandon, leave_to_parent
from holdfast.stores.postgres.errors import NoAnswer
from holdfast.stores.postgres.rows import key_of
from holdfast.system.forks import Locked

logger = logging.getLogger("holdfast")

LONGEST = 2.0
"""Seconds that anybody waits without looking."""
_KEPT = 10.0
"""Seconds for which the connection is kept though nobody waits."""
_LISTEN = "LISTEN holdfast_notes"
_FAILURES = (psycopg.Error, OSError)


class Listener(Locked):
    """Wakes those of a process who wait for notes of a store."""

    def __init__(self, place: ServerAddress) -> None:
        super().__init__()
        self._place = place
        self._closed = False
        self._ear: _Ear | None = None
        self._waiting: dict[str, set[Future[None]]] = {}

    def _after_fork(self, in_child: bool) -> None:
        super()._after_fork(in_child)
        if in_child:
            ear, self._ear, self._waiting = self._ear, None, {}
            if ear is not None:
                ear.leave_to_parent()

    @contextmanager
    def listening(self, scope: str) -> Iterator[Future[None]]:
        """Give what is done when the scope may have a new note, from here on."""
        told_as, woken, ear = self._enter(scope)
        try:
            try:
                ear.is_ready.result(self._place.timeout)
            except TimeoutError:
                raise self._place.translated(NoAnswer("no answer")) from None
            except _FAILURES as error:
                raise self._place.translated(error) from error
            yield woken
        finally:
            self._leave(told_as, woken)

    @asynccontextmanager
    async def listening_async(self, scope: str) -> AsyncIterator[asyncio.Future[None]]:
        """See listening."""
        told_as, woken, ear = self._enter(scope)
        try:
            try:  # the others wait for it too, whoever gives up
                is_ready = asyncio.shield(asyncio.wrap_future(ear.is_ready))
                await asyncio.wait_for(is_ready, self._place.timeout)
            except TimeoutError:
                raise self._place.translated(NoAnswer("no answer")) from None
            except _FAILURES as error:
                raise self._place.translated(error) from error
            yield asyncio.wrap_future(woken)
        finally:
            self._leave(told_as, woken)

    def _enter(self, scope: str) -> tuple[str, Future[None], _Ear]:
        told_as = hashlib.sha256(key_of(scope)).hexdigest()
        woken: Future[None] = Future()
        with self._lock:
            if self._closed:
                raise StoreClosedError(self._place.name)
            if self._ear is None:
                self._ear = _Ear(self, self._place)
            self._waiting.setdefault(told_as, set()).add(woken)
            return told_as, woken, self._ear

    def _leave(self, told_as: str, woken: Future[None]) -> None:
        with self._lock:
            others = self._waiting.get(told_as, set())
            others.discard(woken)
            if not others:
                self._waiting.pop(told_as, None)

    def wake(self, told_as: str) -> None:
        """Wake those who wait for a scope, given its hash; all of them, if none is given."""
        with self._lock:
            names = [told_as] if told_as else list(self._waiting)
            found = [woken for name in names for woken in self._waiting.pop(name, ())]
        for woken in found:
            if woken.set_running_or_notify_cancel():
                woken.set_result(None)

    def has_ended(self, ear: _Ear) -> None:
        """Have the next who waits listen anew, and all others look for themselves."""
        with self._lock:
            if self._ear is ear:
                self._ear = None
        self.wake("")

    def may_end(self, ear: _Ear) -> bool:
        """Return whether nobody waits; then nobody will hear anything from this one."""
        with self._lock:
            if self._waiting:
                return False
            if self._ear is ear:
                self._ear = None
            return True

    def close(self) -> None:
        """Wake all who wait, and listen no more."""
        with self._lock:
            self._closed = True
            if self._ear is not None:
                self._ear.end()


class _Ear:
    """A connection that listens, and the thread that reads it."""

    def __init__(self, listener: Listener, place: ServerAddress) -> None:
        self._listener = listener
        self._place = place
        self._connection: psycopg.Connection[Any] | None = None
        self._bell, self._rung = socket.socketpair()
        self.is_ready: Future[None] = Future()
        threading.Thread(target=self._run, name="holdfast-listener", daemon=True).start()

    def end(self) -> None:
        """Have it end soon."""
        self._bell.send(b"\0")

    def leave_to_parent(self) -> None:
        """Let go of what is the parent's, in a forked child."""
        self._bell.close()
        self._rung.close()
        if self._connection is not None:
            leave_to_parent(self._connection)

    def _run(self) -> None:
        try:
            connection = psycopg.Connection.connect(**self._place.options)
            self._connection = connection
            connection.execute(_LISTEN)
        except _FAILURES as error:
            self._listener.has_ended(self)
            self.is_ready.set_exception(error)
        else:
            self.is_ready.set_result(None)
            try:
                self._listen(connection)
            except _FAILURES as error:
                logger.warning(
                    "%s: the connection that tells of new notes was lost; who waits opens another "
                    "(%s)",
                    self._place.name,
                    self._place.translated(error),
                )
            self._listener.has_ended(self)
        finally:
            if self._connection is not None:
                abandon(self._connection)
            self._bell.close()
            self._rung.close()

    def _listen(self, connection: psycopg.Connection[Any]) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(self._rung, selectors.EVENT_READ)
            selector.register(connection.fileno(), selectors.EVENT_READ)
            while True:
                ready = [key.fileobj for key, _ in selector.select(_KEPT)]
                if self._rung in ready or (not ready and self._listener.may_end(self)):
                    return
                if ready:
                    connection.pgconn.consume_input()
                while told := connection.pgconn.notifies():
                    self._listener.wake(told.extra.decode())
