"""Taking in what one name in a directory stands for, as far as it holds still."""

from __future__ import annotations

import errno
import os
import stat

from holdfast.system.crash_points import reach
from holdfast.workspace.content_reader import ContentReader
from holdfast.workspace.dir_fds import READ, DirFds
from holdfast.workspace.entries import DIRECTORY, SMALL, Entry, directory_mode, symlink_entry
from holdfast.workspace.index import Folder
from holdfast.workspace.paths import start_of
from holdfast.workspace.stat_keys import LINKS, MODE, SIZE, Key, key_of, keys_in, trusted

GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
"""What the system says of something that was there a moment ago."""
REPOSITORY = "a repository of its own"
_ATTEMPTS = 4
_SPECIAL = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a fifo",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


class _VanishedError(Exception):
    """It was there a moment ago."""


class _UnreadableError(Exception):
    """It cannot be captured; the reason is its message."""


class EntryReader:
    """Takes in entries, beneath descriptors that no symlink leads away from."""

    def __init__(
        self, dirs: DirFds, content_reader: ContentReader, started: int, skip_repositories: bool
    ) -> None:
        self._dirs = dirs
        self._content_reader = content_reader
        self._started = started
        self._skip_repositories = skip_repositories
        self.unsettled: list[bytes] = []
        """Files that kept changing while they were read."""
        self.linked: set[bytes] = set()
        """Folders with a file that has other names."""

    def take(
        self, folder: Folder, name: bytes, key: Key, before: Entry | None, known: Key | None
    ) -> Key | None:
        """Add the entry of a name to a folder; return the key by which it is known from now on.

        ``before`` is its last entry, which holds while its key is the ``known`` one.
        """
        mode = key[MODE]
        key_now: Key | None = key
        try:
            if stat.S_ISDIR(mode):
                entry = self._directory(folder.path, name, key, before)
            elif before is not None and known == key:
                folder.entries[name] = before
                return key
            elif stat.S_ISREG(mode):
                entry, key_now = self._file(folder.path, name, key, before)
            elif stat.S_ISLNK(mode):
                entry = self._symlink(folder.path, name)
            else:
                raise _UnreadableError(_SPECIAL.get(stat.S_IFMT(mode), "of unknown kind"))
        except _VanishedError:
            folder.key = None
            return None
        except _UnreadableError as error:
            folder.others[name] = str(error)
            return trusted(key, self._started)
        folder.entries[name] = entry
        return trusted(key_now, self._started) if key_now is not None else None

    def retake(self, folder: Folder, name: bytes, before: Entry) -> bool:
        """Take in a file that is known; return False if it is none any more, or is unreadable."""
        try:
            (key,) = keys_in(self._dirs, folder.path, [name])
            if not stat.S_ISREG(key[MODE]):
                return False
            entry, key_now = self._file(folder.path, name, key, before)
        except (OSError, _VanishedError, _UnreadableError):
            return False
        folder.entries[name] = entry
        folder.keys[name] = trusted(key_now, self._started) if key_now else None
        return True

    def _directory(self, path: bytes, name: bytes, key: Key, before: Entry | None) -> Entry:
        if self._skip_repositories:
            try:
                keys_in(self._dirs, start_of(path) + name, [b".git"])
            except OSError:
                pass
            else:
                raise _UnreadableError(REPOSITORY)
        mode = directory_mode(key[MODE])
        if before is not None and before.kind == DIRECTORY:
            return before if before.mode == mode else before._replace(mode=mode)
        return Entry(DIRECTORY, mode, 0, 0, b"", None)

    def _symlink(self, path: bytes, name: bytes) -> Entry:
        try:
            fd = self._dirs.directory(path)
            target = os.readlink(name, dir_fd=fd)
            mtime = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
        except OSError as error:
            raise _failure(error) from None
        return symlink_entry(target, mtime)

    def _file(
        self, path: bytes, name: bytes, key: Key, before: Entry | None
    ) -> tuple[Entry, Key | None]:
        """Read a file until it has held still for that long; return its entry and its key."""
        entry: Entry | None = None
        if key[LINKS] > 1:
            self.linked.add(path)
        reach("workspace:found")
        try:
            fd = os.open(name, READ, dir_fd=self._dirs.directory(path))
        except OSError as error:
            raise _failure(error) from None
        try:
            for _ in range(_ATTEMPTS):
                reach("workspace:reading")
                entry = self._content_reader.read(fd, key, before)
                reach("workspace:read")
                now: Key = key_of(os.fstat(fd))
                if not stat.S_ISREG(now[MODE]):
                    raise _UnreadableError("replaced while it was read")
                if now == key and entry.size == key[SIZE]:
                    return entry, key
                if now[SIZE] > key[SIZE] == entry.size > SMALL:
                    break  # a log, for instance, which may grow faster than it can be read
                key = now
                os.lseek(fd, 0, os.SEEK_SET)
        except OSError as error:
            raise _failure(error) from None
        finally:
            os.close(fd)
        assert entry is not None
        self.unsettled.append(start_of(path) + name)
        return entry, None


def _failure(error: OSError) -> Exception:
    if error.errno in GONE:
        return _VanishedError()
    return _UnreadableError(reason_of(error))


def reason_of(error: OSError) -> str:
    """Return why something is not captured, as ``Snapshot.skipped`` says it."""
    if error.errno in (errno.EACCES, errno.EPERM):
        return "unreadable"
    if error.errno == errno.ELOOP:
        return "replaced while it was read"
    if error.errno == errno.ENAMETOOLONG:
        return "its path is too long"
    return error.strerror or str(error)
