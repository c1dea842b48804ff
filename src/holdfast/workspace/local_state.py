"""What a workspace keeps beside the store: its index, its journal and its lock.

Losing it costs time, never a file: the index is a cache, and a restore that was cut short can be
done again from the trees, which are in the store.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any
from weakref import finalize, ref

import ormsgpack

from holdfast.errors import WorkspaceError
from holdfast.stores.base import Store
from holdfast.stores.capabilities import Volatile, files_of
from holdfast.system import private_files
from holdfast.system.atomic_files import remove_drafts, write_file
from holdfast.system.crash_points import reach
from holdfast.system.file_lock import LockFile


def local_state_of(store: Store, root: bytes) -> LocalState:
    """Return the local state of a workspace in a store."""
    directory = directory_of(store, own_name(root))
    if directory is None:
        return LocalState(tempfile.mkdtemp(prefix="holdfast-"), is_temporary=True)
    return LocalState(directory)


def own_name(root: bytes) -> str:
    """Return the name of the local state of a directory."""
    return hashlib.sha256(root).hexdigest()[:24]


def directory_of(store: Store, own: str) -> str | None:
    """Return where the local state is; None if the store, and so all that is known, is volatile."""
    files = files_of(store)
    if files:
        first = files[0]
        above, name = os.path.split(first)
        if os.path.isdir(first):
            return os.path.join(first, ".workspaces", own)
        if os.path.basename(above) == ".holdfast":
            return os.path.join(above, "workspaces", f"{own}-{name}")
        return os.path.join(above, f"{name}.workspaces", own)
    if store.capability(Volatile) is not None:
        return None
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    its = hashlib.sha256(store.name.encode()).hexdigest()[:12]
    return os.path.join(cache, "holdfast", "workspaces", f"{own}-{its}")


@dataclass(frozen=True)
class RestoreJournal:
    """A restore that was begun: whoever finds it completes it."""

    target: bytes
    undo: bytes
    staging: bytes
    paths: list[bytes] | None
    moves: list[tuple[bytes, bytes]] = field(default_factory=list)
    """What is made or moved aside: its name there, and the path it belongs to."""

    def pack(self) -> bytes:
        """Return the bytes of its file."""
        return ormsgpack.packb([self.target, self.undo, self.staging, self.paths, self.moves])

    @classmethod
    def unpack(cls, data: bytes) -> RestoreJournal:
        """Return the journal of a file."""
        target, undo, staging, paths, *more = ormsgpack.unpackb(data)
        moves = more[0] if more else []  # which 0.2 did not write down
        return cls(target, undo, staging, paths, [(slot, path) for slot, path in moves])


def _remove_own(process: int, directory: str) -> None:
    """Remove what was temporary and not closed; a fork of the process leaves it alone."""
    if os.getpid() == process:
        shutil.rmtree(directory, ignore_errors=True)


class LocalState:
    """The directory of a workspace's own files."""

    def __init__(self, directory: str, is_temporary: bool = False) -> None:
        self.directory = directory
        self._is_temporary = is_temporary
        if is_temporary:
            finalize(self, _remove_own, os.getpid(), directory)
        self.mutex = threading.RLock()
        """Whoever takes a snapshot or restores holds it."""
        self._held: ref[LockFile] | None = None
        try:
            private_files.make_beside_store(directory)
        except OSError as error:
            raise WorkspaceError(f"{directory} cannot be made: {error.strerror}") from error

    @property
    def index(self) -> str:
        """The file of the index."""
        return os.path.join(self.directory, "index")

    @property
    def _journal(self) -> str:
        return os.path.join(self.directory, "journal")

    def alone(self) -> AbstractContextManager[Any]:
        """Keep every other snapshot and restore of the workspace waiting, of any process.

        For who holds ``mutex``. It is a ``LockFile``, unless this thread has one open already.
        """
        outer = None if self._held is None else self._held()
        return self._locked() if outer is None or outer.closed else nullcontext()

    def _locked(self) -> LockFile:
        held = self._lock_file()
        try:
            if not held.is_locked:
                raise WorkspaceError(
                    f"{self.directory} cannot be locked: keep the store on another file system"
                )
            self._held = ref(held)
        except BaseException:
            held.close()
            raise
        return held

    def _lock_file(self) -> LockFile:
        path = os.path.join(self.directory, "lock")
        try:
            return LockFile(path)
        except FileNotFoundError:  # somebody removed it all
            private_files.make_beside_store(self.directory)
            return LockFile(path)

    def journal(self) -> RestoreJournal | None:
        """Return the restore that was begun and not ended, if there is one."""
        try:
            with open(self._journal, "rb") as file:
                data = file.read()
            return RestoreJournal.unpack(data)
        except FileNotFoundError:
            return None
        except (TypeError, ValueError):  # it was not written to its end, so nothing was begun
            self.end()
            return None

    def begin(self, journal: RestoreJournal) -> None:
        """Write down that a restore begins, durably and before anything is changed."""
        write_file(self._journal, journal.pack(), written="workspace:journal_written")
        reach("workspace:journaled")

    def end(self) -> None:
        """Write down that the restore has ended.

        Not flushed to disk, which would wait for all that was restored: after a power loss it may
        be completed once more.
        """
        with suppress(FileNotFoundError):
            os.unlink(self._journal)

    def close(self) -> None:
        """Remove it, if it is of no use to anyone later."""
        if self._is_temporary:
            self.remove()

    def remove(self) -> None:
        """Remove it; whoever opens the workspace again begins anew."""
        own = ("index", "journal", "lock", "place")
        for name in (*own, *(f"{name}.new" for name in own)):  # 0.3 wrote its drafts so
            with suppress(FileNotFoundError):
                os.unlink(os.path.join(self.directory, name))
        remove_drafts(self.directory)
        with suppress(OSError):  # gone already, or somebody else keeps something there
            os.rmdir(self.directory)
