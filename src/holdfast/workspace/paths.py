"""Paths: as users give them, and as trees have them, which is relative and in bytes; pure."""

from __future__ import annotations

import os
from collections.abc import Iterable

from holdfast.errors import InvalidArgumentError

AnyPath = str | bytes | os.PathLike[str]
"""A path as users give it."""


def as_path(path: object) -> bytes:
    """Return a path that a user gave, as bytes; refuse what is none."""
    if not isinstance(path, (str, bytes, os.PathLike)) or not os.fspath(path):
        raise InvalidArgumentError(f"a path is a string or a Path, not {path!r}")
    found = os.fsencode(path)
    if b"\x00" in found:
        raise InvalidArgumentError(f"{os.fsdecode(found)!r} is no path")
    return found


def relative(root: bytes, path: bytes) -> bytes:
    """Return a path in the workspace as trees have it; refuse one that leads out of it."""
    within = path
    if path.startswith(b"/"):
        if not path.startswith(root.rstrip(b"/") + b"/"):
            raise InvalidArgumentError(f"{os.fsdecode(path)!r} is not in the workspace")
        within = path[len(root.rstrip(b"/")) + 1 :]
    parts = [part for part in within.split(b"/") if part not in (b"", b".")]
    if b".." in parts or b"\x00" in path or not parts:
        raise InvalidArgumentError(f"{os.fsdecode(path)!r} is no path in the workspace")
    return b"/".join(parts)


def chosen_paths(root: bytes, paths: Iterable[AnyPath]) -> list[bytes]:
    """Return paths that a user gave as trees have them; refuse one that leads out."""
    if isinstance(paths, (str, bytes, os.PathLike)):
        raise InvalidArgumentError("paths is a list of paths, not one")
    return [relative(root, as_path(path)) for path in paths]


def shown(path: bytes) -> str:
    """Return a path as messages have it."""
    return repr(os.fsdecode(path))


def parent_and_name(path: bytes) -> tuple[bytes, bytes]:
    """Return the directory of a path and the name in it."""
    above, _, name = path.rpartition(b"/")
    return above, name


def start_of(directory: bytes) -> bytes:
    """Return how the paths of all that is in a directory begin."""
    return directory + b"/" if directory else b""


def depth(path: bytes) -> int:
    """Return how many directories a path is below the workspace's own."""
    return path.count(b"/") + 1 if path else 0
