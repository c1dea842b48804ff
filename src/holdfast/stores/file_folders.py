"""Where documents lie, ``<root>/<agent>/<session>/<checkpoint id>.json``, and how they are kept."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from itertools import chain
from typing import BinaryIO
from urllib.parse import quote, unquote

from holdfast.errors import CheckpointConflictError, InvalidArgumentError
from holdfast.stores.crashpoints import reach

JSON, BINARY = ".json", ".pkl"

_TEMPORARY = ".tmp-"
_LONGEST_NAME = 200
_HINTS_KEPT = 10_000
_ATTEMPTS = 100


class Folders:
    """The directories and documents below a root; safe for many threads and processes."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._hints: dict[str, str] = {}  # the folder in which a document was seen last
        _make_directories(root)

    def folder(self, agent_id: str, session_id: str) -> str:
        """The directory of a session."""
        return os.path.join(self.root, _quoted(agent_id), _quoted(session_id))

    def path(self, agent_id: str, session_id: str, checkpoint_id: str, suffix: str) -> str:
        """The place of a document."""
        stem = _quoted(checkpoint_id)
        if _is_hashed(stem):
            raise InvalidArgumentError(f"an id of {len(checkpoint_id)} characters names no file")
        return os.path.join(self.folder(agent_id, session_id), stem + suffix)

    def documents(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> Iterator[tuple[str, str]]:
        """The checkpoint id and path of every document, as its name has it."""
        for folder in self._folders(agent_id, session_id):
            for entry in _entries(folder):
                stem, suffix = os.path.splitext(entry.name)
                if suffix in (JSON, BINARY) and not entry.name.startswith("."):
                    yield unquote(stem, errors="surrogatepass"), entry.path

    def _folders(self, agent_id: str | None = None, session_id: str | None = None) -> Iterator[str]:
        if agent_id is None:
            agents = _directories(self.root)
        else:
            agents = [os.path.join(self.root, _quoted(agent_id))]
        for agent in agents:
            if session_id is None:
                yield from _directories(agent)
            else:
                yield os.path.join(agent, _quoted(session_id))

    def find(self, checkpoint_id: str, likely: str | None = None) -> str | None:
        """The path of a checkpoint's document, looked for first where it may well be."""
        stem = _quoted(checkpoint_id)
        if _is_hashed(stem):
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

    def publish(self, checkpoint_id: str, path: str, document: bytes) -> None:
        """Keep a document durably, unless its id is taken: then CheckpointConflictError."""
        folder = os.path.dirname(path)
        try:
            self._write(checkpoint_id, path, document)
            try:
                # The upper two as well: whoever made them may not have flushed them yet.
                for directory in (folder, os.path.dirname(folder), self.root):
                    _sync(directory)
            except OSError:
                _unlink(path)
                raise
        except BaseException:
            _remove_if_empty(folder)
            raise
        reach("file:committed")

    def _write(self, checkpoint_id: str, path: str, document: bytes) -> None:
        """Write a document beside its place and then give it its name."""
        folder = os.path.dirname(path)
        temporary, fd = self._temporary(folder)
        try:
            reach("file:begun")
            rest = memoryview(document)
            while rest:
                rest = rest[os.write(fd, rest) :]
            reach("file:written")
            os.fsync(fd)
            reach("file:synced")
            # The lock is for the same id in another session, which the link alone would not see.
            with self._exclusively():
                if self.find(checkpoint_id, folder) is not None:
                    raise CheckpointConflictError(checkpoint_id)
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    raise CheckpointConflictError(checkpoint_id) from None
            reach("file:linked")
        finally:
            _unlink(temporary)
            os.close(fd)

    def _temporary(self, folder: str) -> tuple[str, int]:
        """A new file that listings ignore, locked for as long as its writer lives."""
        for _ in range(_ATTEMPTS):
            for directory in (os.path.dirname(folder), folder):
                try:
                    os.mkdir(directory)
                except FileExistsError:
                    pass
                except FileNotFoundError:
                    os.stat(self.root)  # it is gone, or the one above was just removed as empty
            path = os.path.join(folder, _TEMPORARY + secrets.token_hex(8))
            try:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666)
            except FileNotFoundError:
                continue
            _lock(fd)
            if os.fstat(fd).st_nlink:
                return path, fd
            os.close(fd)  # tidied away before it was locked
        raise FileNotFoundError(errno.ENOENT, "the directory cannot be made", folder)

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        fd = os.open(os.path.join(self.root, ".lock"), os.O_RDONLY | os.O_CREAT, 0o666)
        locked = _lock(fd)
        try:
            yield
        finally:
            if locked:  # closing is not enough where a child was forked meanwhile
                fcntl.flock(fd, fcntl.LOCK_UN)
            os.close(fd)

    def remove(self, checkpoint_id: str) -> bool:
        """Remove a document; whether it was there."""
        path = self.find(checkpoint_id)
        if path is None or not _unlink(path):
            return False
        folder = os.path.dirname(path)
        try:
            _sync(folder)
        except FileNotFoundError:  # another process found it empty and removed it
            pass
        _remove_if_empty(folder)
        return True

    def tidy(self) -> None:
        """Remove what writers left behind when they died, and empty directories."""
        for folder in self._folders():
            for entry in _entries(folder):
                if entry.name.startswith(_TEMPORARY):
                    _remove_if_unlocked(entry.path)
            _remove_if_empty(folder)


def _quoted(name: str) -> str:
    """A name as one part of a path, to be read by people: reversible, or cut and hashed if long."""
    quoted = quote(name, safe=" @+=,", errors="surrogatepass").replace("~", "%7E")
    if quoted.startswith("."):
        quoted = "%2E" + quoted[1:]
    if len(quoted) <= _LONGEST_NAME:
        return quoted
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{quoted[:80]}~{digest}"


def _is_hashed(quoted: str) -> bool:
    return "~" in quoted


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except FileNotFoundError:
        return []


def _directories(path: str) -> list[str]:
    return [e.path for e in _entries(path) if e.is_dir() and not e.name.startswith(".")]


def open_document(path: str) -> BinaryIO:
    """Open a document for reading; does not wait for a writer where it is no regular file."""
    return open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK))


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _make_directories(path: str) -> None:
    """Make a directory and those above it, each entered durably in the one above."""
    try:
        os.mkdir(path)
    except FileExistsError:
        return
    except FileNotFoundError:
        _make_directories(os.path.dirname(path))
        _make_directories(path)
        return
    _sync(os.path.dirname(path))


def _sync(directory: str) -> None:
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that keeps directories in order by itself
            raise
    finally:
        os.close(fd)


def _unlink(path: str) -> bool:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return False
    return True


def _remove_if_empty(folder: str) -> None:
    try:
        os.rmdir(folder)
        os.rmdir(os.path.dirname(folder))
    except OSError:
        pass


def _lock(fd: int, flags: int = 0) -> bool:
    """Lock a file for as long as it is open; False where it is taken or cannot be locked at all."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | flags)
    except OSError:
        return False
    return True


def _remove_if_unlocked(path: str) -> None:
    try:
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, PermissionError):  # removed just now, or another user's
        return
    try:
        if _lock(fd, fcntl.LOCK_NB):
            _unlink(path)
    finally:
        os.close(fd)
