"""Which project an event is about; read with little, as every hook comes by here."""

from __future__ import annotations

import os

FOLDER = ".holdfast"


def store_folder_above(folder: str) -> str | None:
    """Return the nearest directory upwards that holds a store; None if there is none."""
    while True:
        if os.path.isdir(os.path.join(folder, FOLDER)):
            return folder
        above = os.path.dirname(folder)
        if above == folder:
            return None
        folder = above


def root_of(above: str | None, folder: str) -> str:
    """Return what is captured: the project that has the store, never a home directory or a disk.

    An agent may have gone into a directory below, and the session is about all of the project.
    """
    if above is None or above in (os.path.realpath(os.path.expanduser("~")), "/"):
        return folder
    return above
