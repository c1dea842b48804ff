"""What of a file's status tells that it was changed, without reading it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable
from functools import partial
from operator import attrgetter

from holdfast.workspace.dir_fds import DirFds

Key = tuple[int, int, int, int, int, int]
key_of = attrgetter("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_mode", "st_nlink")
"""What tells that a file was changed; the time of change (ctime) cannot be set by programs."""
MTIME, CTIME, SIZE, INODE, MODE, LINKS = range(6)

_SLACK = 20_000_000
_COARSE_SLACK = 3_000_000_000
_CLOCK_REALTIME_COARSE = 5
"""The clock that Linux dates files by: it goes on by ticks, which come late on a busy machine."""


def now_of_files() -> int:
    """Return the time, in ns, that a file gets which is changed now, or one shortly before."""
    if sys.platform == "linux":
        return time.clock_gettime_ns(_CLOCK_REALTIME_COARSE)
    return time.time_ns()


def trusted(key: Key, seen: int) -> Key | None:
    """Return the key if a later change of the file is sure to show in it; None if it is too fresh.

    ``seen`` is the time of files, in ns, before which the file was not read. Some file systems keep
    whole seconds only.
    """
    changed = key[CTIME]
    slack = _SLACK if changed % 1_000_000_000 else _COARSE_SLACK
    return key if changed < seen - slack else None


def key_at(fd: int, name: bytes) -> Key:
    """Return the key of what has a name in an open directory; a symlink is not followed."""
    key: Key = key_of(os.stat(name, dir_fd=fd, follow_symlinks=False))
    return key


def key_if_there(fd: int, name: bytes) -> Key | None:
    """Return the key of what has a name in an open directory; None if nothing has it."""
    try:
        return key_at(fd, name)
    except FileNotFoundError:
        return None


def keys_in(dirs: DirFds, path: bytes, names: Iterable[bytes]) -> list[Key]:
    """Return the keys of what is in a directory, which no symlink leads away from."""
    look = partial(os.stat, dir_fd=dirs.directory(path), follow_symlinks=False)
    return list(map(key_of, map(look, names)))
