"""Saves of one key are written in the order in which their states were taken, on any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from holdfast.core.state_tags import State


class SaveQueue:
    """The saves of one key that wait to be written, oldest first."""

    def __init__(self) -> None:
        self._taking = threading.RLock()
        self._writing = threading.Lock()
        self._waiting: deque[PendingSave] = deque()

    def take(self, snapshot: Callable[[], State], save: Callable[[State], str]) -> PendingSave:
        """Take a state now and let it wait for its turn."""
        with self._taking:
            pending = PendingSave(self, snapshot(), save)
            self._waiting.append(pending)
        return pending

    def write_up_to(self, pending: PendingSave) -> None:
        """Write what waits, up to and with this one; others' threads may have done so already."""
        with self._writing:
            while not pending.done:
                self._waiting.popleft().run()


class PendingSave:
    """A state that was taken and is still to be written; ``write`` may run in another thread."""

    def __init__(self, queue: SaveQueue, state: State, save: Callable[[State], str]) -> None:
        self.state = state
        self.done = False
        self._queue = queue
        self._save = save
        self._id = ""
        self._error: BaseException | None = None

    def write(self) -> str:
        """Write it, after all that were taken before it, and return the id."""
        self._queue.write_up_to(self)
        if self._error is not None:
            raise self._error
        return self._id

    def run(self) -> None:
        """Do the writing; what goes wrong is for the one who called ``write``."""
        try:
            self._id = self._save(self.state)
        except Exception as error:
            self._error = error
        except BaseException as error:
            self._error = error
            raise
        finally:
            self.done = True
