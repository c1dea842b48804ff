"""Files that are there whole or not at all.

A file is written as a *draft* beside its place, and gets its name when it is whole. A draft is
locked for as long as its writer lives, and its name says what it is: one that nobody has locked was
left by a writer that died, and ``remove_drafts`` takes it.
"""

from __future__ import annotations

import fcntl
import math
import os
import re
import secrets
import stat
import time
from types import TracebackType
from typing import Self

from holdfast.system.crash_points import reach
from holdfast.system.directories import entries, sync_directory, unlink
from holdfast.system.file_lock import lock
from holdfast.system.private_files import FILE_MODE

_START = ".holdfast-tmp-file-"
_DRAFT = re.compile(re.escape(_START) + "[0-9a-f]{16}")
_OLD_DRAFT = re.compile(r"\.tmp-[0-9a-f]+")
_OLD_SECONDS = 60.0
"""For so long a draft as 0.2 named it may be written to although nobody has it locked."""
_LOOK = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Draft:
    """A new file, locked, that is removed when it is closed unless it took the place of another."""

    def __init__(self, folder: str, name: str | None = None, mode: int = FILE_MODE) -> None:
        self._is_placed = False
        while True:
            self.path = os.path.join(folder, name or _START + secrets.token_hex(8))
            self.fd = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
            try:
                lock(self.fd)
                if os.fstat(self.fd).st_nlink:
                    return
            except BaseException:
                os.close(self.fd)
                raise
            os.close(self.fd)  # removed as a leftover before it was locked

    def write(self, data: bytes) -> None:
        """Add data to it."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self.fd, rest) :]

    def sync(self) -> None:
        """Make durable what was written."""
        os.fsync(self.fd)

    def link(self, path: str) -> None:
        """Give it a name that nothing has; FileExistsError if something does."""
        os.link(self.path, path)

    def replace(self, path: str) -> None:
        """Put it in the place of what has that name, if anything does; it stays locked."""
        os.replace(self.path, path)
        self._is_placed = True

    def close(self) -> None:
        """Let go of it; a second call does nothing."""
        fd, self.fd = self.fd, -1
        if fd < 0:
            return
        try:
            if not self._is_placed:
                unlink(self.path)
        finally:
            os.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def write_file(
    path: str,
    data: bytes,
    *,
    durable: bool = True,
    is_users: bool = False,
    written: str | None = None,
) -> None:
    """Write a file as a whole, in the place of what was there; what dead writers left beside goes.

    It is its owner's alone, unless it is a file of the user's: then its mode stays, or is what the
    umask says. ``durable`` waits until a power loss cannot take it; ``written`` names the crash
    point that is reached once all is written and nothing has its name yet.
    """
    folder = os.path.dirname(path)
    remove_drafts(folder)
    with Draft(folder, mode=0o666 if is_users else FILE_MODE) as draft:
        draft.write(data)
        if is_users and (mode := _mode_of(path)) is not None:
            os.fchmod(draft.fd, mode)
        if durable:
            draft.sync()
        if written is not None:
            reach(written)
        draft.replace(path)
    if durable:
        sync_directory(folder)


def remove_drafts(folder: str, of_old_versions: bool = False) -> None:
    """Remove the drafts in a directory whose writers died.

    Those of versions that named them otherwise only where no other program writes.
    """
    for entry in entries(folder):
        if _DRAFT.fullmatch(entry.name):
            _remove_if_unlocked(entry.path, math.inf)
        elif of_old_versions and _OLD_DRAFT.fullmatch(entry.name):
            _remove_if_unlocked(entry.path, time.time() - _OLD_SECONDS)


def _mode_of(path: str) -> int | None:
    try:
        return stat.S_IMODE(os.stat(path).st_mode)
    except FileNotFoundError:
        return None


def _remove_if_unlocked(path: str, before: float) -> None:
    try:
        fd = os.open(path, _LOOK)
    except OSError:  # removed just now, another user's, or no file at all
        return
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_mtime > before:
            return
        if lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
            unlink(path)
    finally:
        os.close(fd)
