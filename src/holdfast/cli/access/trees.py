"""The files that checkpoints hold: trees in the store, and the directory they came from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.cli.exits import NotFound

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import Snapshot, TreeDiff
    from holdfast.workspace.capture import Progress


def compare_trees(
    client: SyncClient, old: CheckpointInfo, new: CheckpointInfo, text: bool
) -> TreeDiff | None:
    """Return what changed in files between two checkpoints; None if neither has any."""
    from holdfast.client.with_files import snapshot_of
    from holdfast.workspace.diff import compare
    from holdfast.workspace.tree_reader import TreeReader

    before, after = snapshot_of(client, old), snapshot_of(client, new)
    if before is None and after is None:
        return None
    roots = [None if each is None else each.root.name for each in (before, after)]
    return compare(TreeReader(client.store), roots[0], roots[1], text)


def compare_now(client: SyncClient, old: CheckpointInfo, text: bool) -> TreeDiff:
    """Return what changed in files since a checkpoint."""
    from holdfast.cli.access.directories import elsewhere, folder_for
    from holdfast.client.with_files import snapshot_of
    from holdfast.workspace import Workspace

    before = snapshot_of(client, old)
    if before is None:
        raise NotFound(f"checkpoint {old.checkpoint_id!r} was saved without files")
    folder = folder_for(client, old, before)
    if folder is None:
        raise NotFound(f"{elsewhere(old, before)}: go there first")
    with Workspace(folder, store=client) as workspace:
        return workspace.diff(before, text=text)


def folder_of(snapshot: Any) -> Path | None:
    """Return the directory that a snapshot was taken of, if it is this one or above it."""
    from holdfast.workspace.registry import default_name

    here = Path.cwd().resolve()
    for folder in (here, *here.parents):
        if default_name(os.fsencode(folder)) == snapshot.workspace:
            return folder
    return None


def unpack(
    client: SyncClient, snapshot: Snapshot, directory: Path, progress: Progress | None = None
) -> None:
    """Make a new directory of a snapshot."""
    from holdfast.stores.capabilities import files_of
    from holdfast.workspace.fork import fork
    from holdfast.workspace.tree_reader import TreeReader

    place, store = os.fsencode(os.path.abspath(directory)), client.store
    fork(TreeReader(store), snapshot, place, progress, files=files_of(store))


def find_tree(client: SyncClient, given: str, session: str | None) -> Snapshot:
    """Return the files that are meant: those of a checkpoint, or a tree by its id."""
    from holdfast.cli.access.naming import Names
    from holdfast.client.with_files import snapshot_of
    from holdfast.errors import CheckpointNotFoundError
    from holdfast.workspace.pins import Pins

    try:
        info = Names(client).checkpoint(given, session)
    except NotFound as missing:
        try:
            return Pins(client.store, "any").resolve(given)
        except CheckpointNotFoundError:
            raise missing from None
    found = snapshot_of(client, info)
    if found is None:
        raise NotFound(f"checkpoint {info.checkpoint_id!r} was saved without files")
    return found
