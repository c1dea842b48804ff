"""The async side of a store as a sync store, so that one suite proves both."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

from holdfast.stores.base import Store
from holdfast.stores.capabilities import TellsChanges
from holdfast.stores.wrapper import WrappedStore
from holdfast.system.threads import Threads


class LoopThread:
    """An event loop that runs in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            self._stop = asyncio.Event()
            runner.run(self._stop.wait())

    def run(self, work: Callable[[], Any]) -> Any:
        """Return what an awaitable gives that is begun on the loop."""

        async def awaited() -> Any:
            return await work()

        return asyncio.run_coroutine_threadsafe(awaited(), self._loop).result()

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()


class AsyncFace(WrappedStore):
    """A store whose methods are answered on an event loop, its own unless one is given."""

    def __init__(self, store: Store, loop: LoopThread | None = None) -> None:
        super().__init__(store)
        self._own = None if loop else LoopThread()
        self._loop = loop or self._own
        self._async = store.async_store(Threads())

    def __getattribute__(self, name: str) -> Any:
        if name in ASKED:
            return self._asked(self._async, name)
        return super().__getattribute__(name)

    def _asked(self, asked: Any, name: str) -> Any:
        method, loop = getattr(asked, name), self._loop
        assert loop is not None
        return lambda *args, **named: loop.run(lambda: method(*args, **named))

    def capability(self, kind: type[Any]) -> Any:
        if kind is TellsChanges:  # which is told without waiting
            return self.inner.capability(kind)
        found = self._async.capability(kind)
        return None if found is None else _Asked(self, found)

    def end(self) -> None:
        self.close()
        if self._own is not None:
            self._own.close()


class _Asked:
    def __init__(self, face: AsyncFace, found: Any) -> None:
        self._face = face
        self._found = found

    def __getattr__(self, name: str) -> Any:
        return self._face._asked(self._found, name)


ASKED = {
    *("commit", "load", "fetch", "notes", "match", "query", "heads"),
    *("delete", "sweep", "collect", "stats", "close"),
}


def on_loops(open_store: Callable[[], Store]) -> Iterator[Callable[[], Store]]:
    """Give what opens stores that are asked on event loops, and end them all."""
    opened: list[AsyncFace] = []

    def open_on_loop() -> Store:
        opened.append(AsyncFace(open_store()))
        return opened[-1]

    yield open_on_loop
    for store in opened:
        store.end()
