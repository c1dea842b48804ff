"""What the file store writes: documents, the notes that belong to them, and chunks."""

from __future__ import annotations

import os
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from typing import Any

from holdfast.errors import (
    CheckpointConflictError,
    FencedError,
    MissingBaseError,
    MissingParentError,
    NotTheHeadError,
)
from holdfast.stores.base import Commit, NotesOnly, place_after, seq_of
from holdfast.stores.file.chunks import ChunkFiles
from holdfast.stores.file.document import compose
from holdfast.stores.file.errors import naming
from holdfast.stores.file.folders import BINARY, JSON, DocumentFolders
from holdfast.stores.file.notes import Notes
from holdfast.stores.file.order import Order
from holdfast.stores.file.reads import FileReads
from holdfast.system.crash_points import reach

_PART = 100


class FileWrites:
    """Writes the documents, notes and chunks below a root."""

    def __init__(
        self,
        folders: DocumentFolders,
        notes: Notes,
        chunks: ChunkFiles,
        reads: FileReads,
        as_json: bool,
    ) -> None:
        self._folders = folders
        self._notes = notes
        self._chunks = chunks
        self._reads = reads
        self._order = Order(folders, reads.in_order)
        self._as_json = as_json

    def commit(self, commit: Commit | NotesOnly) -> None:
        """Keep a record, its notes, or chunks that stand on their own: all or nothing, durably."""
        if isinstance(commit, NotesOnly) and commit.chunks:
            self._chunks.put(commit.chunks)
        if not commit.notes and commit.unless is None:
            if isinstance(commit, Commit):
                self._publish(commit, self._checked(commit))
            return
        with self._notes.changing():
            if commit.unless is not None and self._notes.has(*commit.unless):
                raise FencedError(commit.unless)
            if isinstance(commit, Commit):
                self._publish_with_notes(commit)
            elif commit.notes:
                self._notes.add(commit.notes).keep()
                reach("file:committed")

    def _publish_with_notes(self, commit: Commit) -> None:
        path = self._checked(commit)
        compose(commit, self._as_json)  # what cannot be kept is found before anything is written
        promise = self._notes.add(commit.notes, commit.info)
        try:
            self._publish(commit, path)
        except CheckpointConflictError:
            promise.take_back()
            raise
        except BaseException:  # an interrupt may come when the record is there already
            promise.settle()
            raise
        promise.keep()

    def _checked(self, commit: Commit) -> str:
        """Return the path of a record, if it may be kept."""
        info, folders = commit.info, self._folders
        suffix = JSON if self._as_json else BINARY
        path = folders.path(info.agent_id, info.session_id, info.checkpoint_id, suffix)
        folder = os.path.dirname(path)
        if folders.find(info.checkpoint_id, folder) is not None:
            raise CheckpointConflictError(info.checkpoint_id)
        if commit.base is not None:
            raise MissingBaseError  # a document holds all chunks it needs
        if commit.needs_parent and info.parent_id and not folders.find(info.parent_id, folder):
            raise MissingParentError
        return path

    def _publish(self, commit: Commit, path: str) -> None:
        info, folder = commit.info, os.path.dirname(path)

        def composed(seq: int | None) -> bytes:
            with naming(info.checkpoint_id):
                return compose(commit, self._as_json, seq)

        def placed() -> int | None:
            last = self._order.last(folder)
            if commit.follows is not None and commit.follows != ("" if last is None else last[1]):
                raise NotTheHeadError
            after = None if last is None else last[0]
            if commit.behind is not None:
                before = self._reads.summaries(self._reads.places(commit.behind))
                after = max((each.seq for each in before), default=None)
            seq = place_after(info.created_at, after)
            if last is None or seq > last[0]:
                self._order.follow(folder, seq, info.checkpoint_id)
            return None if seq == seq_of(info.created_at) else seq

        self._folders.publish(info.checkpoint_id, path, composed, placed)

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        """Remove records and the notes of these scopes; return how many records there were."""
        ids, removed = list(checkpoint_ids), 0
        for start in range(0, len(ids), _PART):  # whoever writes notes comes in between
            part = ids[start : start + _PART]
            with self._changing_notes():
                # Records first: notes without one are no harm, and gc removes them.
                removed += sum([self._folders.remove(i) for i in part])
                self._notes.remove(part)
            reach("upkeep:part")
        return removed

    def sweep(self, now: datetime) -> int:
        """Remove what has expired and what dead writers left; return how many records."""
        expired = self._reads.expired(now)
        self._folders.tidy()
        self._chunks.tidy()
        with self._changing_notes():
            self._notes.sweep(now)
        return self.delete(expired)

    def _changing_notes(self) -> AbstractContextManager[Any]:
        """Hold the notes, so that no record is removed which notes half written wait for."""
        if not self._notes.any():
            return nullcontext()
        held = self._notes.changing()
        try:
            self._notes.sync()  # else a promise kept long ago may come back when the record is gone
        except BaseException:
            held.close()
            raise
        return held
