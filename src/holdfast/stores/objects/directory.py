"""A bucket that is a directory of this machine: an object is a file that is written whole."""

from __future__ import annotations

import os

from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.crash_points import reach
from holdfast.system.directories import entries
from holdfast.system.private_files import make_directories


def put(root: str, path: str, data: bytes) -> None:
    """Write an object; it is on the disk when the system gets to that, as with any such server."""
    place = os.path.join(root, path)
    make_directories(os.path.dirname(place))
    with Draft(os.path.dirname(place)) as draft:
        draft.write(data)
        reach("objects:drafted")
        draft.replace(place)


def tidy(root: str, below: str) -> None:
    """Remove what killed writers left of objects that had no name yet."""
    for entry in entries(os.path.join(root, below)):
        if entry.is_dir(follow_symlinks=False):
            remove_drafts(entry.path)
