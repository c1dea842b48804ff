"""Keeps the files of a directory while any program works there: before, at rest, and after.

One thread does all of it, and alone has the store. Whatever goes wrong there is noted for the end;
the program never waits for it, and never ends of it.
"""

from __future__ import annotations

import logging
import os
import select
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from holdfast.client.with_files import put_with_files
from holdfast.coding_agents.programs import WRAPPED
from holdfast.coding_agents.store_place import StorePlace
from holdfast.coding_agents.wrapped_names import after, before, late, resting, shown
from holdfast.errors import HoldfastError
from holdfast.stores.capabilities import files_of
from holdfast.system import foreground

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.workspace import Snapshot, Workspace
    from holdfast.workspace.capture import Progress
    from holdfast.workspace.watch import Watcher

_LOOK_SECONDS = 2.0
"""How often files are looked at where nobody tells of changes."""
_SHARE = 10
"""Looking takes at most one in so many seconds."""
_PATIENCE = 15
"""Files that do not come to rest are kept all the same after so many times the rest."""
_AGAIN_SECONDS = 3.0
"""How often a store is tried that could not be opened."""
_BREATH = 0.05
"""Seconds in which changes are gathered, so that many of them cost little."""

Opened = AbstractContextManager[tuple["SyncClient", "Workspace"]]


class _StoreGoneError(Exception):
    """The store is not the one any more that was opened."""


class Wrapping:
    """Keeps files as the checkpoints of one session."""

    def __init__(
        self,
        opened: Callable[[], Opened],
        command: Sequence[str],
        *,
        agent_id: str,
        session_id: str,
        rest: float,
        progress: Progress | None = None,
    ) -> None:
        self._open = opened
        self._command = shown(command)
        self.agent_id, self.session_id = agent_id, session_id
        self._rest = rest
        self._progress = progress
        self._last: Snapshot | None = None
        """The files of the checkpoint made last."""
        self._place = StorePlace(None)
        self._is_gone = False
        """Whether the store was taken away, and another is to be opened."""
        self._code, self._ending = 0, ""
        self._is_ready = Event()
        self._over, self._say_over = os.pipe()
        self._thread = Thread(target=self._run, name="holdfast-wrap", daemon=True)
        self.kept: list[str] = []
        """The ids of the checkpoints that were made."""
        self.problems: list[str] = []
        """What was not kept, and why; each reason once."""
        self.warnings: list[str] = []

    def begin(self) -> None:
        """Keep the files as they are, and go on to watch them."""
        with foreground.without_signals():
            self._thread.start()
        self._is_ready.wait()

    def end(self, code: int, how: str) -> None:
        """Keep the files as the program left them; it ended so: ``exit 1``."""
        self._code, self._ending = code, how
        os.close(self._say_over)
        self._thread.join()

    def _run(self) -> None:
        logger, said = logging.getLogger("holdfast"), _Warnings(self.warnings)
        logger.addHandler(said)  # nothing is said in the middle of what the program shows
        try:
            while not self._work():
                self._is_ready.set()
                if self._is_over(0 if self._is_gone else _AGAIN_SECONDS):
                    if self._is_gone:
                        self._work()  # but once: whoever takes it away may go on to do so
                    break
        finally:
            self._is_ready.set()
            logger.removeHandler(said)
            os.close(self._over)

    def _work(self) -> bool:
        """Keep files until the program has ended; False if the store cannot be opened now."""
        try:
            with self._open() as (client, workspace):
                self._is_gone = False
                self._place = StorePlace(next(iter(files_of(client.store)), None))
                if not self._is_ready.is_set():
                    self._attempt(lambda: self._keep_before(client, workspace))
                elif not self._is_over(0):
                    self._attempt(lambda: self._keep_changes(client, workspace))
                self._is_ready.set()
                while self._files_rest(workspace):
                    self._attempt(lambda: self._keep_changes(client, workspace))
                self._attempt(lambda: self._keep_after(client, workspace))
                return True
        except Exception as error:  # whatever it is, the program must not suffer from it
            if not self._is_gone:
                self._note(error)
            return False

    def _attempt(self, keep: Callable[[], None]) -> None:
        try:
            keep()
        except (HoldfastError, OSError) as error:
            self._check_place()
            self._note(error)

    def _note(self, error: Exception) -> None:
        is_ours = isinstance(error, (HoldfastError, OSError))
        self._say(str(error) if is_ours else f"{type(error).__name__}: {error}")

    def _say(self, text: str) -> None:
        if text not in self.problems:
            self.problems.append(text)

    def _keep_before(self, client: SyncClient, workspace: Workspace) -> None:
        self._keep(client, workspace, "before", lambda _: before(self._command))

    def _keep_changes(self, client: SyncClient, workspace: Workspace) -> None:
        def name(snapshot: Snapshot) -> str | None:
            if self._last is None:
                return late(self._command)
            if snapshot.tree_id == self._last.tree_id:
                return None
            return resting(workspace.diff(self._last, snapshot))

        self._keep(client, workspace, "rest", name)

    def _keep_after(self, client: SyncClient, workspace: Workspace) -> None:
        name = after(self._command, self._code, self._ending)
        self._keep(client, workspace, "after", lambda _: name, exit_code=self._code)

    def _keep(
        self,
        client: SyncClient,
        workspace: Workspace,
        event: str,
        name: Callable[[Snapshot], str | None],
        **more: Any,
    ) -> None:
        """Save the files as they are as the next checkpoint, unless it has no name."""
        self._check_place()
        with workspace._local.mutex, workspace._alone():
            snapshot = workspace.snapshot_for_checkpoint(self._progress)
            self._progress = None  # from now on the terminal is the program's
            called = name(snapshot)
            if called is None:
                return
            head = client.find(agent_id=self.agent_id, session_id=self.session_id, limit=1)
            checkpoint_id = put_with_files(
                client,
                workspace,
                snapshot,
                agent_id=self.agent_id,
                session_id=self.session_id,
                name=called,
                state={"program": WRAPPED, "event": event, "command": self._command, **more},
                tags={"program": WRAPPED, "event": event},
                parent=head[0] if head else None,
            )
        self._check_place()
        self._last = snapshot
        self.kept.append(checkpoint_id)

    def _check_place(self) -> None:
        """Refuse a store that was taken away: all goes well there, and nobody finds it."""
        if not self._place.is_as_it_was:
            self._say(self._place.loss)
            self._is_gone, self._last = True, None
            self.kept.clear()
            raise _StoreGoneError

    def _files_rest(self, workspace: Workspace) -> bool:
        """Return True once files have changed and come to rest, False when the program ended."""
        began: float | None = None
        """Since when files change."""
        seen: str | None = None
        pause = max(self._rest, _LOOK_SECONDS)
        while began is None or time.monotonic() - began < _PATIENCE * self._rest:
            watcher = _watching(workspace)
            if watcher is not None:
                told: list[Any] = [self._over, watcher]
                if not any(select.select(told, [], [], None if began is None else self._rest)):
                    return True
                if self._is_over(_BREATH):
                    return False
                watcher.gather()
                began = began or time.monotonic()
                continue
            if self._is_over(pause):
                return False
            tree, took = self._look(workspace)
            pause = max(pause, took * _SHARE)
            if tree is not None and self._last is not None and tree == self._last.tree_id:
                began = seen = None
            elif tree == seen and tree is not None:
                return True
            else:
                began, seen = began or time.monotonic(), tree
        return True

    def _look(self, workspace: Workspace) -> tuple[str | None, float]:
        """Return the tree of the files as they are now, and how long it took to look at them."""
        start = time.monotonic()
        tree = None
        try:
            tree = workspace.snapshot_for_checkpoint().tree_id
        except (HoldfastError, OSError) as error:
            self._note(error)
        return tree, time.monotonic() - start

    def _is_over(self, seconds: float) -> bool:
        return bool(select.select([self._over], [], [], seconds)[0])


def _watching(workspace: Workspace) -> Watcher | None:
    watcher = workspace._capturer.watcher
    return watcher if watcher is not None and watcher.is_watching else None


class _Warnings(logging.Handler):
    """Takes in what is logged, so that it is not printed."""

    def __init__(self, said: list[str]) -> None:
        super().__init__(logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if text not in self._said:
            self._said.append(text)
