"""The order of a session's documents: which was written last.

A document comes behind all that its session has, whatever its time. What comes last is kept in the
session's directory, in ``.last``, so that no save has to look through all. That file is only a
hint: where it is missing, of another start of the machine (power may have been lost before it was
on the disk), or names a document that is not there, the documents are looked through.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from functools import lru_cache

from holdfast.stores.file.folders import LAST, DocumentFolders
from holdfast.system.private_files import opener

Last = tuple[int, str]
"""The place and id of a document."""


class Order:
    """Who is last in each session; asked and told while the root is locked."""

    def __init__(self, folders: DocumentFolders, scan: Callable[[str], Iterable[Last]]) -> None:
        self._folders = folders
        self._scan = scan

    def last(self, folder: str) -> Last | None:
        """Return the last document of a session, if it has any."""
        return self._noted(folder) or max(self._scan(folder), default=None)

    def _noted(self, folder: str) -> Last | None:
        try:
            with open(os.path.join(folder, LAST), encoding="utf-8") as file:
                boot, seq, checkpoint_id = file.read().split("\n")[:3]
            last = int(seq), checkpoint_id
        except (OSError, ValueError):
            return None
        is_known = boot == _boot() != "" and self._folders.has(folder, checkpoint_id)
        return last if is_known else None

    def follow(self, folder: str, seq: int, checkpoint_id: str) -> None:
        """Note what is about to be the last."""
        with open(os.path.join(folder, LAST), "w", encoding="utf-8", opener=opener) as file:
            file.write(f"{_boot()}\n{seq}\n{checkpoint_id}\n")


@lru_cache(1)
def _boot() -> str:
    """Return which start of this machine it is; nothing where that is not told."""
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return ""
