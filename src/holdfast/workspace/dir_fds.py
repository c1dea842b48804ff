"""Descriptors of directories of the workspace, reached without following any symlink."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Self

_KEPT = 64
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""How a file is opened to be read: no symlink is followed, and no fifo waited for."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def open_root(root: bytes) -> int:
    """Open the workspace itself, which may be reached through symlinks of the user's choice."""
    return os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


class DirFds:
    """Open directories of the workspace, the latest few kept open."""

    def __init__(self, root: bytes) -> None:
        self._open: dict[bytes, int] = {b"": open_root(root)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close them all."""
        while self._open:
            os.close(self._open.popitem()[1])

    def directory(self, path: bytes) -> int:
        """Return the descriptor of a directory; the one asked for just before stays open too."""
        fd = self._open.pop(path, None)
        if fd is None:
            fd = self._walk(path)
            if len(self._open) >= _KEPT:
                self._forget(next(key for key in self._open if key))
        self._open[path] = fd
        return fd

    def _walk(self, path: bytes) -> int:
        names = path.split(b"/")
        start = len(names) - 1
        while start and b"/".join(names[:start]) not in self._open:
            start -= 1
        above = b"/".join(names[:start])
        nearest = self._open[above] = self._open.pop(above)  # as it may be needed again soon
        fd = os.dup(nearest)
        for name in names[start:]:
            try:
                inner = os.open(name, _DIRECTORY, dir_fd=fd)
            finally:
                os.close(fd)
            fd = inner
        return fd

    def forget(self, path: bytes) -> None:
        """Close a directory that is about to go, and those beneath it."""
        start = path + b"/"
        for key in [key for key in self._open if key == path or key.startswith(start)]:
            self._forget(key)

    def _forget(self, path: bytes) -> None:
        os.close(self._open.pop(path))
