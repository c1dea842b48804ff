"""Chunks that stand on their own in a file store, such as those of files; a file for each."""

from __future__ import annotations

import os
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import AbstractContextManager
from datetime import datetime

from holdfast.core.chunk_format import ID_BYTES
from holdfast.stores.base import Collected
from holdfast.stores.file.folders import directories, open_document
from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.crash_points import reach
from holdfast.system.directories import sync_directory, unlink
from holdfast.system.file_lock import locked
from holdfast.system.private_files import make_directories


class ChunkFiles:
    """The chunks in ``<root>/.chunks``, in folders by the first digits of their names."""

    def __init__(self, root: str) -> None:
        self._directory = os.path.join(root, ".chunks")

    def put(self, chunks: Mapping[bytes, bytes]) -> None:
        """Keep chunks, durably; those that are there are as good as new."""
        make_directories(self._directory)
        changed = {self._directory, os.path.dirname(self._directory)}
        for name, data in chunks.items():
            path = self._path(name)
            folder = os.path.dirname(path)
            make_directories(folder)
            with Draft(folder) as draft:
                reach("file:chunk_begun")
                draft.write(data)
                draft.sync()
                reach("file:chunk_written")
                with self._lock():
                    draft.replace(path)
            changed.add(folder)
        for folder in sorted(changed, reverse=True):
            sync_directory(folder)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        """Return those that are there."""
        found: dict[bytes, bytes] = {}
        for name in names:
            try:
                with open_document(self._path(name)) as file:
                    found[name] = file.read()
            except (FileNotFoundError, NotADirectoryError):
                continue
        return found

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        """Remove those that are not live and were last written before then."""
        bound = before.timestamp()
        count = size = 0
        for name, path in self._all():
            if name in live or not (found := _older(path, bound)):
                continue
            if not dry_run:
                with self._lock():
                    if not _older(path, bound) or not unlink(path):
                        continue  # written again meanwhile
            count += 1
            size += found.st_size
        return Collected(count, size)

    def tidy(self) -> None:
        """Remove what writers left behind when they died before it had its name."""
        for folder in directories(self._directory):
            remove_drafts(folder, of_old_versions=True)

    def sizes(self) -> list[int]:
        """Return the sizes of all."""
        return [os.stat(path).st_size for _, path in self._all()]

    def _path(self, name: bytes) -> str:
        digits = name.hex()
        return os.path.join(self._directory, digits[:2], digits)

    def _lock(self) -> AbstractContextManager[None]:
        return locked(os.path.join(self._directory, ".lock"))

    def _all(self) -> Iterator[tuple[bytes, str]]:
        try:
            folders = sorted(os.listdir(self._directory))
        except FileNotFoundError:
            return
        for folder in folders:
            if len(folder) != 2:
                continue
            for digits in os.listdir(os.path.join(self._directory, folder)):
                if len(digits) == 2 * ID_BYTES and not digits.startswith("."):
                    yield bytes.fromhex(digits), os.path.join(self._directory, folder, digits)


def _older(path: str, bound: float) -> os.stat_result | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found if found.st_mtime < bound else None
