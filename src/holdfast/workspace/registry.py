"""What this machine knows of its workspaces: where each is, and which sessions worked there.

It is kept beside the index of each workspace, and is this machine's own: nothing that comes with a
bundle or from a store adds to it. So a path is only ever used here that was used here before.
"""

from __future__ import annotations

import hashlib
import os
from contextlib import suppress
from dataclasses import dataclass, replace

import ormsgpack

from holdfast.stores.base import Store
from holdfast.system.atomic_files import write_file
from holdfast.workspace.local_state import directory_of, own_name

FILE = "place"
_LARGEST = 2**18
_MOST = 1000
"""How many sessions are remembered of a workspace, the newest."""


@dataclass(frozen=True)
class Place:
    """A workspace of this machine."""

    root: bytes
    names: tuple[str, ...] = ()
    """What it was called; most are called by one name all the time."""
    sessions: tuple[bytes, ...] = ()
    """Digests of the sessions that worked here, the newest last."""

    def called(self, name: str) -> Place:
        """The same, known by that name too."""
        return self if name in self.names else replace(self, names=(*self.names, name)[-_MOST:])

    def with_session(self, agent_id: str, session_id: str) -> Place:
        """The same, known to have been worked on by a session."""
        own = digest(agent_id, session_id)
        return (
            self if own in self.sessions else replace(self, sessions=(*self.sessions, own)[-_MOST:])
        )


def digest(agent_id: str, session_id: str) -> bytes:
    """What tells a session apart from others."""
    both = f"{len(agent_id)}:{agent_id}{session_id}"
    return hashlib.sha256(both.encode("utf-8", "surrogatepass")).digest()[:12]


def read(directory: str) -> Place | None:
    """What is known of the workspace of that home; None if nothing is, or it cannot be read."""
    try:
        with open(os.path.join(directory, FILE), "rb") as file:
            root, names, sessions = ormsgpack.unpackb(file.read(_LARGEST))
        return Place(root, tuple(names), tuple(sessions))
    except (OSError, TypeError, ValueError):
        return None


def write(directory: str, place: Place) -> None:
    """Keep what is known of a workspace, for its owner alone."""
    data = ormsgpack.packb([place.root, list(place.names), list(place.sessions)])
    write_file(os.path.join(directory, FILE), data, durable=False)


def find(store: Store, name: str) -> list[Place]:
    """The workspaces of that name that this machine has in a store, and that are still there."""
    found: list[Place] = []
    sample = directory_of(store, own_name(b"/"))
    if sample is None:
        return found
    above = os.path.dirname(sample)
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted(os.listdir(above)):
            directory = os.path.join(above, entry)
            place = read(directory)
            # Each lies where its own path says, so that no other's can be put in its stead.
            if place is None or directory_of(store, own_name(place.root)) != directory:
                continue
            if name in place.names and os.path.realpath(place.root) == place.root:
                found += [place] * os.path.isdir(place.root)
    return found
