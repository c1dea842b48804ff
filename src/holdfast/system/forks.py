"""Forks: what has to come to rest before a process is copied, so that both copies work.

SQLite keeps its file locks per process, in memory that a fork copies: a child would believe it
holds what only its parent holds, and the parent's last close would remove the log under it. So
nothing of SQLite is open, and no lock is held, at the moment of a fork.
"""

from __future__ import annotations

import os
import threading
from typing import Protocol
from weakref import WeakSet


class Forkable(Protocol):
    """Something that has to be told of forks."""

    def _before_fork(self) -> None:
        """Come to rest, and stay so."""

    def _after_fork(self, in_child: bool) -> None:
        """Go on; in the child with new locks, as those of the parent may have had waiters."""


_watched: WeakSet[Forkable] = WeakSet()
_resting: list[Forkable] = []
_lock = threading.Lock()


def watch(thing: Forkable) -> None:
    """Tell this of every fork, for as long as it lives."""
    with _lock:
        _watched.add(thing)


class Locked:
    """Has a lock that no fork leaves locked in the child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        watch(self)

    def _before_fork(self) -> None:
        self._lock.acquire()

    def _after_fork(self, in_child: bool) -> None:
        if in_child:
            self._lock = threading.Lock()
        else:
            self._lock.release()


def _before() -> None:
    _lock.acquire()
    _resting.extend(_watched)
    for thing in _resting:
        thing._before_fork()


def _after(in_child: bool) -> None:
    for thing in _resting:
        thing._after_fork(in_child)
    _resting.clear()


def _after_in_parent() -> None:
    _after(in_child=False)
    _lock.release()


def _after_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    _after(in_child=True)


os.register_at_fork(
    before=_before, after_in_parent=_after_in_parent, after_in_child=_after_in_child
)
