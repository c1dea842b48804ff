"""A bucket that is a directory of this machine: an object is a file that is written whole."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.crash_points import reach
from holdfast.system.directories import entries
from holdfast.system.private_files import make_directories


def put(root: str, path: str, parts: Sequence[bytes]) -> str:
    """Write an object; it is on the disk when the system gets to that, as with any such server.

    Returns what ``head`` says of it as long as nobody writes to it.
    """
    place = os.path.join(root, path)
    make_directories(os.path.dirname(place))
    with Draft(os.path.dirname(place)) as draft:
        for part in parts:
            draft.write(part)
        now = time.time_ns() // 1000 * 1000  # as exactly as any file system keeps it
        os.utime(draft.fd, ns=(now, now))
        reach("objects:drafted")
        draft.replace(place)
    return str(now)


def head(root: str, path: str) -> tuple[int, str] | None:
    """Return the size of an object, and what tells it from another; None if it is not there."""
    try:
        about = os.lstat(os.path.join(root, path))
    except (FileNotFoundError, NotADirectoryError):
        return None
    return about.st_size, str(about.st_mtime_ns)


def tidy(root: str, below: str) -> None:
    """Remove what killed writers left of objects that had no name yet."""
    for entry in entries(os.path.join(root, below)):
        if entry.is_dir(follow_symlinks=False):
            remove_drafts(entry.path)
