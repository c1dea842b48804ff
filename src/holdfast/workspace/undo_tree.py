"""The tree that leads back from a restore, which grows by what comes while it is carried out."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.core.kinds.content_links import ContentLink
from holdfast.stores.base import Store
from holdfast.workspace.amend import amended
from holdfast.workspace.blocks import Blocks
from holdfast.workspace.contents import Contents
from holdfast.workspace.entries import DIRECTORY, Entry, Tree
from holdfast.workspace.pins import Keeper
from holdfast.workspace.results import Snapshot
from holdfast.workspace.tree_reader import Shelf

UNDO_SECONDS = 30 * 24 * 3600.0
"""How long the tree that leads back from a restore is kept, unless a checkpoint keeps it."""


class WayBack:
    """What was captured before a restore, and with it whatever was found to be newer."""

    def __init__(
        self, store: Store, shelf: Shelf, keeper: Keeper, undo: Snapshot, note: Mapping[str, Any]
    ) -> None:
        self._shelf = shelf
        self._keeper = keeper
        self._undo = undo
        self._note = note
        self._blocks = Blocks(store)
        self.contents = Contents(self._blocks, lambda content: None, lambda entry: ())
        self.snapshot = undo

    def keep(self, changes: Mapping[bytes, Entry]) -> None:
        """Lead back to these files too, durably."""
        self._blocks.settle()
        settled = {path: self.contents.settled(entry) for path, entry in changes.items()}
        identity, chunk, files, size = amended(
            self._shelf, self._blocks, self._undo.root.name, settled
        )
        self.snapshot = replace(
            self._undo,
            tree_id=identity.hex(),
            root=ContentLink(chunk),
            files=self._undo.files + files,
            bytes=self._undo.bytes + size,
        )
        rest = self._blocks.rest()
        self._keeper.keep(self.snapshot, rest, UNDO_SECONDS, self._note, None)

    def close(self) -> None:
        """Let go of threads."""
        self._blocks.close()


class Lookup:
    """Finds entries of a tree by path, each directory read once."""

    def __init__(self, shelf: Shelf, root: bytes) -> None:
        self._shelf = shelf
        self._root = root
        self._trees: dict[bytes, Tree] = {}

    def find(self, path: bytes) -> Entry | None:
        """What stands at a path, if anything does."""
        chunk, entry = self._root, None
        for name in path.split(b"/"):
            if entry is not None:
                if entry.kind != DIRECTORY:
                    return None
                chunk = entry.place
            if chunk not in self._trees:
                self._trees[chunk] = self._shelf.tree(chunk)
            entry = self._trees[chunk].entries.get(name)
            if entry is None:
                return None
        return entry


def shown(path: bytes) -> str:
    """A path as messages have it."""
    return repr(os.fsdecode(path))
