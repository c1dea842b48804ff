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
"""What the file of a workspace's path, names and sessions is called."""
_LARGEST = 2**18
_MOST = 1000
"""How many sessions are remembered of a workspace, the newest."""


@dataclass(frozen=True)
class KnownWorkspace:
    """A workspace that this machine worked in."""

    root: bytes
    names: tuple[str, ...] = ()
    """What it was called; most are called by one name all the time."""
    sessions: tuple[bytes, ...] = ()
    """Digests of the sessions that worked here, the newest last."""

    def called(self, name: str) -> KnownWorkspace:
        """Return the same, known by that name too."""
        return self if name in self.names else replace(self, names=(*self.names, name)[-_MOST:])

    def with_session(self, agent_id: str, session_id: str) -> KnownWorkspace:
        """Return the same, known to have been worked on by a session."""
        own = digest(agent_id, session_id)
        return (
            self if own in self.sessions else replace(self, sessions=(*self.sessions, own)[-_MOST:])
        )


def default_name(root: bytes) -> str:
    """Return a name for a workspace that was given none.

    It is that of its directory, and what tells it apart from others of the same name.
    """
    own = os.path.basename(root).decode("utf-8", "replace")[:200] or "root"
    return f"{own}-{hashlib.sha256(root).hexdigest()[:8]}"


def digest(agent_id: str, session_id: str) -> bytes:
    """Return what tells a session apart from others."""
    both = f"{len(agent_id)}:{agent_id}{session_id}"
    return hashlib.sha256(both.encode("utf-8", "surrogatepass")).digest()[:12]


def read(directory: str) -> KnownWorkspace | None:
    """Return what is known of a workspace from its local state; None if nothing can be read."""
    try:
        with open(os.path.join(directory, FILE), "rb") as file:
            root, names, sessions = ormsgpack.unpackb(file.read(_LARGEST))
        return KnownWorkspace(root, tuple(names), tuple(sessions))
    except (OSError, TypeError, ValueError):
        return None


def write(directory: str, known: KnownWorkspace) -> None:
    """Keep what is known of a workspace, for its owner alone."""
    data = ormsgpack.packb([known.root, list(known.names), list(known.sessions)])
    write_file(os.path.join(directory, FILE), data, durable=False)


def is_workspace(store: Store, root: bytes) -> bool:
    """Return whether this machine has worked in a directory, with its files kept in a store."""
    directory = directory_of(store, own_name(root))
    known = None if directory is None else read(directory)
    return known is not None and known.root == root


def find(store: Store, name: str) -> list[KnownWorkspace]:
    """Return the workspaces of that name that this machine has in a store, and that still exist."""
    found: list[KnownWorkspace] = []
    sample = directory_of(store, own_name(b"/"))
    if sample is None:
        return found
    above = os.path.dirname(sample)
    with suppress(FileNotFoundError, NotADirectoryError):
        for entry in sorted(os.listdir(above)):
            directory = os.path.join(above, entry)
            known = read(directory)
            # Each lies where its own path says, so that no other's can be put in its stead.
            if known is None or directory_of(store, own_name(known.root)) != directory:
                continue
            if name in known.names and os.path.realpath(known.root) == known.root:
                found += [known] * os.path.isdir(known.root)
    return found
