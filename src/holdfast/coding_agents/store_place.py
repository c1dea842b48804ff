"""Whether a store that is open is still where it was: `git clean -fdx` takes it away unseen.

What is written to a file that was removed goes well, and is in nobody's reach.
"""

from __future__ import annotations

import os
import stat


class StorePlace:
    """Where a store is on this disk, and which file or directory that was when it was opened."""

    def __init__(self, path: str | None) -> None:
        self.path = path
        """None for a store that is elsewhere, which nobody here takes away."""
        self._was = file_at(path)

    @property
    def is_as_it_was(self) -> bool:
        """Whether what was opened is there."""
        return self.path is None or (self._was is not None and file_at(self.path) == self._was)

    @property
    def loss(self) -> str:
        """What is to be said where it is not."""
        return f"the store {self.path} was removed meanwhile: what was kept before is gone"


def file_at(path: str | None) -> tuple[int, int, int] | None:
    """Return what tells a file or directory from another that takes its name; None if none is.

    Its kind too: the number of a directory that nobody holds open may be given to a file.
    """
    try:
        found = None if path is None else os.stat(path)
    except OSError:
        return None
    return None if found is None else (found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode))
