"""diskcache: rows at synchronous=NORMAL, values above 32 KB in files it never fsyncs."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.contenders.base import MAIN, State, SyncContender


class DiskCache(SyncContender):
    requires = "diskcache"
    durability = "normal; files: none"

    def __init__(self, name: str) -> None:
        self.name = name
        self._heads: dict[str, tuple[str, int]] = {}

    def open_now(self, directory: Path) -> None:
        self.directory = directory
        # By default it culls past 1 GB; a checkpoint store may not drop anything.
        self._cache = import_module("diskcache").Cache(
            str(directory), eviction_policy="none", size_limit=2**40
        )

    def save_now(self, step: int, state: State, session: str = MAIN) -> None:
        self._heads[session] = (session, step)
        self._cache[session, step] = state

    def restore_now(self, session: str = MAIN) -> Any:
        return self._cache[self._heads[session]]

    def close_now(self) -> None:
        self._cache.close()
