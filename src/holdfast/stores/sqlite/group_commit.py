"""Group commit for event loops: one thread that commits what many tasks have queued."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from contextlib import suppress
from typing import Protocol

from holdfast.stores.async_base import AwaitedStore
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.shared.per_loop import PerLoop
from holdfast.stores.sqlite.pending import Pending
from holdfast.system.threads import Threads


class Queue(Protocol):
    """A store with a queue of commits."""

    def submit(self, pending: Pending) -> None: ...

    def flush(self, mine: Pending | None = None) -> list[Pending]: ...

    def close(self) -> None: ...


class Committer:
    """Lets tasks of one event loop await commits, without a thread for each."""

    def __init__(self, store: Queue, loop: asyncio.AbstractEventLoop) -> None:
        self._store = store
        self._loop = loop
        self._work = threading.Event()
        self._closing = False
        self._settled: deque[tuple[Pending, asyncio.Future[None]]] = deque()
        self._woken = False
        self._called = False
        self._thread = threading.Thread(target=self._run, name="holdfast-commit", daemon=True)
        self._thread.start()

    async def commit(self, commit: Commit | NotesOnly) -> None:
        """Return when the commit is durable; raise what it raised."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._store.submit(Pending(commit, lambda pending: self._on_settled(pending, future)))
        if not self._called:
            # Not at once: the tasks that are ready now come first, and are committed together.
            self._called = True
            self._loop.call_soon(self._call)
        await future

    def _call(self) -> None:
        self._called = False
        self._work.set()

    def _on_settled(self, pending: Pending, future: asyncio.Future[None]) -> None:
        self._settled.append((pending, future))
        if not self._woken:  # one call wakes the loop for a whole batch
            self._woken = True
            with suppress(RuntimeError):  # the loop was closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._resolve)

    def _resolve(self) -> None:
        self._woken = False
        while self._settled:
            pending, future = self._settled.popleft()
            if future.done():
                continue
            if pending.error is None:
                future.set_result(None)
            else:
                future.set_exception(pending.error)

    def _run(self) -> None:
        while True:
            self._work.wait()
            self._work.clear()
            closing = self._closing  # before the flush, which then takes all that was queued
            self._store.flush()
            if closing:
                return

    def stop(self) -> None:
        """Commit what is queued and end, in its own time."""
        self._closing = True
        self._work.set()

    def close(self) -> None:
        """Commit what is queued and end; returns when it has."""
        self.stop()
        self._thread.join()


class AsyncSqliteStore(AwaitedStore):
    """An SQLite store as event loops ask it: it reads in threads, and writes together."""

    def __init__(self, store: Queue, threads: Threads) -> None:
        super().__init__(store, threads.run)
        self._committers = PerLoop(
            lambda: Committer(store, asyncio.get_running_loop()), end=Committer.stop
        )

    async def commit(self, commit: Commit | NotesOnly) -> None:
        """Return when the commit is durable; raise what it raised."""
        await self._committers.get().commit(commit)

    async def close(self) -> None:
        """Commit what is queued, and close the store."""
        await asyncio.to_thread(self.release)
        await super().close()

    def release(self) -> None:
        """Commit what is queued, and end the threads that do."""
        for committer in self._committers.take_all():
            committer.close()
