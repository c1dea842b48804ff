"""The store's own files, which are no part of a workspace that they lie in."""

from __future__ import annotations

import os
from collections.abc import Iterator

from holdfast.errors import WorkspaceError
from holdfast.stores.base import Store
from holdfast.stores.capabilities import OnDisk
from holdfast.stores.wrapper import WrappedStore

_MOST_LINKS = 40
"""The kernel follows no more."""


def private_paths(store: Store, root: bytes) -> frozenset[bytes]:
    """Return what of the store lies in the workspace, and so is never captured or touched.

    The way to it as well: a symlink that was followed to reach the store.
    """
    start = root.rstrip(b"/") + b"/"
    owned: list[str] = []
    for on_disk in _on_disk(store):
        beside = (f"{file}.workspaces" for file in on_disk.files)
        owned += [*on_disk.files, *beside, *on_disk.files_apart]
    found: set[bytes] = set()
    for path in owned:
        for whole in _ways_to(os.fsencode(os.path.abspath(path))):
            if whole == root:
                raise WorkspaceError(
                    f"{os.fsdecode(root)!r} is the store itself: keep the store somewhere else"
                )
            if whole.startswith(start):
                found.add(whole[len(start) :])
    return frozenset(found)


def _on_disk(store: Store) -> Iterator[OnDisk]:
    """Yield what lives on this disk: of a store, and of every store within it.

    A wrapper may have files of its own and say nothing of those that it wraps.
    """
    while True:
        found = store.capability(OnDisk)
        if found is not None:
            yield found
        if not isinstance(store, WrappedStore):
            return
        store = store.inner


def _ways_to(path: bytes) -> list[bytes]:
    """Return where a path ends, and before that every symlink on its way."""
    links: list[bytes] = []
    at, rest = b"/", [part for part in reversed(path.split(b"/")) if part]
    while rest and len(links) < _MOST_LINKS:
        part = rest.pop()
        if part == b"..":
            at = os.path.dirname(at)
            continue
        here = os.path.join(at, part)
        try:
            target = os.readlink(here)
        except OSError:  # no symlink, or nothing at all yet
            at = here
            continue
        links.append(here)
        if target.startswith(b"/"):
            at = b"/"
        rest += [part for part in reversed(target.split(b"/")) if part not in (b"", b".")]
    return [*links, at]
