"""Threads for what blocks, so that an event loop need not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from holdfast.system import forks

if TYPE_CHECKING:
    from asyncio import Future
    from concurrent.futures import ThreadPoolExecutor

_COUNT = 4


class Threads:
    """A few threads, started when they are first needed; a forked child starts its own."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        forks.watch(self)

    def _before_fork(self) -> None:
        pass

    def _after_fork(self, in_child: bool) -> None:
        if in_child:  # threads are not copied
            self._pool = None

    def start(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Call a function in a thread, and return what the running loop can await."""
        import asyncio

        if self._pool is None:
            from concurrent.futures import ThreadPoolExecutor

            self._pool = ThreadPoolExecutor(_COUNT, thread_name_prefix="holdfast")
        return asyncio.get_running_loop().run_in_executor(self._pool, function, *args)

    async def run(self, function: Callable[..., Any], *args: Any) -> Any:
        """Call a function in a thread, and return what it returns."""
        return await self.start(function, *args)

    def close(self) -> None:
        """End all threads, when what they do is done."""
        if self._pool is not None:
            self._pool.shutdown()
