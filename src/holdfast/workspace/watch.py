"""Being told what changes, so that a snapshot looks only there; needs ``inotify_simple``.

The kernel queues an event before the call that made the change returns, so a snapshot that reads
the queue first misses nothing. Whatever the queue cannot tell ends in a full scan.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Iterable
from typing import Any

from holdfast.errors import InvalidArgumentError, MissingPackageError
from holdfast.workspace.dir_fds import DirFds

logger = logging.getLogger("holdfast")

Changes = dict[bytes, set[bytes] | None]
"""For each directory the names of files that were written to; None where there is more to see."""


_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
_LIMITS = {errno.EMFILE: "instances", errno.ENOSPC: "watches"}


class Watcher:
    """Watches the directories of a workspace."""

    def __init__(self, root: bytes) -> None:
        try:
            import inotify_simple  # type: ignore[import-untyped, unused-ignore]
        except ImportError:
            raise MissingPackageError("watch=True", "inotify_simple", "watch") from None
        except (OSError, AttributeError) as error:
            raise InvalidArgumentError(f"watch=True works on Linux only ({error})") from None
        self._root = root
        self._make = inotify_simple.INotify
        flags = inotify_simple.flags
        self._mask = int(
            flags.MODIFY
            | flags.ATTRIB
            | flags.CLOSE_WRITE
            | flags.CREATE
            | flags.DELETE
            | flags.MOVED_FROM
            | flags.MOVED_TO
            | flags.DELETE_SELF
            | flags.MOVE_SELF
            | flags.ONLYDIR
            | flags.EXCL_UNLINK
        )
        # Numbers, as sums of flags are slow.
        self._lost = int(flags.Q_OVERFLOW | flags.UNMOUNT | flags.MOVE_SELF)
        self._moved = int(flags.MOVED_FROM | flags.MOVED_TO)
        self._written = int(flags.MODIFY | flags.ATTRIB | flags.CLOSE_WRITE)
        self._is_directory, self._ignored = int(flags.ISDIR), int(flags.IGNORED)
        self._created = int(flags.CREATE | flags.MOVED_TO)
        self._events: Any = None
        self._paths: dict[int, bytes] = {}
        self._dirty: Changes = {}
        """What was told and nobody has asked for yet."""
        self._started_as: tuple[int, ...] | None = None
        """By which process, and for which directory."""
        self.problem: str | None = None
        """Why nothing can be watched, if so; snapshots look at everything then."""

    @property
    def is_watching(self) -> bool:
        """Whether the next snapshot need not look at everything."""
        return self._events is not None

    def fileno(self) -> int:
        """Return what can be read from, as ``select`` has it, when something has changed."""
        if self._events is None:
            raise ValueError("nothing is watched")
        return int(self._events.fileno())

    def start(self, folders: Iterable[bytes]) -> None:
        """Begin anew with these directories; those found later are added by ``add``."""
        self._stop()
        if self.problem is not None:
            return
        try:
            self._started_as = self._now()
            self._events = self._make(nonblocking=True)
        except OSError as error:
            self._give_up(error)
            return
        with DirFds(self._root) as dirs:
            for path in list(folders):
                try:
                    fd = dirs.directory(path)
                except OSError as error:
                    if error.errno not in _GONE:
                        self._give_up(error)
                        return
                    # The scan will not find it either, or its parent changes when it comes back.
                else:
                    self.add(path, fd)

    def add(self, path: bytes, fd: int) -> None:
        """Watch one more directory, which is open, before it is listed."""
        if self._events is None:
            return
        try:
            number = self._events.add_watch(b"/proc/self/fd/%d" % fd, self._mask)
        except PermissionError:
            return  # the scan will not find it either, or its parent changes when it comes back
        except OSError as error:  # no more watches allowed, or no /proc
            self._give_up(error)
            return
        self._paths[number] = path

    def changes(self) -> Changes | None:
        """Return where something changed since it was asked last; None if that is unknown."""
        self.gather()
        if self._events is None:
            return None
        dirty, self._dirty = self._dirty, {}
        return dirty

    def gather(self) -> None:
        """Take in what was told until now, for who asks for changes: what comes later is new."""
        if self._events is None:
            return
        if self._now() != self._started_as:  # a fork reads from the same queue as its parent
            self._stop()
            return
        dirty = self._dirty
        for number, mask, _, name in self._events.read(timeout=0):
            if mask & self._lost or (mask & self._moved and mask & self._is_directory):
                self._stop()  # names of watched directories may be wrong now
                return
            if mask & self._ignored:
                self._paths.pop(number, None)
                continue
            path = self._paths.get(number)
            if path is None or (mask & self._created and name and self._is_link(path, name)):
                self._stop()
                return
            if not name or mask & ~self._written:
                dirty[path] = None
            elif (names := dirty.setdefault(path, set())) is not None:
                names.add(os.fsencode(name))

    def _now(self) -> tuple[int, ...]:
        try:
            found = os.stat(self._root)
        except OSError:
            return ()
        return os.getpid(), found.st_dev, found.st_ino

    def _is_link(self, path: bytes, name: str) -> bool:
        """Return whether a new name is of a file that has others, of which nothing was told."""
        try:
            found = os.lstat(b"/".join(filter(None, (self._root, path, os.fsencode(name)))))
        except OSError:
            return False
        return stat.S_ISREG(found.st_mode) and found.st_nlink > 1

    def _give_up(self, error: OSError) -> None:
        limit = _LIMITS.get(error.errno or 0)
        remedy = f"; raise fs.inotify.max_user_{limit} to watch it" if limit else ""
        self.problem = f"{error.strerror}{remedy}"
        logger.warning("%s is not watched: %s", os.fsdecode(self._root), self.problem)
        self._stop()

    def _stop(self) -> None:
        if self._events is not None:
            self._events.close()
        self._events = None
        self._paths.clear()
        self._dirty = {}

    def close(self) -> None:
        """Stop watching."""
        self._stop()
