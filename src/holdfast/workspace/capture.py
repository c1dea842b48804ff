"""Taking snapshots: a scan, the blocks and trees it found new, and a note that keeps them."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError, WorkspaceError
from holdfast.stores.base import Store
from holdfast.system.crash_points import reach
from holdfast.workspace.blocks import Blocks
from holdfast.workspace.clone import Sources, sources
from holdfast.workspace.entries import Entry
from holdfast.workspace.entry_reader import REPOSITORY
from holdfast.workspace.index import Folder, Index, Pin
from holdfast.workspace.known_contents import KnownContents
from holdfast.workspace.local_state import LocalState
from holdfast.workspace.paths import parent_and_name, start_of
from holdfast.workspace.pins import LOOK, Pins
from holdfast.workspace.results import Skipped, Snapshot
from holdfast.workspace.scan import CaptureOptions, Scanner, ScanResult
from holdfast.workspace.stat_keys import LINKS, MODE
from holdfast.workspace.tree_reader import TreeReader
from holdfast.workspace.watch import Changes, Watcher

Progress = Callable[[int, int | None], None]
"""Called with how many files are done and how many there are, if that is known."""

Decide = Callable[[], tuple[float, dict[str, Any]] | None]
"""Says what else the note of a snapshot holds, and for how long it is kept."""

LOOK_SECONDS = 3600.0
"""How long a snapshot is kept that was only taken to compare."""
_FORMAT = 1
_ATTEMPTS = 3
_UNSAVED = 200
"""How much may wait to be written to the index."""


class Capturer:
    """Takes snapshots of one workspace. Whoever calls it holds the lock of its local state."""

    def __init__(
        self,
        root: bytes,
        store: Store,
        local: LocalState,
        pins: Pins,
        options: CaptureOptions,
        watch: bool,
    ) -> None:
        self._root = root
        self._store = store
        self._local = local
        self._pins = pins
        self._options = options
        self._reader = TreeReader(store)
        self._index: Index | None = None
        self._stamp: tuple[int, ...] | None = None
        self._known_contents = KnownContents()
        self._last: Snapshot | None = None
        self._linked: set[bytes] = set()
        self._skipped: dict[bytes, list[Skipped]] = {}
        self.watcher = Watcher(root) if watch else None

    @property
    def _is_watching(self) -> bool:
        return self.watcher is not None and self.watcher.is_watching

    @property
    def folders(self) -> dict[bytes, Folder]:
        """What the last snapshot found."""
        assert self._index is not None
        return self._index.folders

    def sources(self) -> Sources:
        """Return the large files that a fork may be cloned from."""
        return {} if self._index is None else sources(self._index.folders)

    def take(
        self,
        message: str | None = None,
        seconds: float | None = None,
        progress: Progress | None = None,
        wanted: frozenset[bytes] = frozenset(),
        kind: str = "snapshot",
        decide: Decide | None = None,
    ) -> Snapshot:
        """Take a snapshot of the workspace; its note expires after so many seconds, if any.

        Where nothing changed and there is nothing to say, no new note is written. What ``decide``
        returns, once everything was looked at, is said in any case.
        """
        for _ in range(_ATTEMPTS):
            try:
                snapshot = self._attempt(message, seconds, progress, wanted, kind, decide)
            except BaseException:
                self.forget()
                raise
            if snapshot is not None:
                if wanted:
                    self._last = None  # what is ignored was captured for once
                return snapshot
            self.forget(for_good=True)
        raise WorkspaceError(
            "the snapshots of this workspace are removed faster than one can be taken"
        )

    def _attempt(
        self,
        message: str | None,
        seconds: float | None,
        progress: Progress | None,
        wanted: frozenset[bytes],
        kind: str,
        decide: Decide | None,
    ) -> Snapshot | None:
        """Take a snapshot; return None if what it is built on was removed meanwhile."""
        index = self._current_index()
        before = index.pin
        blocks = Blocks(self._store)
        try:
            dirty = self._changes(index) if not wanted else None
            if dirty is not None and not dirty and self._last is not None:
                found = ScanResult()
            else:
                found = self._scan(index, blocks, progress, dirty, wanted)
            snapshot = self._snapshot(index, found, blocks, message)
            decided = decide() if decide is not None else None
            if decided is not None:
                seconds, extra = decided
            elif before is not None and message is None and _serves(before, index, seconds):
                if self._pins.alive(before) is None:
                    return None
                self._save(index, found, can_wait=dirty is not None)
                return snapshot
            else:
                extra = {"kind": kind}
            reach("workspace:scanned")
            index.pin = self._pins.keep(snapshot, blocks.rest(), seconds, extra, before)
            reach("workspace:kept")
        finally:
            blocks.close()
        if index.pin is None:
            return None
        self._save(index, found, can_wait=dirty is not None)
        return snapshot

    def _current_index(self) -> Index:
        """Return the index: read again if another process wrote it, blank if nothing keeps it."""
        stamp = _stamp(self._local.index)
        if self._index is None or stamp != self._stamp:
            self.forget()
            self._stamp = stamp
            options = [self._options.include_ignored, self._options.skip_repositories]
            private = sorted(self._options.private)
            identity = [_FORMAT, self._root, *options, private]
            self._index = Index(self._local.index, identity).load()
        pin = self._index.pin
        if pin is not None and not self._pins.is_known(pin):
            self._index.pin = self._pins.alive(pin)
            if self._index.pin is None:
                self.forget(for_good=True)
                return self._current_index()
        return self._index

    def _changes(self, index: Index) -> Changes | None:
        """Return what changed since the last snapshot, if a watcher can tell."""
        if self.watcher is None:
            return None
        dirty = self.watcher.changes()
        if dirty is None or self._last is None:
            self.watcher.start(index.folders)
            self._last = None
            return None
        again = self._linked & index.folders.keys()
        if self._options.skip_repositories:  # whether a directory is one, its parent has to tell
            listed = [path for path, names in dirty.items() if names is None and path]
            again |= {parent_and_name(path)[0] for path in listed} & index.folders.keys()
            again |= {path for path, others in self._skipped.items() if _has_repository(others)}
        return dirty | dict.fromkeys(again)

    def _scan(
        self,
        index: Index,
        blocks: Blocks,
        progress: Progress | None,
        dirty: Changes | None,
        wanted: frozenset[bytes],
    ) -> ScanResult:
        scanner = Scanner(
            self._root,
            index.folders,
            blocks,
            replace(self._options, wanted=wanted),
            self._pieces_of,
            self._known_contents,
            progress,
            self.watcher.add if self.watcher is not None else None,
        )
        with closing(scanner):
            found = scanner.scan() if dirty is None else scanner.rescan(dirty)
        self._known_contents.note(
            index.folders[path] for path in found.noted & index.folders.keys()
        )
        if self.watcher is not None:
            looked_at = index.folders if dirty is None else found.noted
            self._linked -= set(looked_at)
            self._linked |= found.linked
            self._linked |= {p for p in looked_at if _has_links(index.folders.get(p))}
        return found

    def _snapshot(
        self, index: Index, found: ScanResult, blocks: Blocks, message: str | None
    ) -> Snapshot:
        top = index.folders[b""]
        if self._last is not None and not found.noted and not found.gone:
            same = replace(self._last, message=message, new_bytes=0, unsettled=())
            return same if message is None else replace(same, created_at=datetime.now(UTC))
        if self._last is None:
            self._skipped = {}
        for path in index.folders if self._last is None else found.noted | found.gone:
            self._note_skipped(path, index.folders.get(path))
        snapshot = Snapshot(
            tree_id=top.tree_id.hex(),
            files=top.files,
            bytes=top.size,
            root=ContentLink(top.chunk),
            workspace=self._pins.name,
            message=message,
            created_at=datetime.now(UTC),
            new_bytes=blocks.new_bytes,
            skipped=tuple(sorted(chain.from_iterable(self._skipped.values()), key=_path)),
            unsettled=tuple(map(os.fsdecode, found.unsettled)),
        )
        self._last = snapshot
        return snapshot

    def _note_skipped(self, path: bytes, folder: Folder | None) -> None:
        self._skipped.pop(path, None)
        if folder is not None and folder.others:
            self._skipped[path] = [
                Skipped(os.fsdecode(start_of(path) + name), reason)
                for name, reason in folder.others.items()
                if reason
            ]

    def _save(self, index: Index, found: ScanResult, can_wait: bool = False) -> None:
        """Write down what was found; that may wait where the next snapshot is told what changed."""
        index.note(found.noted, found.gone)
        if index.unsaved > (_UNSAVED if can_wait else 0):
            try:
                index.save()
            except OSError:  # only a cache, and what it is about is kept already
                self.forget(for_good=True)
                return
            self._stamp = _stamp(self._local.index)

    def _pieces_of(self, entry: Entry) -> set[bytes]:
        try:
            return {name for name, _ in self._reader.pieces(entry)}
        except CheckpointIntegrityError:  # gone or damaged, so that all have to be written
            return set()

    def look(
        self, wanted: frozenset[bytes] = frozenset(), decide: Decide | None = None
    ) -> Snapshot:
        """Take a snapshot to compare with, or to be able to go back to."""
        return self.take(seconds=LOOK_SECONDS, wanted=wanted, kind=LOOK, decide=decide)

    def see(self, wanted: frozenset[bytes], decide: Callable[[], object]) -> None:
        """Have something decided of the workspace as it is; nothing of it is kept anywhere."""
        blocks = Blocks(self._store, keeps=False)
        try:
            self._scan(self._current_index(), blocks, None, None, wanted)
            decide()
        finally:
            blocks.close()
            self.forget()

    def forget(self, for_good: bool = False) -> None:
        """Know nothing of the workspace any more; for good, not even from the file."""
        self._index = None
        self._last = None
        self._stamp = None
        self._known_contents.clear()
        if for_good:
            with suppress(FileNotFoundError):
                os.unlink(self._local.index)

    def also_know(self, contents: Mapping[bytes, object]) -> None:
        """Know where contents lie that the note of the last snapshot keeps beside its own."""
        self._known_contents.add_others(contents)

    def kept_by(self, snapshot: Snapshot, checkpoint_id: str) -> None:
        """Know that a checkpoint keeps the snapshot taken last."""
        index = self._index
        if index is not None and index.pin is not None:
            pin = index.pin
            if pin.chunk == snapshot.root.name:
                index.pin = pin.also_kept_by(checkpoint_id)
                self._save(index, ScanResult(), can_wait=self._is_watching)

    def close(self) -> None:
        """Write down what waited for that, and stop watching."""
        index = self._index
        # It is gone where somebody removed it, and another's where somebody else wrote it.
        if index is not None and index.unsaved and _stamp(self._local.index) == self._stamp:
            with suppress(OSError), self._local.mutex, self._local.alone():  # only a cache
                if _stamp(self._local.index) == self._stamp:
                    self._save(index, ScanResult())
        if self.watcher is not None:
            self.watcher.close()


def _serves(pin: Pin, index: Index, seconds: float | None) -> bool:
    """Return whether what keeps the last snapshot keeps this one too, and for long enough."""
    top = index.folders[b""]
    if (pin.tree_id, pin.chunk) != (top.tree_id, top.chunk):
        return False
    if pin.until is None:
        return True
    return seconds is not None and pin.until - time.time() > seconds / 2


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _has_repository(others: list[Skipped]) -> bool:
    return any(skipped.reason == REPOSITORY for skipped in others)


def _path(skipped: Skipped) -> str:
    return skipped.path


def _has_links(folder: Folder | None) -> bool:
    """Return whether a file in it has other names, through which it may change unseen."""
    return folder is not None and any(
        key is not None and key[LINKS] > 1 and stat.S_ISREG(key[MODE])
        for key in folder.keys.values()
    )
