"""The run of plain programs."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import wraps
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from holdfast.errors import HoldfastError, StoreClosedError, StoreError
from holdfast.model import CheckpointInfo
from holdfast.runtime import SyncRuntime
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


class Run(RunBase):
    """A session that is being worked on: state, tasks, calls and files, kept as it goes.

    >>> from holdfast import SyncClient
    >>> with SyncClient.memory() as client:
    ...     with client.session("coder", session_id="fix-42") as run:
    ...         for task in run.tasks.plan("reproduce", "fix").remaining():
    ...             with task:
    ...                 run.state[task.name] = run.call(len, "what a tool returns")
    ...     print(client.latest("coder", "fix-42").execution_state)
    {'reproduce': 19, 'fix': 19}
    """

    _runtime: SyncRuntime

    def __init__(self, runtime: SyncRuntime, options: SessionOptions, files: Files | None) -> None:
        super().__init__(runtime, options, files)
        self._forks: list[Run] = []
        self._over = threading.Event()
        self._beat: threading.Thread | None = None

    def __enter__(self) -> Self:
        if not self._is_open:
            self._open()
        return self

    def _open(self) -> None:
        self._session = self._session.anew()
        self._over.clear()
        try:
            self._runtime.run(open_session(self._session))
        except BaseException:
            self._runtime.run(self._session.checkpointer.release())
            raise
        self._is_open = True
        self._runtime.run_opened(self)
        self._beat = threading.Thread(target=self._keep_alive, name="holdfast-lease", daemon=True)
        self._beat.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close(error)

    def close(self) -> None:
        """Save where the run stands and let go of the session; a second call does nothing."""
        self._close(None)

    def _close(self, error: BaseException | None) -> None:
        if not self._is_open:
            return
        self._is_open = False
        self._runtime.run_ended(self)
        cut_off = None if isinstance(error, Exception) else error
        with contextlib.ExitStack() as last_first:
            last_first.callback(self._end, error)
            for fork in self._forks:
                last_first.callback(fork._close, cut_off)

    def _end(self, error: BaseException | None) -> None:
        self._over.set()
        if self._beat is not None:
            self._beat.join()
        try:
            self._runtime.run(self._session.finish(error))
        finally:
            self._runtime.run(self._session.checkpointer.release())

    def _let_go(self) -> None:
        """Let others open the session, as the client is being closed: nothing more is saved."""
        self._over.set()
        with contextlib.suppress(StoreError):  # then it is free when this process has ended
            self._runtime.run(self._session.checkpointer.let_go())

    def _keep_alive(self) -> None:
        """Hold on to the session while it is worked on, however long a call takes."""
        while not self._over.wait(self._session.options.lease_seconds / 4):
            try:
                self._runtime.run(self._session.checkpointer.keep_lease())
            except StoreClosedError:
                return
            except HoldfastError:  # the next write says so, if it is still so
                continue

    @property
    def tasks(self) -> Tasks:
        """The plan of the run."""
        _ = self._opened
        return Tasks(self, None)

    def checkpoint(self, name: str | None = None, **tags: Any) -> str:
        """Keep state, tasks, calls and files as the next checkpoint; returns its id.

        A resumed program goes on from here: it does not make again what was called before in the
        same task (or, outside of tasks, in the session), so the state has to say how far it came.
        """
        return self._runtime.run(self._session.checkpoint(name, tags))

    def call(
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
        return self._runtime.run(
            calls.call(self._session, function, args, kwargs, effect, compensate, key, again)
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
            def tool(*args: Any, **kwargs: Any) -> Any:
                called, ours = split_tool_arguments(function, kwargs)
                return self.call(called, *args, effect=effect, compensate=compensate, **ours)

            return tool

        return make if function is None else make(function)

    @property
    def effects(self) -> list[Effect]:
        """All calls of this run so far, the oldest first; old ones are read from the store."""
        return self._runtime.run(self._opened.history.every_call())

    def unknown_effects(self) -> list[UnknownEffect]:
        """Return calls that were begun and of whose end nothing is known, to be decided."""
        return [UnknownEffect(self, effect) for effect in self._opened.history.unknown()]

    def rollback(
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
        return self._runtime.run(
            rollback.rollback(self._session, to, steps, scope, accept_irreversible)
        )

    def undo(self, *, accept_irreversible: bool = False) -> RolledBack:
        """Go to where the last rollback was begun; undone once more, back again.

        What was called since is undone as by a rollback; what that one compensated stays undone.
        """
        return self._runtime.run(rollback.undo(self._session, accept_irreversible))

    def fork(
        self,
        n: int = 1,
        names: Sequence[str] | None = None,
        *,
        paths: Sequence[str | Path] | None = None,
    ) -> list[Run]:
        """Return runs that begin where this one stands, each with a session and files of its own.

        Copies of the workspace are made beside it, or at ``paths``. They are closed with this run.
        """
        runs = []
        for fork in self._runtime.run(branch.fork(self._session, n, names, paths)):
            run = Run(self._runtime, fork.options, fork.files)
            run._session.functions = self._session.functions
            run._open()
            self._forks.append(run)
            runs.append(run)
        return runs

    def adopt(self, other: Run | Adoptable) -> str:
        """Go on from where another run stands, with its state and files; returns the new head.

        ``other`` is a run (it is closed first), the name of a session, a checkpoint or its id, or
        the winner of an exploration.
        """
        if isinstance(other, Run):
            other._close(None)
            other = other.session_id
        return self._runtime.run(branch.adopt(self._session, other))

    def history(self, limit: int | None = 50) -> list[CheckpointInfo]:
        """Return the checkpoints of the session, the newest first."""
        return self._runtime.run(
            find(agent_id=self.agent_id, session_id=self.session_id, limit=limit)
        )


class UnknownEffect(UnknownEffectBase):
    """A call of unknown end, and the three things that can be decided of it."""

    _run: Run

    def retry(self) -> None:
        """Have it made again, under the same idempotency key."""
        self._run._runtime.run(self._retry())

    def mark_done(self, output: Any = None) -> None:
        """Say that it took place, and what it gave."""
        self._run._runtime.run(self._mark_done(output))

    def mark_failed(self, error: Exception | str) -> None:
        """Say that it did not take place; the program gets the error."""
        self._run._runtime.run(self._mark_failed(error))


class Task(TaskBase):
    """A step of the plan; ``with task:`` begins it and ends it, with a checkpoint each."""

    _run: Run

    def __enter__(self) -> Self:
        self._run._runtime.run(self._run._session.begin_task(self._record))
        self._run._show_progress()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        again = self._run._runtime.run(self._run._session.end_task(self._record, error))
        self._run._show_progress()
        return again and self._is_retried

    def skip(self, reason: str) -> None:
        """Leave it out, and say why."""
        self._run._runtime.run(self._run._session.skip_task(self._record, reason))

    def plan(self, *tasks: str | Mapping[str, Any]) -> Tasks:
        """Divide it into parts."""
        return Tasks(self._run, self.id).plan(*tasks)

    @property
    def tasks(self) -> Tasks:
        """Its parts."""
        return Tasks(self._run, self.id)


class Tasks(TasksBase[Task]):
    """The tasks of a run, or the parts of one task."""

    _task = Task
