"""A workspace for async programs: the same methods, awaited, and no event loop is blocked."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from contextvars import copy_context
from functools import wraps
from typing import Any, Concatenate, Literal, ParamSpec, Self, TypeVar

from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.system.threads import Threads
from holdfast.workspace.capture import Progress
from holdfast.workspace.paths import AnyPath
from holdfast.workspace.results import Restored, Snapshot
from holdfast.workspace.workspace import StoreLike, TreeLike, Workspace

logger = logging.getLogger("holdfast")

T = TypeVar("T")
P = ParamSpec("P")


class _StoppedError(Exception):
    """Nobody awaits the result any more; ends the work where nothing is half done."""


class _Stoppable:
    """Tells how far something is, until it is stopped: then it ends what would be told."""

    def __init__(self, progress: Progress | None) -> None:
        self._progress = progress
        self._is_stopped = False

    def stop(self) -> None:
        """End the work at the next file."""
        self._is_stopped = True

    def __call__(self, done: int, total: int | None) -> None:
        if self._is_stopped:
            raise _StoppedError
        if self._progress is not None:
            self._progress(done, total)


def _awaited(
    method: Callable[Concatenate[Workspace, P], T],
) -> Callable[Concatenate[AsyncWorkspace, P], Coroutine[Any, Any, T]]:
    """Return the async form of a method of Workspace."""

    @wraps(method)
    async def awaited(self: AsyncWorkspace, /, *args: P.args, **options: P.kwargs) -> T:
        return await self._in_thread(lambda: method(self._opened(), *args, **options))

    return awaited


class AsyncWorkspace:
    """The agent's directory, for async programs: a Workspace whose methods are awaited.

    Nothing is opened before the first ``await``, and no method blocks the event loop. Who cancels
    an ``await`` gets control back when nothing is half done: a restore is carried out or was never
    begun, and so is a fork. ``store`` is what ``Workspace`` takes, an async client too.

    >>> import asyncio
    >>> from pathlib import Path
    >>> from holdfast import Client
    >>> from holdfast.workspace import AsyncWorkspace
    >>> Path("repo").mkdir()
    >>> async def main():
    ...     async with Client.memory() as client, AsyncWorkspace("repo", client) as workspace:
    ...         before = await workspace.snapshot()
    ...         _ = Path("repo/debris.txt").write_text("oops")
    ...         return (await workspace.restore(before)).removed
    >>> asyncio.run(main())
    ('debris.txt',)
    """

    def __init__(
        self,
        path: AnyPath,
        store: StoreLike | None = None,
        *,
        name: str | None = None,
        include_ignored: bool = False,
        nested_git: Literal["files", "skip"] = "files",
        watch: bool = False,
    ) -> None:
        def opening() -> Workspace:
            return Workspace(
                path,
                store,
                name=name,
                include_ignored=include_ignored,
                nested_git=nested_git,
                watch=watch,
            )

        self._begin(os.fsdecode(path) if isinstance(path, bytes) else str(path), opening)

    @classmethod
    def of(cls, workspace: Workspace | AsyncWorkspace) -> AsyncWorkspace:
        """Return the async form of a workspace that is open; closing it closes that one."""
        if isinstance(workspace, AsyncWorkspace):
            return workspace
        made = cls.__new__(cls)
        made._begin(workspace.path, lambda: workspace)
        made._opened()
        return made

    def _begin(self, path: str, opening: Callable[[], Workspace]) -> None:
        self._given = path
        self._opening = opening
        self._sync: Workspace | None = None
        self._closed = False
        self._mutex = threading.Lock()
        self._threads = Threads()

    def _opened(self) -> Workspace:
        """Return the workspace, opened if that was not done; blocks, so it is for threads."""
        with self._mutex:
            self._check_open()
            if self._sync is None:
                self._sync = self._opening()
            return self._sync

    async def open(self) -> Self:
        """Open it now, rather than with the first method that is awaited; return itself."""
        await self._in_thread(self._opened)
        return self

    @property
    def sync(self) -> Workspace:
        """The same workspace for threads, whose methods block."""
        if self._sync is None:
            raise InvalidArgumentError(
                f"the workspace {self._given!r} is not open yet: use "
                "`async with AsyncWorkspace(...) as workspace`, or `await workspace.open()`"
            )
        return self._sync

    @property
    def path(self) -> str:
        """The directory."""
        return self.sync.path

    @property
    def name(self) -> str:
        """What its snapshots are listed under."""
        return self.sync.name

    @property
    def recovered(self) -> Restored | None:
        """What was done to complete a restore that an earlier process did not end, if one."""
        return self.sync.recovered

    def __repr__(self) -> str:
        return (
            f"Async{self._sync!r}" if self._sync else f"AsyncWorkspace({self._given!r}, not open)"
        )

    async def snapshot(
        self, message: str | None = None, progress: Progress | None = None
    ) -> Snapshot:
        """Keep all files as they are now; costs what changed since the last time."""
        told = _Stoppable(progress)
        return await self._in_thread(lambda: self._opened().snapshot(message, told), told)

    async def restore(
        self,
        tree: TreeLike,
        paths: Iterable[AnyPath] | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Restored:
        """Put the files back to a tree, or only these paths; ``undo_tree`` leads back again.

        What is there is captured first. Ignored files are left alone. ``dry_run`` changes nothing
        and tells what would be done.
        """
        told = _Stoppable(progress)
        return await self._in_thread(
            lambda: self._opened().restore(tree, paths, dry_run, told), told
        )

    async def fork(
        self, tree: TreeLike, new_path: AnyPath, progress: Progress | None = None
    ) -> AsyncWorkspace:
        """Make a new directory of a tree, a workspace of its own in the same store."""
        told = _Stoppable(progress)
        made = await self._in_thread(lambda: self._opened().fork(tree, new_path, told), told)
        return AsyncWorkspace.of(made)

    diff = _awaited(Workspace.diff)
    status = _awaited(Workspace.status)
    snapshots = _awaited(Workspace.snapshots)
    ls = _awaited(Workspace.ls)
    read = _awaited(Workspace.read)

    async def _in_thread(self, work: Callable[[], T], told: _Stoppable | None = None) -> T:
        """Do something in a thread, to its end."""
        self._check_open()
        return await _to_the_end(self._threads.start(copy_context().run, work), told)

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosedError(f"the workspace {self._given}")

    async def close(self) -> None:
        """Let go of everything; a store that was opened for it is closed."""
        await self._end(Workspace.close)

    async def discard(self) -> None:
        """Close it, and forget what is known of it: for a directory that goes too."""
        await self._end(Workspace.discard)

    async def _end(self, end: Callable[[Workspace], None]) -> None:
        def work() -> None:
            self._threads.close()  # which waits for what is under way
            with self._mutex:
                if self._sync is not None:
                    end(self._sync)

        self._closed = True
        await _to_the_end(asyncio.get_running_loop().run_in_executor(None, work))

    async def __aenter__(self) -> Self:
        try:
            return await self.open()
        except BaseException:
            await self.close()
            raise

    async def __aexit__(self, *exc: object) -> None:
        await self.close()


async def _to_the_end(working: asyncio.Future[T], told: _Stoppable | None = None) -> T:
    """Await what a thread does; a cancelled await ends when that has ended."""
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        if told is not None:
            told.stop()
        while not working.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait([working])
        error = None if working.cancelled() else working.exception()
        if error is not None and not isinstance(error, _StoppedError):
            logger.warning("what a workspace did when its await was cancelled failed: %s", error)
        raise


def as_workspace(given: object) -> Workspace:
    """Return the workspace that a user gave, sync or async; refuse anything else.

    An async one is opened if that was not done, which blocks.
    """
    if isinstance(given, AsyncWorkspace):
        return given._opened()
    if not isinstance(given, Workspace):
        raise InvalidArgumentError(
            f"workspace is a Workspace, not {type(given).__name__}: open it as "
            "Workspace(path, client), or AsyncWorkspace(path, client)"
        )
    return given
