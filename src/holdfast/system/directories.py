"""What is in a directory, and how that is made durable."""

from __future__ import annotations

import errno
import os


def entries(folder: str) -> list[os.DirEntry[str]]:
    """Return what is in a directory; nothing if there is none."""
    try:
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []


def sync_directory(directory: str) -> None:
    """Make durable which names a directory holds."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that keeps directories in order by itself
            raise
    finally:
        os.close(fd)


def unlink(path: str) -> bool:
    """Remove a file; return whether it was there."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True
