"""What keeps trees in the store: notes of the workspace, and checkpoints that hold them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from holdfast.client.sync import SyncClient
from holdfast.core.raw import Link
from holdfast.errors import (
    AmbiguousIdError,
    CheckpointNotFoundError,
    HoldfastError,
    InvalidArgumentError,
    WorkspaceError,
)
from holdfast.ids import new_id
from holdfast.model import Checkpoint, moment
from holdfast.stores.base import NOTE_TIES, Note, NotesOnly, Query, Store
from holdfast.verbs import notes
from holdfast.workspace.index import Anchor
from holdfast.workspace.results import Snapshot

SCOPES = "/workspaces/"
LOOK = "look"
"""The kind of a note that keeps a snapshot which was only taken to compare."""
_TREE_ID = re.compile(r"[0-9a-f]{6,40}")


class Keeper:
    """The notes of one workspace, and the trees it knows by their ids."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._client = SyncClient(store)
        self.scope = SCOPES + name
        self._known: dict[str, Snapshot] = {}

    def keep(
        self,
        snapshot: Snapshot,
        chunks: Mapping[bytes, bytes],
        seconds: float | None,
        extra: Mapping[str, Any],
        before: Anchor | None,
    ) -> Anchor | None:
        """Write a note that leads to a snapshot, together with chunks; it may expire.

        None if what the snapshot is built on is kept no more.
        """
        until = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
        written, key = notes.Written(), new_id()
        value = {**snapshot.as_value(), **extra}
        written.add(self._client._engine, self.scope, key, value, until)
        self._store.commit(NotesOnly(written.notes, {**chunks, **written.chunks}))
        self.remember(snapshot)
        scopes = {self.scope} if before is None else {self.scope, before.scope}
        found = self._store.notes(scopes, _just_before(before))
        if before is not None and not self._is_kept(before, found):
            return None
        return Anchor(
            self.scope,
            key,
            next((note.seq for note in found if note.key == key), 0),
            bytes.fromhex(snapshot.tree_id),
            snapshot.root.name,
            None if until is None else until.timestamp(),
        )

    def is_alive(self, anchor: Anchor) -> bool:
        """Whether a note or checkpoint still keeps the tree; asked after every use of its chunks.

        If it does, no collection that began earlier can have removed what the tree needs.
        """
        return self._is_kept(anchor, self._store.notes([anchor.scope], _just_before(anchor), 1))

    def _is_kept(self, anchor: Anchor, found: Iterable[Note]) -> bool:
        if any(note.key == anchor.key for note in found):
            return True
        return bool(anchor.checkpoints and self._store.query(Query(ids=anchor.checkpoints)))

    def remember(self, snapshot: Snapshot) -> None:
        """Know a tree by its id without asking the store."""
        self._known[snapshot.tree_id] = snapshot

    def snapshots(self, everywhere: bool = False, looks: bool = True) -> list[Snapshot]:
        """The snapshots that notes of this workspace keep (or of all), oldest first.

        Those that were only taken to compare are left out where nobody looks for them.
        """
        return [
            Snapshot.from_value(value, moment(note.seq // NOTE_TIES))
            for note, value in self._notes(None if everywhere else [self.scope])
            if looks or value.get("kind") != LOOK
        ]

    def _notes(self, scopes: list[str] | None) -> list[tuple[Note, Any]]:
        found = self._client._run(notes.read(self._client._engine, scopes))
        return [(note, value) for note, value in found if note.scope.startswith(SCOPES)]

    def last(self) -> bytes | None:
        """The tree that was kept or restored last, if any was."""
        for _, value in reversed(self._notes([self.scope])):
            if value.get("kind") != LOOK:
                link: Link = value.get("target") or value["tree"]
                return link.name
        return None

    def resolve(self, tree: object) -> Snapshot:
        """The snapshot that a user means: one, a checkpoint, or the id of a tree or checkpoint."""
        if isinstance(tree, Snapshot):
            return tree
        if isinstance(tree, Checkpoint):
            return self._of(tree)
        if not isinstance(tree, str):
            raise InvalidArgumentError(
                f"a tree is a Snapshot, a tree id or a checkpoint id, not {type(tree).__name__}"
            )
        if _TREE_ID.fullmatch(tree):
            for known in (self._known.values(), self.snapshots(), self.snapshots(everywhere=True)):
                found = {s.tree_id: s for s in known if s.tree_id.startswith(tree)}
                if len(found) > 1:
                    raise AmbiguousIdError(tree, sorted(found)[:3])
                if found:
                    return next(iter(found.values()))
        try:
            return self._of(self._client.restore(tree, on_unknown="raw"))
        except CheckpointNotFoundError:
            raise CheckpointNotFoundError(
                tree, "no snapshot and no checkpoint in this store has that id"
            ) from None

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


def _just_before(anchor: Anchor | None) -> int:
    """After which its note is the first."""
    return 0 if anchor is None else max(0, anchor.seq - 1)
