"""Files and directories that are made for their owner alone, whatever the umask allows others.

What is there already keeps the mode it has: it is the user's.
"""

from __future__ import annotations

import os

FILE_MODE, DIRECTORY_MODE = 0o600, 0o700
_OF_PROJECT = ".holdfast"


def opener(path: str, flags: int) -> int:
    """Open a file, for ``open(..., opener=opener)``: one that is made is its owner's alone."""
    return os.open(path, flags, FILE_MODE)


def make_directory(path: str | bytes) -> None:
    """Make a directory; FileExistsError if it is there."""
    os.mkdir(path, DIRECTORY_MODE)


def make_directories(path: str) -> list[str]:
    """Make a directory and those above it that are missing; returns the ones that were made."""
    missing: list[str] = []
    while path and not os.path.isdir(path):
        missing.append(path)
        above = os.path.dirname(path.rstrip("/"))
        if above == path:
            break
        path = above
    made: list[str] = []
    for each in reversed(missing):
        try:
            make_directory(each)
        except FileExistsError:
            if not os.path.isdir(each):
                raise
        else:
            made.append(each)
    return made


def make_beside_store(path: str) -> None:
    """Make a directory for what is kept beside a store, and have git ignore a new ``.holdfast/``.

    It is new where somebody removed the store, as ``git clean -x`` does.
    """
    for each in make_directories(path):
        if os.path.basename(each.rstrip("/")) == _OF_PROJECT:
            keep_from_git(each)


def keep_from_git(directory: str) -> None:
    """Have git ignore a directory, unless it was told something of it already."""
    try:
        with open(os.path.join(directory, ".gitignore"), "x", opener=opener) as file:
            file.write("*\n")
    except FileExistsError:
        return


def make_file(path: str) -> None:
    """Make an empty file, unless something is there.

    Not opened where it is there: closing it would drop the locks that this process has on it.
    """
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE)
    except FileExistsError:
        return
    os.close(fd)
