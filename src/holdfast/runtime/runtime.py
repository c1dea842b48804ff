"""A store, what is remembered of it, and how plans are carried out on it: by calls, or awaited."""

from __future__ import annotations

from functools import partial
from inspect import isawaitable, iscoroutine
from time import sleep
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar, cast, runtime_checkable
from weakref import ReferenceType, ref

from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Ask, Call, Plan, Rest, Step
from holdfast.stores.base import Store
from holdfast.stores.urls import open_store, shareable
from holdfast.system.drive import drive, drive_async
from holdfast.system.threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Runtime:
    """What both runtimes share: the store, its engine, and what is open on it."""

    def __init__(
        self, store: Store, engine: Engine | None = None, *, url: str | None = None
    ) -> None:
        self.store = store
        self.engine = engine or Engine(store)
        self.url = url
        """How other processes open the same store; None if they cannot. It may hold a password."""
        self.closed = False
        self._runs: dict[int, ReferenceType[Any]] = {}
        """Runs that are open; a dict, which can be copied while others open some."""

    @classmethod
    def open(cls, url: str) -> Self:
        """Open the store of a URL."""
        return cls(open_store(url), url=shareable(url))

    def check_open(self) -> None:
        """Refuse to go on after the end."""
        if self.closed:
            raise StoreClosedError(self.store.name)

    def run_opened(self, run: Any) -> None:
        """Remember a run that is open, to let go of its session when the store is closed."""
        self._runs[id(run)] = ref(run)

    def run_ended(self, run: Any) -> None:
        """Forget a run that has ended."""
        self._runs.pop(id(run), None)

    def take_runs(self) -> list[Any]:
        """Return the runs that are open, to who closes the store; nobody else gets them."""
        runs, self._runs = self._runs.copy(), {}
        return [run for known in runs.values() if (run := known()) is not None]


@runtime_checkable
class HasRuntime(Protocol):
    """What works on a store through a runtime: a client."""

    @property
    def runtime(self) -> Runtime:
        """What carries out its plans."""


class SyncRuntime(Runtime):
    """Carries out plans with plain calls, on the calling thread."""

    def run(self, plan: Plan[T]) -> T:
        """Carry out a plan and return its result."""
        self.check_open()
        return drive(plan, self._answer)

    def _answer(self, step: Step) -> Any:
        if isinstance(step, Ask):
            return step.operation(self.store)
        if isinstance(step, Rest):
            return sleep(step.seconds)
        if isinstance(step, Call):
            return _called(step)
        return step.function()

    def close(self) -> None:
        """Let go of all sessions and release the store; closing twice does nothing."""
        if not self.closed:
            for run in self.take_runs():
                run._let_go()
            self.closed = True
            self.store.close()


def _called(step: Call) -> Any:
    answer = step.function(*step.args, **step.kwargs)
    if isawaitable(answer):
        if iscoroutine(answer):
            answer.close()
        raise InvalidArgumentError(
            f"{step.function!r} is async: use Client and `async with client.session(...)`"
        )
    return answer


class AsyncRuntime(Runtime):
    """Carries out plans on any event loop, and blocks none."""

    def __init__(
        self, store: Store, engine: Engine | None = None, *, url: str | None = None
    ) -> None:
        super().__init__(store, engine, url=url)
        self._threads = Threads()
        self._async_store = store.async_store(self._threads)

    def sync(self) -> SyncRuntime:
        """Return a runtime for threads, on the same store and with the same memory."""
        return SyncRuntime(self.store, self.engine, url=self.url)

    async def run(self, plan: Plan[T]) -> T:
        """Carry out a plan and return its result."""
        self.check_open()
        return await drive_async(plan, self._answer)

    async def _answer(self, step: Step) -> Any:
        self.check_open()
        if isinstance(step, Ask):
            return await step.operation(cast(Store, self._async_store))
        if isinstance(step, Rest):
            return await _rest(step.seconds)
        if isinstance(step, Call):
            return await self._call(step)
        return await self._threads.run(step.function)

    async def _call(self, step: Call) -> Any:
        """Await an async function; run another one in a thread, so that it blocks nobody."""
        from inspect import iscoroutinefunction

        if iscoroutinefunction(step.function):
            return await step.function(*step.args, **step.kwargs)
        answer = await self._threads.run(partial(step.function, *step.args, **step.kwargs))
        return await answer if isawaitable(answer) else answer

    async def in_thread(self, function: Callable[[], T]) -> T:
        """Call a function that blocks, in a thread."""
        self.check_open()
        return await self._threads.run(function)  # type: ignore[no-any-return]

    async def close(self) -> None:
        """Let go of all sessions and release the store; closing twice does nothing."""
        import asyncio

        if not self.closed:
            for run in self.take_runs():
                await run._let_go()
            self.closed = True
            await asyncio.to_thread(self._threads.close)
            await self._async_store.close()

    def release(self) -> None:
        """End what is async, where no event loop runs; the store is left open."""
        self.closed = True
        self._threads.close()
        self._async_store.release()


async def _rest(seconds: float) -> None:
    import asyncio

    await asyncio.sleep(seconds)
