"""What keeps trees in the store: notes of the workspace, and checkpoints that hold them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import (
    AmbiguousIdError,
    CheckpointNotFoundError,
    HoldfastError,
    InvalidArgumentError,
    MissingBaseError,
    WorkspaceError,
)
from holdfast.ids import new_id
from holdfast.model import Checkpoint, moment
from holdfast.runtime import SyncRuntime
from holdfast.stores.base import NOTE_TIES, Note, NotesOnly, Query, Store, end_of_page
from holdfast.stores.capabilities import TellsChanges
from holdfast.verbs import notes
from holdfast.verbs.read import restore
from holdfast.workspace.index import Pin
from holdfast.workspace.results import Snapshot

SCOPES = "/workspaces/"
LOOK = "look"
"""The kind of a note that keeps a snapshot which was only taken to compare."""
PARTIAL = "partial"
"""Marks the note of a restore of some paths."""
PATHS = "paths"
"""Which they were; notes of earlier versions do not say."""
_FIRST = 8
"""So many notes are read first by who looks for the last of some kind."""
_PAGE = 500
_TREE_ID = re.compile(r"[0-9a-f]{6,40}")


class Pins:
    """The notes of one workspace, and the trees it knows by their ids."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._changes = store.capability(TellsChanges)  # once, as that takes a while
        self._runtime = SyncRuntime(store)
        self.name = name
        self.scope = SCOPES + name
        self._known: dict[str, Snapshot] = {}
        self._alive: tuple[str, Any] = ("", None)
        """The key of a pin that was there, and what the store said of removals before that."""

    def keep(
        self,
        snapshot: Snapshot,
        chunks: Mapping[bytes, bytes],
        seconds: float | None,
        extra: Mapping[str, Any],
        before: Pin | None,
    ) -> Pin | None:
        """Write a note that leads to a snapshot, together with chunks; it may expire.

        None if what the snapshot is built on is kept no more.
        """
        until = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        written, key = notes.NoteBatch(), new_id()
        value = {**snapshot.as_value(), **extra}
        written.add(self._runtime.engine, self.scope, key, value, until)
        commit = NotesOnly(written.notes, {**chunks, **written.chunks})
        if before is None:
            self._store.commit(commit)
        else:
            found = self._commit(commit, before)
            if found is None:
                return None
            before = found
        self.remember(snapshot)
        return Pin(
            self.scope,
            key,
            before.after if before is not None and before.scope == self.scope else 0,
            bytes.fromhex(snapshot.tree_id),
            snapshot.root.name,
            None if until is None else until.timestamp(),
        )

    def _commit(self, commit: NotesOnly, before: Pin) -> Pin | None:
        """Write what is built on a pin; None if that is there no more."""
        if self.is_known(before):
            _, removals = self._alive
            try:
                self._store.commit(replace(commit, removals=removals))
            except MissingBaseError:
                pass  # something was removed: perhaps this
            else:
                self._alive = commit.notes[0].key, removals
                return before
        found = self.alive(before)
        if found is None:
            return None
        self._store.commit(commit)
        return self.alive(found)

    def is_known(self, pin: Pin) -> bool:
        """Return whether it is there unless something was removed, which the store will tell."""
        key, removals = self._alive
        is_kept = pin.until is None or pin.until > time.time()
        return key == pin.key and removals is not None and is_kept

    def alive(self, pin: Pin) -> Pin | None:
        """Return the pin, if a note or checkpoint still keeps its tree.

        Asked after every use of its chunks: if one does, no collection that began earlier can have
        removed what the tree needs.
        """
        removals = None if self._changes is None else self._changes.removals()
        if self.is_known(pin) and self._alive[1] == removals:
            return pin
        found = self._store.notes([pin.scope], pin.after)
        note = next((note for note in found if note.key == pin.key), None)
        if note is not None:
            pin = replace(pin, after=note.seq - 1)
        elif not (pin.checkpoints and self._store.query(Query(ids=pin.checkpoints))):
            return None
        self._alive = pin.key, removals
        return pin

    def remember(self, snapshot: Snapshot) -> None:
        """Know a tree by its id without asking the store."""
        self._known[snapshot.tree_id] = snapshot

    def snapshots(self, everywhere: bool = False, looks: bool = True) -> list[Snapshot]:
        """Return the snapshots that notes of this workspace keep (or of all), oldest first.

        Those that were only taken to compare are left out where nobody looks for them.
        """
        return [
            Snapshot.from_value(value, moment(note.seq // NOTE_TIES))
            for note, value in self._notes(None if everywhere else [self.scope])
            if looks or value.get("kind") != LOOK
        ]

    def _notes(self, scopes: list[str] | None) -> list[tuple[Note, Any]]:
        engine = self._runtime.engine
        if scopes is not None:
            return self._runtime.run(notes.read(engine, scopes))
        found: list[tuple[Note, Any]] = []
        after = 0
        while page := self._store.notes(None, after, _PAGE):
            after = end_of_page(page, after)
            ours = [note for note in page if note.scope.startswith(SCOPES)]
            found += self._runtime.run(notes.with_values(engine, ours))
        return found

    def last(self) -> bytes | None:
        """Return the tree that was kept or restored (as a whole) last, if any was."""
        for value in self._newest_first():
            if value.get("kind") != LOOK and not value.get(PARTIAL):
                link: ContentLink = value.get("target") or value["tree"]
                return link.name
        return None

    def _newest_first(self) -> Iterator[Any]:
        """Give the values of this workspace's notes, reading as many as are asked for."""
        engine, given, count = self._runtime.engine, 0, _FIRST
        while True:
            found = self._runtime.run(notes.read_last(engine, [self.scope], count))
            newest = found[::-1]
            yield from (value for _, value in newest[given:])
            if len(found) < count:
                return
            given, count = len(found), 4 * count

    def restores_from(self, tree_id: str) -> list[tuple[bytes, list[bytes] | None]]:
        """Return the trees that restores led to from this one, each with the paths if chosen."""
        return [
            (value["target"].name, value.get(PATHS))
            for _, value in self._notes([self.scope])
            if value.get("target") and value["tree_id"] == tree_id
            if PATHS in value or not value.get(PARTIAL)
        ]

    def resolve(self, tree: object) -> Snapshot:
        """Return the snapshot that is meant: itself, or that of a checkpoint, or by an id."""
        if isinstance(tree, Snapshot):
            return tree
        if isinstance(tree, Checkpoint):
            return self._of(tree)
        if not isinstance(tree, str):
            raise InvalidArgumentError(
                f"a tree is a Snapshot, a tree id or a checkpoint id, not {type(tree).__name__}"
            )
        if tree in self._known:
            return self._known[tree]
        try:  # the store finds these by themselves; of trees every note has to be read
            return self._of(self._runtime.run(restore(self._runtime.engine, tree, True, "raw")))
        except CheckpointNotFoundError:
            found = self._tree(tree) if _TREE_ID.fullmatch(tree) else None
        if found is None:
            raise CheckpointNotFoundError(
                tree, "no snapshot and no checkpoint in this store has that id"
            )
        return found

    def _tree(self, tree_id: str) -> Snapshot | None:
        """Return the snapshot of a tree, by its id or the beginning of it; None if none is kept."""
        for known in (self._known.values(), self.snapshots(), self.snapshots(everywhere=True)):
            found = {each.tree_id: each for each in known if each.tree_id.startswith(tree_id)}
            if len(found) > 1:
                raise AmbiguousIdError(tree_id, sorted(found)[:3])
            if found:
                return next(iter(found.values()))
        return None

    def _of(self, checkpoint: Checkpoint) -> Snapshot:
        if checkpoint.workspace is None:
            raise WorkspaceError(
                f"checkpoint {checkpoint.checkpoint_id!r} was saved without a workspace: "
                "save with workspace=... to keep files with it"
            )
        try:
            return Snapshot.from_value(checkpoint.workspace, checkpoint.created_at)
        except HoldfastError as error:
            raise WorkspaceError(f"checkpoint {checkpoint.checkpoint_id!r}: {error}") from None
