"""A gate: many may note calls at once, while a checkpoint is made alone."""

from __future__ import annotations

import threading

from holdfast.runtime import steps
from holdfast.runtime.steps import Plan

_PAUSE = 0.001


class Gate:
    """Keeps what is noted on a head and the checkpoint that follows it apart.

    It is asked again and again where it is closed: a plan may not block, and waits are short.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._alone = False

    def enter(self) -> Plan[None]:
        """Come in with others."""
        while not self._try_enter():
            yield from steps.rest(_PAUSE)

    def leave(self) -> None:
        with self._lock:
            self._inside -= 1

    def close(self) -> Plan[None]:
        """Come in alone: nobody else enters, and those inside have left."""
        while not self._try_close():
            yield from steps.rest(_PAUSE)
        while self._inside:
            yield from steps.rest(_PAUSE)

    def open(self) -> None:
        with self._lock:
            self._alone = False

    def _try_enter(self) -> bool:
        with self._lock:
            self._inside += not self._alone
            return not self._alone

    def _try_close(self) -> bool:
        with self._lock:
            if self._alone:
                return False
            self._alone = True
            return True
