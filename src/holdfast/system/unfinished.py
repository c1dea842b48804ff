"""What is being made outside of a store, noted so that it goes if its maker dies: forks, exports.

For each thing there is a small file beside the store that says where it is, locked for as long as
its maker lives. A thing whose note nobody has locked is left behind, and removed by the next gc or
workspace that is opened on the store. Its name tells what it is and ends as the note's does, so
that a note can lead to nothing else.
"""

from __future__ import annotations

import fcntl
import logging
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection
from contextlib import suppress
from types import TracebackType
from typing import Self

from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.directories import entries, unlink
from holdfast.system.file_lock import lock
from holdfast.system.private_files import make_directories

logger = logging.getLogger("holdfast")

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_LONGEST = 16 * 1024
_OURS = re.compile(rb".*holdfast-[a-z-]+-[0-9a-f]{16}", re.DOTALL)


def notes_of(files: Collection[str]) -> str:
    """Return where things are noted for a store that lives in these files, or in none here."""
    for first in files:
        above, name = os.path.split(first)
        if os.path.isdir(first):
            return os.path.join(first, ".workspaces", "unfinished")
        if os.path.basename(above) == ".holdfast":
            return os.path.join(above, "workspaces", "unfinished")
        return os.path.join(above, f"{name}.workspaces", "unfinished")
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return os.path.join(cache, "holdfast", "workspaces", "unfinished")


class Unfinished:
    """Something that is about to be made, noted until it is closed."""

    def __init__(self, files: Collection[str], above: bytes, start: bytes) -> None:
        self._token = secrets.token_hex(8)
        self.name = start + self._token.encode()
        """What it is to be called, in the directory that was given."""
        self._note = os.path.join(notes_of(files), self._token)
        self._draft: Draft | None = None
        try:
            make_directories(os.path.dirname(self._note))
            self._draft = Draft(os.path.dirname(self._note))
            self._draft.write(os.path.join(os.path.abspath(above), self.name))
            self._draft.replace(self._note)
        except OSError as error:
            logger.info("%s cannot be noted as unfinished: %s", os.fsdecode(self.name), error)
            self.close()

    def close(self) -> None:
        """Note that it is finished, or was removed."""
        draft, self._draft = self._draft, None
        if draft is not None:
            unlink(self._note)
            draft.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def left_behind(files: Collection[str], remove: bool = True) -> list[str]:
    """Remove what makers left behind when they died; returns what that was."""
    notes = notes_of(files)
    if remove:
        remove_drafts(notes, of_old_versions=True)
    found: list[str] = []
    for entry in entries(notes):
        if entry.name.startswith("."):
            continue
        try:
            fd = os.open(entry.path, _READ)
        except OSError:  # ended just now, or another user's
            continue
        try:
            if lock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB):
                path = os.read(fd, _LONGEST)
                if _is_ours(path, entry.name) and os.path.lexists(path):
                    found.append(os.fsdecode(path))
                    if remove:
                        _remove(path)
                if remove:
                    os.unlink(entry.path)
        except OSError as error:
            logger.warning("%r was left behind and cannot be removed: %s", entry.path, error)
        finally:
            os.close(fd)
    return found


def _is_ours(path: bytes, token: str) -> bool:
    """Return whether only a maker can have given it that name: a store may come from anybody."""
    return _OURS.fullmatch(os.path.basename(path)) is not None and path.endswith(token.encode())


def _remove(path: bytes) -> None:
    if not stat.S_ISDIR(os.lstat(path).st_mode):
        os.unlink(path)
        return
    for _, _, _, fd in os.fwalk(path, onerror=None, follow_symlinks=False):
        for name in os.listdir(fd):
            _open_up(name, fd)
    shutil.rmtree(path)


def _open_up(name: str, above: int) -> None:
    """Let a directory that its owner may not write to be emptied."""
    with suppress(OSError):  # no directory
        fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=above)
        try:
            os.fchmod(fd, stat.S_IRWXU)
        finally:
            os.close(fd)
