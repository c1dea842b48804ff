"""Where documents lie, ``<root>/<agent>/<session>/<checkpoint id>.json``, and how they are kept."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from typing import BinaryIO
from urllib.parse import quote, unquote

from holdfast.errors import (
    CheckpointConflictError,
    CheckpointIntegrityError,
    InvalidArgumentError,
    StoreError,
)
from holdfast.system import private_files
from holdfast.system.atomic_files import Draft, remove_drafts
from holdfast.system.crash_points import reach
from holdfast.system.directories import entries, sync_directory, unlink
from holdfast.system.file_lock import locked

JSON, BINARY = ".json", ".pkl"
LAST = ".last"
"""The file in a session's directory that names what was written last."""
LARGEST = 2**33
"""Bytes of the largest document; a state of the largest size takes less as JSON."""
LONGEST_LINE = 2**26
"""Bytes of the longest first line, which holds a record."""

_LONGEST_NAME = 200
_HINTS_KEPT = 10_000
_ATTEMPTS = 100
_TELLS_APART = 2_000_000_000
"""Nanoseconds after which two changes of a directory surely have different times."""


class DocumentFolders:
    """The directories and documents below a root; safe for many threads and processes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._lock = os.path.join(root, ".lock")
        self._hints: dict[str, str] = {}  # the folder in which a document was seen last
        _make_directories(root)

    def folder(self, agent_id: str, session_id: str) -> str:
        """Return the directory of a session."""
        return os.path.join(self.root, quoted(agent_id), quoted(session_id))

    def path(self, agent_id: str, session_id: str, checkpoint_id: str, suffix: str) -> str:
        """Return the place of a document."""
        stem = quoted(checkpoint_id)
        if is_hashed(stem):
            raise InvalidArgumentError(f"an id of {len(checkpoint_id)} characters names no file")
        return os.path.join(self.folder(agent_id, session_id), stem + suffix)

    def documents(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> Iterator[tuple[str, str]]:
        """Return the checkpoint id and path of every document, as its name has it."""
        for folder in self._folders(agent_id, session_id):
            yield from self.documents_in(folder)

    def documents_in(self, folder: str) -> Iterator[tuple[str, str]]:
        """Yield the same of one directory."""
        for entry in entries(folder):
            stem, suffix = os.path.splitext(entry.name)
            if suffix in (JSON, BINARY) and not entry.name.startswith("."):
                yield unquoted(stem), entry.path

    def _folders(self, agent_id: str | None = None, session_id: str | None = None) -> Iterator[str]:
        if agent_id is None:
            agents = directories(self.root)
        else:
            agents = [os.path.join(self.root, quoted(agent_id))]
        for agent in agents:
            if session_id is None:
                yield from directories(agent)
            else:
                yield os.path.join(agent, quoted(session_id))

    def touched(self, *beside: str) -> tuple[int, int] | None:
        """Return what differs once a document came or went, also one level below ``beside``.

        None if that was just now: another may follow, and leave the same time.
        """
        just_now = time.time_ns() - _TELLS_APART
        agents = directories(self.root)
        within = [each for top in (*agents, *beside) for each in directories(top)]
        times = [_touched(each) for each in (self.root, *beside, *agents, *within)]
        return None if max(times) > just_now else (len(times), hash(tuple(times)))

    def find(self, checkpoint_id: str, likely: str | None = None) -> str | None:
        """Return the path of a checkpoint's document, looked for first where it may well be."""
        stem = quoted(checkpoint_id)
        if is_hashed(stem):
            return None
        first = [f for f in (self._hints.get(checkpoint_id), likely) if f is not None]
        for folder in chain(first, self._folders()):
            for suffix in (JSON, BINARY):
                path = os.path.join(folder, stem + suffix)
                if _exists(path):
                    if len(self._hints) >= _HINTS_KEPT:
                        self._hints.clear()
                    self._hints[checkpoint_id] = folder
                    return path
        return None

    def has(self, folder: str, checkpoint_id: str) -> bool:
        """Return whether a directory has the document of a checkpoint."""
        stem = os.path.join(folder, quoted(checkpoint_id))
        return any(_exists(stem + suffix) for suffix in (JSON, BINARY))

    def publish(
        self,
        checkpoint_id: str,
        path: str,
        compose: Callable[[int | None], bytes],
        place: Callable[[], int | None],
    ) -> None:
        """Keep a document durably, unless its id is taken: then CheckpointConflictError.

        ``place`` says where it belongs (None for where its time puts it) while nobody else writes,
        and ``compose`` makes the document for that.
        """
        folder = os.path.dirname(path)
        try:
            self._write(checkpoint_id, path, compose, place)
            try:
                self.sync_up(folder)
            except OSError:
                unlink(path)
                raise
        except BaseException:
            remove_if_empty(folder)
            raise
        reach("file:committed")

    def sync_up(self, folder: str) -> None:
        """Make durable what a session's directory holds, and that it is there."""
        # The upper two as well: whoever made them may not have flushed them yet.
        for directory in (folder, os.path.dirname(folder), self.root):
            sync_directory(directory)

    def _write(
        self,
        checkpoint_id: str,
        path: str,
        compose: Callable[[int | None], bytes],
        place: Callable[[], int | None],
    ) -> None:
        """Write a document beside its place and then give it its name."""
        folder = os.path.dirname(path)
        seq: int | None = None
        for _ in range(_ATTEMPTS):
            # The lock is also for the same id in another session, which a link does not see.
            with self.drafted(folder, compose(seq)) as draft, locked(self._lock):
                if self.find(checkpoint_id, folder) is not None:
                    raise CheckpointConflictError(checkpoint_id)
                now = place()
                if now == seq:
                    try:
                        draft.link(path)
                    except FileExistsError:
                        raise CheckpointConflictError(checkpoint_id) from None
                    break
                seq = now  # another was written meanwhile, or its clock was ahead
        else:
            raise StoreError(f"{folder} is written to again and again: save later")
        reach("file:linked")

    @contextmanager
    def drafted(self, folder: str, document: bytes) -> Iterator[Draft]:
        """Hold a document that is whole and durable but has no name yet; removed at the end."""
        with self._draft(folder) as draft:
            reach("file:begun")
            draft.write(document)
            reach("file:written")
            draft.sync()
            reach("file:synced")
            yield draft

    def _draft(self, folder: str) -> Draft:
        """Return a new draft in a directory that another process may just remove as empty."""
        for _ in range(_ATTEMPTS):
            for directory in (os.path.dirname(folder), folder):
                try:
                    private_files.make_directory(directory)
                except FileExistsError:
                    pass
                except FileNotFoundError:
                    os.stat(self.root)  # it is gone, or the one above was just removed as empty
            try:
                return Draft(folder)
            except FileNotFoundError:
                continue
        raise FileNotFoundError(errno.ENOENT, "the directory cannot be made", folder)

    def remove(self, checkpoint_id: str) -> bool:
        """Remove a document; whether it was there."""
        path = self.find(checkpoint_id)
        if path is None or not unlink(path):
            return False
        folder = os.path.dirname(path)
        try:
            sync_directory(folder)
        except FileNotFoundError:  # another process found it empty and removed it
            pass
        remove_if_empty(folder)
        return True

    def tidy(self) -> None:
        """Remove what writers left behind when they died, and empty directories."""
        for folder in self._folders():
            tidy_folder(folder)


def tidy_folder(folder: str) -> None:
    """Remove what writers to a directory left behind when they died, and itself if it is empty."""
    remove_drafts(folder, of_old_versions=True)
    remove_if_empty(folder)


def quoted(name: str) -> str:
    """Return a name as one part of a path that people can read; cut and hashed if it is long."""
    part = quote(name, safe=" @+=,", errors="surrogatepass").replace("~", "%7E")
    if part.startswith("."):
        part = "%2E" + part[1:]
    return part if len(part) <= _LONGEST_NAME else hashed(name, part)


def hashed(name: str, part: str) -> str:
    """Return the beginning of a name as a part of a path, made unique by its hash."""
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{part[:80]}~{digest}"


def is_hashed(part: str) -> bool:
    """Return whether a part of a path does not tell the whole name."""
    return "~" in part


def unquoted(part: str) -> str:
    """Return the name that a part of a path tells."""
    return unquote(part, errors="surrogatepass")


def _touched(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except FileNotFoundError:  # removed as empty meanwhile, or not made yet
        return 0


def directories(path: str) -> list[str]:
    """Return the directories in a directory, those that begin with a dot left out."""
    return [e.path for e in entries(path) if e.is_dir() and not e.name.startswith(".")]


def open_document(path: str) -> BinaryIO:
    """Open a document for reading; what has no end, as a device or a huge hole, is refused."""
    file = open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))  # noqa: SIM115
    about = os.fstat(file.fileno())
    if stat.S_ISREG(about.st_mode) and about.st_size <= LARGEST:
        return file
    file.close()
    what = "larger than any document" if stat.S_ISREG(about.st_mode) else "no regular file"
    raise CheckpointIntegrityError(None, f"{path} is {what}")


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _make_directories(path: str) -> None:
    """Make a directory and those above it, each entered durably in the one above."""
    try:
        private_files.make_directory(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_directories(os.path.dirname(path))
        _make_directories(path)
        return
    sync_directory(os.path.dirname(path))


def remove_if_empty(folder: str) -> None:
    """Remove a directory, and the one above it, if nothing is left in them."""
    try:
        if [entry.name for entry in entries(folder)] == [LAST]:
            unlink(os.path.join(folder, LAST))
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))
    except OSError:
        pass
