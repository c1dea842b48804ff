"""The run of async programs."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.errors import HoldfastError, StoreClosedError, StoreError
from holdfast.model import CheckpointInfo
from holdfast.runtime import AsyncRuntime
from holdfast.session import branch, calls, rollback
from holdfast.session.branch import Adoptable
from holdfast.session.effects import Effect, Kind
from holdfast.session.files import Files
from holdfast.session.opening import open_session
from holdfast.session.options import SessionOptions
from holdfast.session.rollback import RolledBack
from holdfast.session.run_base import (
    RunBase,
    TaskBase,
    TasksBase,
    UnknownEffectBase,
    split_tool_arguments,
)
from holdfast.verbs.read import find


class AsyncRun(RunBase):
    """A session that is being worked on: state, tasks, calls and files, kept as it goes.

    ``async with client.session("coder", session_id="fix-42") as run:``; see Run.
    """

    _runtime: AsyncRuntime

    def __init__(self, runtime: AsyncRuntime, options: SessionOptions, files: Files | None) -> None:
        super().__init__(runtime, options, files)
        self._forks: list[AsyncRun] = []
        self._beat: asyncio.Task[None] | None = None

    @staticmethod
    def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that blocks nobody: if it is not async, it runs in a thread.

        Not in one of the client's, which are few and needed to hold on to the session meanwhile.
        """
        if inspect.iscoroutinefunction(function):
            return function

        async def called(*args: Any, **kwargs: Any) -> Any:
            answer = await asyncio.to_thread(function, *args, **kwargs)
            return await answer if inspect.isawaitable(answer) else answer

        return called

    async def __aenter__(self) -> Self:
        if not self._is_open:
            await self._open()
        return self

    async def _open(self) -> None:
        self._session = self._session.anew()
        try:
            await self._runtime.run(open_session(self._session))
        except BaseException:
            await self._runtime.run(self._session.checkpointer.release())
            raise
        self._is_open = True
        self._runtime.run_opened(self)
        self._beat = asyncio.create_task(self._keep_alive())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close(error)

    async def close(self) -> None:
        """Save where the run stands and let go of the session; a second call does nothing."""
        await self._close(None)

    async def _close(self, error: BaseException | None) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._runtime.run_ended(self)
        cut_off = None if isinstance(error, Exception) else error
        async with contextlib.AsyncExitStack() as last_first:
            last_first.push_async_callback(self._end, error)
            for fork in self._forks:
                last_first.push_async_callback(fork._close, cut_off)

    async def _end(self, error: BaseException | None) -> None:
        while self._beat is not None and not self._beat.done():
            self._beat.cancel()  # again: a server's client may take it for a timeout of its own
            await asyncio.wait([self._beat], timeout=1)
        try:
            await self._runtime.run(self._session.finish(error))
        finally:
            await self._runtime.run(self._session.checkpointer.release())

    async def _let_go(self) -> None:
        """Let others open the session, as the client is being closed: nothing more is saved."""
        if self._beat is not None:
            self._beat.cancel()
        with contextlib.suppress(StoreError):  # then it is free when this process has ended
            await self._runtime.run(self._session.checkpointer.let_go())

    async def _keep_alive(self) -> None:
        """Hold on to the session while it is worked on, however long a call takes."""
        while self._is_open:
            await asyncio.sleep(self._session.options.lease_seconds / 4)
            try:
                await self._runtime.run(self._session.checkpointer.keep_lease())
            except StoreClosedError:
                return
            except HoldfastError:  # the next write says so, if it is still so
                continue

    @property
    def tasks(self) -> AsyncTasks:
        """The plan of the run."""
        _ = self._opened
        return AsyncTasks(self, None)

    async def checkpoint(self, name: str | None = None, **tags: Any) -> str:
        """Keep state, tasks, calls and files as the next checkpoint; returns its id.

        A resumed program goes on from here: it does not make again what was called before in the
        same task (or, outside of tasks, in the session), so the state has to say how far it came.
        """
        return await self._runtime.run(self._session.checkpoint(name, tags))

    async def call(
        self,
        function: Callable[..., Any],
        /,
        *args: Any,
        effect: Kind = "local",
        compensate: Callable[..., Any] | None = None,
        key: str | None = None,
        again: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Call a tool, journaled before and after; on resume its recorded output comes back.

        ``effect`` says what it does to the world: "read", "local" (undone with state and files),
        "reversible" (``compensate(output, *args)`` undoes it) or "irreversible". ``key`` tells the
        call apart from others like it, and makes it once in the session. A call that cannot be
        undone and was made on a way that was rolled back is not made again, unless ``again``.
        A tool that takes one of these names itself gets it by ``functools.partial(tool, key=…)``.
        """
        return await self._runtime.run(
            calls.call(self._session, function, args, kwargs, effect, compensate, key, again)
        )

    async def _call_of_model(
        self,
        function: Callable[..., Any],
        effect: Kind,
        compensate: Callable[..., Any] | None,
        call_id: str,
    ) -> Any:
        """Call a tool for a model, whose id of the call is its key: for adapters."""
        return await self._runtime.run(
            calls.call(
                self._session, function, (), {}, effect, compensate, call_id, False, is_models=True
            )
        )

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        *,
        effect: Kind = "local",
        compensate: Callable[..., Any] | None = None,
    ) -> Any:
        """Make a function a tool of this run: calling it is ``run.call``.

        ``key=`` and ``again=`` are those of the call, unless the function takes them itself.
        """

        def make(function: Callable[..., Any]) -> Callable[..., Any]:
            self._session.functions.give(function)
            self._session.functions.give(compensate)

            @wraps(function)
            async def tool(*args: Any, **kwargs: Any) -> Any:
                called, ours = split_tool_arguments(function, kwargs)
                return await self.call(called, *args, effect=effect, compensate=compensate, **ours)

            return tool

        return make if function is None else make(function)

    @property
    def effects(self) -> list[Effect]:
        """All calls of this run so far, the oldest first.

        Where there are hundreds, ``load_effects()`` has to read the old ones first.
        """
        return self._opened.history.every_call_at_hand()

    async def load_effects(self) -> list[Effect]:
        """Return the same, and read from the store what is not at hand; it is from then on."""
        await self._runtime.run(self._opened.history.load_older())
        return self.effects

    def unknown_effects(self) -> list[AsyncUnknownEffect]:
        """Return calls that were begun and of whose end nothing is known, to be decided."""
        return [AsyncUnknownEffect(self, effect) for effect in self._opened.history.unknown()]

    async def rollback(
        self,
        to: str | None = None,
        steps: int = 1,
        scope: Collection[str] = ("state", "files"),
        *,
        accept_irreversible: bool = False,
    ) -> RolledBack:
        """Go back to a checkpoint, by its id, its name, or so many steps.

        Effects since are undone by their compensations, the newest first. It refuses to go past
        what cannot be undone, unless you accept that it stays done. ``undo`` leads back.
        """
        return await self._runtime.run(
            rollback.rollback(self._session, to, steps, scope, accept_irreversible)
        )

    async def undo(self, *, accept_irreversible: bool = False) -> RolledBack:
        """Go to where the last rollback was begun; undone once more, back again.

        What was called since is undone as by a rollback; what that one compensated stays undone.
        """
        return await self._runtime.run(rollback.undo(self._session, accept_irreversible))

    async def fork(
        self,
        n: int = 1,
        names: Sequence[str] | None = None,
        *,
        paths: Sequence[str | Path] | None = None,
    ) -> list[AsyncRun]:
        """Return runs that begin where this one stands, each with a session and files of its own.

        Copies of the workspace are made beside it, or at ``paths``. They are closed with this run.
        """
        runs = []
        for fork in await self._runtime.run(branch.fork(self._session, n, names, paths)):
            run = AsyncRun(self._runtime, fork.options, fork.files)
            run._session.functions = self._session.functions
            await run._open()
            self._forks.append(run)
            runs.append(run)
        return runs

    async def adopt(self, other: AsyncRun | Adoptable) -> str:
        """Go on from where another run stands, with its state and files; returns the new head.

        ``other`` is a run (it is closed first), the name of a session, a checkpoint or its id, or
        the winner of an exploration.
        """
        if isinstance(other, AsyncRun):
            await other._close(None)
            other = other.session_id
        return await self._runtime.run(branch.adopt(self._session, other))

    async def history(self, limit: int | None = 50) -> list[CheckpointInfo]:
        """Return the checkpoints of the session, the newest first."""
        return await self._runtime.run(
            find(agent_id=self.agent_id, session_id=self.session_id, limit=limit)
        )


class AsyncUnknownEffect(UnknownEffectBase):
    """A call of unknown end, and the three things that can be decided of it."""

    _run: AsyncRun

    async def retry(self) -> None:
        """Have it made again, under the same idempotency key."""
        await self._run._runtime.run(self._retry())

    async def mark_done(self, output: Any = None) -> None:
        """Say that it took place, and what it gave."""
        await self._run._runtime.run(self._mark_done(output))

    async def mark_failed(self, error: Exception | str) -> None:
        """Say that it did not take place; the program gets the error."""
        await self._run._runtime.run(self._mark_failed(error))


class AsyncTask(TaskBase):
    """A step of the plan; ``async with task:`` begins it and ends it, with a checkpoint each."""

    _run: AsyncRun

    async def __aenter__(self) -> Self:
        await self._run._runtime.run(self._run._session.begin_task(self._record))
        self._run._show_progress()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        again = await self._run._runtime.run(self._run._session.end_task(self._record, error))
        self._run._show_progress()
        return again and self._is_retried

    async def skip(self, reason: str) -> None:
        """Leave it out, and say why."""
        await self._run._runtime.run(self._run._session.skip_task(self._record, reason))

    def plan(self, *tasks: str | Mapping[str, Any]) -> AsyncTasks:
        """Divide it into parts."""
        return AsyncTasks(self._run, self.id).plan(*tasks)

    @property
    def tasks(self) -> AsyncTasks:
        """Its parts."""
        return AsyncTasks(self._run, self.id)


class AsyncTasks(TasksBase[AsyncTask]):
    """The tasks of a run, or the parts of one task."""

    _task = AsyncTask
