"""Copies that share their blocks with the original, where the file system can do that."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Mapping

from holdfast.workspace.dir_fds import READ, DirFds
from holdfast.workspace.entries import FILE, SMALL, Entry
from holdfast.workspace.index import Folder
from holdfast.workspace.paths import parent_and_name, start_of
from holdfast.workspace.stat_keys import Key, key_of

_FICLONE = 0x40049409
_NOT_HERE = (errno.EOPNOTSUPP, errno.ENOTTY, errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EPERM)

Sources = Mapping[bytes, tuple[bytes, Key]]
"""Where in the workspace a content lies, and the key by which that is known."""


def sources(folders: Mapping[bytes, Folder]) -> dict[bytes, tuple[bytes, Key]]:
    """Return the large files of a workspace by content, as far as a change of them would show."""
    found: dict[bytes, tuple[bytes, Key]] = {}
    for path, folder in folders.items():
        for name, entry in folder.entries.items():
            key = folder.keys.get(name)
            if entry.kind == FILE and entry.size > SMALL and key is not None:
                found[entry.content] = (start_of(path) + name, key)
    return found


class Cloner:
    """Makes large files out of those in a workspace, as long as the file system plays along."""

    def __init__(self, root: bytes, known: Sources) -> None:
        self._root = root
        self._known = known

    def clone(self, fd: int, entry: Entry) -> bool:
        """Give an empty file the content of an entry; False if it has to be written."""
        path, key = self._known.get(entry.content, (None, None))
        if path is None:
            return False
        above, name = parent_and_name(path)
        try:
            with DirFds(self._root) as dirs:
                source = os.open(name, READ, dir_fd=dirs.directory(above))
        except OSError:
            return False  # gone or replaced: the store has it
        try:
            if key_of(os.fstat(source)) != key:
                return False
            fcntl.ioctl(fd, _FICLONE, source)
            if key_of(os.fstat(source)) == key:
                return True
            os.ftruncate(fd, 0)  # it was written to just now
            return False
        except OSError as error:
            if error.errno not in _NOT_HERE:
                raise
            self._known = {}
            return False
        finally:
            os.close(source)
