"""Locks between processes: a file that is locked while it is open.

An interrupt may strike between any two calls, and whoever catches it may keep its traceback. A
context manager written in Python may then be left half entered, and hold its lock for as long as
that; a file is closed by ``with`` itself.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import AbstractContextManager, nullcontext
from io import FileIO
from typing import Any
from weakref import WeakSet

from holdfast.system.private_files import FILE_MODE

_held: WeakSet[LockFile] = WeakSet()


class LockFile(FileIO):
    """A file that nobody else has locked while this is open, or only shared if this is."""

    def __init__(self, path: str, shared: bool = False) -> None:
        super().__init__(os.open(path, os.O_RDONLY | (0 if shared else os.O_CREAT), FILE_MODE))
        try:
            _held.add(self)
            self.is_locked = lock(self.fileno(), fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except BaseException:
            self.close()
            raise


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
