"""A lock that many hold together, to note calls, or one alone, to make a checkpoint."""

from __future__ import annotations

import threading

from holdfast.runtime import steps
from holdfast.runtime.steps import Plan

_PAUSE = 0.001


class SharedLock:
    """Keeps what is noted on a head and the checkpoint that follows it apart.

    It is asked again and again where it is held: a plan may not block, and waits are short.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sharing = 0
        self._is_alone = False

    def share(self) -> Plan[None]:
        """Hold it together with others."""
        while not self._try_share():
            yield from steps.rest(_PAUSE)

    def unshare(self) -> None:
        """Let go of what is held together with others."""
        with self._lock:
            self._sharing -= 1

    def take(self) -> Plan[None]:
        """Hold it alone: nobody else can, and those that shared it have let go."""
        while not self._try_take():
            yield from steps.rest(_PAUSE)
        try:
            while self._sharing:
                yield from steps.rest(_PAUSE)
        except BaseException:  # interrupted: nobody would let go of it
            self.give_back()
            raise

    def give_back(self) -> None:
        """Let go of what is held alone."""
        with self._lock:
            self._is_alone = False

    def _try_share(self) -> bool:
        with self._lock:
            self._sharing += not self._is_alone
            return not self._is_alone

    def _try_take(self) -> bool:
        with self._lock:
            if self._is_alone:
                return False
            self._is_alone = True
            return True
