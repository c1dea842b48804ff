"""The tree that leads back from a restore, which grows by what comes while it is carried out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.stores.base import Store
from holdfast.workspace.blocks import Blocks
from holdfast.workspace.content_reader import ContentReader
from holdfast.workspace.entries import Entry
from holdfast.workspace.pins import PARTIAL, PATHS, Pins
from holdfast.workspace.results import Snapshot
from holdfast.workspace.tree_edits import with_entries
from holdfast.workspace.tree_reader import TreeReader

UNDO_SECONDS = 30 * 24 * 3600.0
"""How long the tree that leads back from a restore is kept, unless a checkpoint keeps it."""


class UndoTree:
    """What was captured before a restore, and with it whatever was found to be newer."""

    def __init__(
        self, store: Store, reader: TreeReader, pins: Pins, undo: Snapshot, note: Mapping[str, Any]
    ) -> None:
        self._reader = reader
        self._pins = pins
        self._undo = undo
        self._note = note
        self._blocks = Blocks(store)
        self.content_reader = ContentReader(self._blocks, lambda content: None, lambda entry: ())
        self.snapshot = undo

    def keep(self, changes: Mapping[bytes, Entry]) -> None:
        """Lead back to these files too, durably."""
        self._blocks.settle()
        settled = {path: self.content_reader.settled(entry) for path, entry in changes.items()}
        identity, chunk, files, size = with_entries(
            self._reader, self._blocks, self._undo.root.name, settled
        )
        self.snapshot = replace(
            self._undo,
            tree_id=identity.hex(),
            root=ContentLink(chunk),
            files=self._undo.files + files,
            bytes=self._undo.bytes + size,
        )
        rest = self._blocks.rest()
        self._pins.keep(self.snapshot, rest, UNDO_SECONDS, self._note, None)

    def close(self) -> None:
        """Let go of threads."""
        self._blocks.close()


def undo_note(target: Snapshot, paths: list[bytes] | None) -> dict[str, Any]:
    """Return what the note of a tree that leads back says besides."""
    note = {"kind": "undo", "target": target.root, "message": "before a restore"}
    return note if paths is None else {**note, PARTIAL: True, PATHS: paths}
