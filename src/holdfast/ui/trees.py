"""The trees of files that checkpoints hold, and what one changed since the one before it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from holdfast.cli.access.parts import parts_of
from holdfast.cli.exits import NotFound, UsageError
from holdfast.core.short_repr import brief
from holdfast.errors import CheckpointIntegrityError
from holdfast.system.recent import Recent
from holdfast.ui.tree_paths import shown
from holdfast.workspace.diff import compare
from holdfast.workspace.entries import DIRECTORY, SYMLINK, Entry
from holdfast.workspace.results import Snapshot
from holdfast.workspace.tree_reader import TreeReader

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import TreeDiff

Mark = Literal["added", "removed", "modified", "renamed", "mode"]


def snapshot_in(client: SyncClient, info: CheckpointInfo) -> Snapshot | None:
    """Return the files of a checkpoint, of whose state nothing is read; None if it has none."""
    part = parts_of(client, info, "workspace")["workspace"]
    try:
        return None if part is None else Snapshot.from_value(part, info.created_at)
    except CheckpointIntegrityError as error:
        raise CheckpointIntegrityError(info.checkpoint_id, error.reason) from None


def root_of(client: SyncClient, info: CheckpointInfo) -> bytes | None:
    """Return the tree of a checkpoint; None if it was saved without files."""
    found = snapshot_in(client, info)
    return None if found is None else found.root.name


def entry_at(client: SyncClient, root: bytes, path: bytes) -> Entry:
    """Return what stands at a path of a tree."""
    entry = TreeReader(client.store).find(root, path)
    if entry is None:
        raise NotFound(f"the checkpoint has no file {brief(shown(path))}")
    return entry


def bytes_of(client: SyncClient, entry: Entry, most: int) -> bytes:
    """Return what a file or a link holds, or how it begins."""
    if entry.kind == SYMLINK:
        return bytes(entry.location)
    if entry.kind == DIRECTORY:
        raise UsageError("that is a directory")
    found = bytearray()
    for piece in TreeReader(client.store).read(entry):
        found += piece
        if len(found) >= most:
            break
    return bytes(found[:most])


@dataclass(frozen=True)
class Changes:
    """What changed from one tree to another, found by path and by directory."""

    marks: dict[bytes, Mark] = field(default_factory=dict)
    old_names: dict[bytes, bytes] = field(default_factory=dict)
    """What renamed files were called before."""
    gone: dict[bytes, dict[bytes, bool]] = field(default_factory=dict)
    """By directory, the names that are not there any more, and whether each was a directory."""
    above: frozenset[bytes] = frozenset()
    """Directories in which something changed."""
    counts: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, found: TreeDiff) -> Changes:
        """Return the same, as it is asked for."""
        marks: dict[bytes, Mark] = {}
        kinds: tuple[Mark, ...] = ("mode", "added", "removed", "modified")
        for kind in kinds:
            marks |= dict.fromkeys(map(_path, getattr(found, kind)), kind)
        old_names = {_path(new): _path(old) for old, new in found.renamed}
        marks |= dict.fromkeys(old_names, "renamed")
        gone: dict[bytes, dict[bytes, bool]] = {}
        for text in found.removed:
            path, is_directory = _path(text), text.endswith("/")
            for directory in _directories(path):
                name = path[len(directory) :].lstrip(b"/")
                gone.setdefault(directory, {}).setdefault(name, is_directory)
                path, is_directory = directory, True
        above = frozenset(each for path in marks for each in _directories(path))
        counts = {name: len(getattr(found, name)) for name in COUNTED}
        return cls(marks, old_names, gone, above, counts)

    def mark(self, path: bytes, is_directory: bool) -> Mark | None:
        """Return what became of a path."""
        found = self.marks.get(path)
        return "modified" if found is None and is_directory and path in self.above else found


COUNTED = ("added", "removed", "modified", "renamed", "mode")
_recent: Recent[tuple[bytes, bytes], Changes] = Recent(16)
"""Trees never change, so neither does what differs between two."""


def changes_between(client: SyncClient, old: bytes, new: bytes) -> Changes:
    """Return what changed from one tree to another."""
    found = _recent.get((old, new))
    if found is None:
        found = Changes.of(compare(TreeReader(client.store), old, new))
        _recent.put((old, new), found)
    return found


def _path(text: str) -> bytes:
    return os.fsencode(text).rstrip(b"/")


def _directories(path: bytes) -> Iterable[bytes]:
    """Yield the directories above a path, the nearest first and the root of all last."""
    while path:
        path = path.rpartition(b"/")[0]
        yield path
