"""A tree with other entries at some paths, made without touching any file."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.workspace.blocks import Blocks
from holdfast.workspace.entries import DIRECTORY, Entry, pack_tree
from holdfast.workspace.paths import depth, parent_and_name
from holdfast.workspace.tree_reader import TreeReader

_NEW_DIRECTORY = 0o755


def with_entries(
    reader: TreeReader, blocks: Blocks, root: bytes, changes: Mapping[bytes, Entry]
) -> tuple[bytes, bytes, int, int]:
    """Return the id and chunk of a tree with these files too, and the files and bytes it gained.

    Directories that the tree has not are added; what stands in the way of one is replaced by it.
    """
    above = {
        b"/".join(path.split(b"/")[:parts]) for path in changes for parts in range(path.count(b"/"))
    } | {parent_and_name(path)[0] for path in changes}
    folders: dict[bytes, dict[bytes, Entry]] = {}
    for path in sorted(above | {b""}, key=_by_depth):
        folders[path] = _entries(reader, root, path, folders)
    files = size = 0
    for path, entry in changes.items():
        folder, name = parent_and_name(path)
        before = folders[folder].get(name)
        is_file = before is not None and before.kind != DIRECTORY
        files += not is_file
        size += entry.size - (before.size if before is not None and is_file else 0)
        folders[folder][name] = entry
    identity = chunk = b""
    for path in sorted(folders, key=_by_depth, reverse=True):
        identity, raw = pack_tree(dict(sorted(folders[path].items())))
        chunk = blocks.keep(raw)
        if path:
            folder, name = parent_and_name(path)
            before = folders[folder].get(name)
            is_directory = before is not None and before.kind == DIRECTORY
            mode = before.mode if before is not None and is_directory else _NEW_DIRECTORY
            folders[folder][name] = Entry(DIRECTORY, mode, 0, 0, identity, chunk)
    return identity, chunk, files, size


def _entries(
    reader: TreeReader, root: bytes, path: bytes, folders: Mapping[bytes, Mapping[bytes, Entry]]
) -> dict[bytes, Entry]:
    """Return what the tree has in a directory; nothing where it has none."""
    if not path:
        return dict(reader.tree(root).entries)
    folder, name = parent_and_name(path)
    entry = folders[folder].get(name)
    if entry is None or entry.kind != DIRECTORY:
        return {}
    return dict(reader.tree(entry.location).entries)


def _by_depth(path: bytes) -> tuple[int, bytes]:
    return depth(path), path
