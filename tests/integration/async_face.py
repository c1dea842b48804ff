"""The async face of a store as a sync one, so that one suite proves both."""

import asyncio
import inspect
import threading
from typing import Any, Self

from holdfast.stores.base import Store

AT_ONCE = ("tick", "removals")
"""What a store tells without waiting, on any thread."""


class AsyncFace:
    """A store whose methods are answered on an event loop of its own."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.store, name)
        return self._answered(name) if callable(method) and name not in AT_ONCE else method

    def _answered(self, method: str) -> Any:
        signature = inspect.signature(getattr(self.store, method))

        def ask(*args: Any, **named: Any) -> Any:
            bound = signature.bind(*args, **named)
            bound.apply_defaults()
            return self._wait_for(self.store.answer(method, bound.args))

        return ask

    def _wait_for(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def close(self) -> None:
        self._wait_for(self.store.aclose())

    def end(self) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()
