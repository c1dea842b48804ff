"""What earlier restores made, of which a tree is the way back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property

from holdfast.errors import CheckpointIntegrityError
from holdfast.workspace.entries import DIRECTORY, Entry
from holdfast.workspace.selection import Selection
from holdfast.workspace.tree_reader import TreeLookup, TreeReader

Restores = Iterable[tuple[bytes, list[bytes] | None]]
"""Trees that were restored, each with the paths that were chosen."""


class MadeBefore:
    """Tells whether something is what a restore made, and so was not there before it."""

    def __init__(self, reader: TreeReader, restores: Callable[[], Restores]) -> None:
        self._reader = reader
        self._restores = restores

    @cached_property
    def _known(self) -> list[tuple[TreeLookup, Selection]]:
        found = self._restores()
        return [(TreeLookup(self._reader, root), Selection(paths)) for root, paths in found]

    def holds(self, path: bytes, now: Entry) -> bool:
        """Return whether what is at a path now came from one of these restores."""
        return any(
            selection.holds(path) and _is_same(lookup, path, now)
            for lookup, selection in self._known
        )


def _is_same(lookup: TreeLookup, path: bytes, now: Entry) -> bool:
    try:
        made = lookup.find(path)
    except CheckpointIntegrityError:
        return False  # a tree that is gone says nothing
    return (
        made is not None
        and made.kind == now.kind
        and (now.kind == DIRECTORY or made.content == now.content)
    )
