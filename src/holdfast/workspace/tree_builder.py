"""Making the trees of folders that changed, and of all above them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.workspace.blocks import Blocks
from holdfast.workspace.content_reader import ContentReader
from holdfast.workspace.entries import DIRECTORY, BlockLocation, pack_tree
from holdfast.workspace.index import Folder
from holdfast.workspace.paths import depth, parent_and_name, start_of


def build_trees(
    folders: Mapping[bytes, Folder],
    changed: Iterable[bytes],
    blocks: Blocks,
    content_reader: ContentReader,
) -> set[bytes]:
    """Make the trees of changed folders and of all above them; return the paths of these."""
    blocks.settle()
    affected = set(changed)
    for path in changed:
        while path:
            path = parent_and_name(path)[0]
            affected.add(path)
    for path in sorted(affected, key=depth, reverse=True):
        _build(folders, folders[path], blocks, content_reader)
    return affected


def _build(
    folders: Mapping[bytes, Folder], folder: Folder, blocks: Blocks, content_reader: ContentReader
) -> None:
    files = size = 0
    entries = folder.entries
    start = start_of(folder.path)
    for name, entry in entries.items():
        if entry.kind == DIRECTORY:
            inner = folders[start + name]
            files += inner.files
            size += inner.size
            if entry.content != inner.tree_id or entry.location != inner.chunk:
                entries[name] = entry._replace(content=inner.tree_id, location=inner.chunk)
        else:
            files += 1
            size += entry.size
            at = entry.location
            if at is not None and type(at) is not BlockLocation and type(at) is not bytes:
                entries[name] = content_reader.settled(entry)
    folder.files, folder.size = files, size
    identity, raw = pack_tree(entries)
    if identity != folder.tree_id:
        folder.tree_id, folder.chunk = identity, blocks.keep(raw)
