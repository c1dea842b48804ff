"""Locks between processes: a file that is locked while it is open.

An interrupt may strike between any two calls, and whoever catches it may keep its traceback. A
context manager written in Python may then be left half entered, and hold its lock for as long as
that; a file is closed by ``with`` itself.
"""

from __future__ import annotations

import fcntl
import math
import os
import time
from contextlib import AbstractContextManager, nullcontext
from io import FileIO
from typing import Any
from weakref import WeakSet

from holdfast.errors import StoreConnectionError
from holdfast.system import patience
from holdfast.system.private_files import FILE_MODE

_PAUSE = 0.01
_held: WeakSet[LockFile] = WeakSet()


class LockFile(FileIO):
    """A file that nobody else has locked while this is open, or only shared if this is."""

    def __init__(self, path: str, shared: bool = False) -> None:
        super().__init__(os.open(path, os.O_RDONLY | (0 if shared else os.O_CREAT), FILE_MODE))
        try:
            _held.add(self)
            self.is_locked = self._lock(path, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            self.close()
            raise

    def _lock(self, path: str, how: int) -> bool:
        seconds = patience.seconds()
        if seconds == math.inf:
            return lock(self.fileno(), how)
        end = time.monotonic() + seconds
        while True:
            try:
                fcntl.flock(self.fileno(), how | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > end:
                    raise StoreConnectionError(
                        f"{path} has been locked by another program for {seconds:g} s"
                    ) from None
            except OSError:
                return False
            else:
                return True
            time.sleep(_PAUSE)


def locked(path: str, shared: bool = False) -> AbstractContextManager[Any]:
    """Hold the lock of a file, alone, or with others where all only read."""
    try:
        return LockFile(path, shared)
    except (FileNotFoundError, NotADirectoryError):
        if not shared:
            raise
        return nullcontext()  # nobody writes where it was never made


def lock(fd: int, how: int = fcntl.LOCK_EX) -> bool:
    """Lock a file for as long as it is open; False where it is taken or cannot be locked at all."""
    try:
        fcntl.flock(fd, how)
    except OSError:
        return False
    return True


def _leave_to_parent() -> None:
    """Close what a fork copied: a lock is held until the last copy of its file is closed."""
    for file in _held:
        file.close()


os.register_at_fork(after_in_child=_leave_to_parent)
