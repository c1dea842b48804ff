"""Letting go of what a restore moved aside, once it is certain that all of it is kept.

Whoever had a file open goes on writing to it after it was moved, and whoever replaced it just
before it was moved has their new one moved. So each is looked at again at the very end: what is not
what was captured is captured now, and becomes part of the tree that leads back. A file is unlinked
first and looked at once more after that, so that no moment is left in which a write goes unseen.
One that somebody has open for writing, that never holds still, or that came under a name after
another was moved from there, is not removed at all, but kept beside, under a name that is told.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from holdfast.core.chunk_format import ID_BYTES
from holdfast.system.crash_points import reach
from holdfast.workspace.content_reader import ContentReader
from holdfast.workspace.dir_fds import READ, DirFds
from holdfast.workspace.entries import DIRECTORY, FILE, HELD, MAKING, SYMLINK, Entry, symlink_entry
from holdfast.workspace.open_writers import is_open_for_writing
from holdfast.workspace.paths import parent_and_name
from holdfast.workspace.stat_keys import MODE, MTIME, SIZE, Key, key_at, key_if_there, key_of
from holdfast.workspace.swap import MovedAside

_ROUNDS = 5
_AT_ONCE = 2**20

Keep = Callable[[Mapping[bytes, Entry]], None]
"""Makes a tree that leads back to these files too, durably."""


@dataclass
class LateChanges:
    """What was found out about the files that were moved aside."""

    late: dict[bytes, Entry] = field(default_factory=dict)
    """Those that were changed meanwhile, as they were last."""
    held: list[tuple[bytes, bytes]] = field(default_factory=list)
    """Those that may still be written to: their paths, and where they are kept now."""
    tree_id: str = ""
    """A tree that has those that were late, where no other has them."""

    def __bool__(self) -> bool:
        return bool(self.late or self.held)


@dataclass(slots=True)
class _OpenedFile:
    moved: MovedAside
    fd: int
    is_gone: bool = False
    captured: Entry | None = None

    def close(self) -> None:
        """Close it, once."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class AsideCleaner:
    """Lets go of the files that one restore moved aside."""

    def __init__(
        self, dirs: DirFds, staging: bytes, content_reader: ContentReader, keep: Keep
    ) -> None:
        self._dirs = dirs
        self._staging = staging
        self._content_reader = content_reader
        self._keep = keep
        self.done = LateChanges()

    def clean(self, moved: Iterable[MovedAside]) -> LateChanges:
        """Look at each, keep what is new in it, and remove it. May be called again."""
        suspects: list[_OpenedFile] = []
        try:
            self._dirs.directory(self._staging)
        except FileNotFoundError:
            return self.done  # all of it was let go
        try:
            seen: set[bytes] = set()
            for each in moved:
                if each.path in seen:  # a tree has one of each name, and this came after another
                    with suppress(FileNotFoundError):
                        self.put_beside(each.slot, each.path)
                    continue
                seen.add(each.path)
                opened = self._look(each)
                if opened is not None:
                    suspects.append(opened)
            reach("workspace:looked")
            for _ in range(_ROUNDS):
                if not suspects:
                    break
                suspects = self._round(suspects)
            for opened in suspects:
                if not opened.is_gone:
                    self.put_beside(opened.moved.slot, opened.moved.path)
        finally:
            for opened in suspects:
                opened.close()
        return self.done

    def _look(self, moved: MovedAside) -> _OpenedFile | None:
        """Remove a file that is what was captured; else it is to be captured."""
        aside = self._dirs.directory(self._staging)
        if stat.S_ISLNK(moved.key[MODE]):
            self._clean_symlink(aside, moved)
            return None
        try:
            fd = os.open(moved.slot, READ, dir_fd=aside)
        except FileNotFoundError:
            return None  # let go already
        except PermissionError:  # made unreadable meanwhile, or never captured for that
            if moved.is_sure and key_at(aside, moved.slot) == moved.key:
                os.unlink(moved.slot, dir_fd=aside)
            else:
                self.put_beside(moved.slot, moved.path)
            return None
        opened = _OpenedFile(moved, fd)
        try:
            if not moved.is_sure or key_of(os.fstat(fd)) != moved.key:
                return opened
            if is_open_for_writing(fd):
                self.put_beside(moved.slot, moved.path)
                os.close(fd)
                return None
            os.unlink(moved.slot, dir_fd=aside)
            opened.is_gone = True
            now = key_of(os.fstat(fd))
            if (now[MTIME], now[SIZE]) != (moved.key[MTIME], moved.key[SIZE]):
                return opened
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
        return None

    def _clean_symlink(self, aside: int, moved: MovedAside) -> None:
        try:
            target = os.readlink(moved.slot, dir_fd=aside)
        except FileNotFoundError:
            return  # let go already
        entry = moved.entry
        if entry is None or entry.kind != SYMLINK or entry.location != target:
            self.done.late[moved.path] = symlink_entry(target, moved.key[MTIME])
            self._keep(self.done.late)
        os.unlink(moved.slot, dir_fd=aside)

    def _round(self, suspects: list[_OpenedFile]) -> list[_OpenedFile]:
        """Capture what changed, and remove what held still; returns what did not."""
        aside = self._dirs.directory(self._staging)
        found: list[tuple[_OpenedFile, bool]] = []
        is_new = False
        for opened in suspects:
            entry, is_still = self._read(opened)
            known = opened.captured or opened.moved.entry
            if known is None or entry[:5] != known[:5]:
                opened.captured = self.done.late[opened.moved.path] = entry
                is_new = True
            found.append((opened, is_still))
        if is_new:
            self._keep(self.done.late)
        reach("workspace:amended")
        left: list[_OpenedFile] = []
        for opened, is_still in found:
            if not opened.is_gone and is_open_for_writing(opened.fd):
                self.put_beside(opened.moved.slot, opened.moved.path)
                opened.close()
                continue
            if is_still and not opened.is_gone:
                with suppress(FileNotFoundError):
                    os.unlink(opened.moved.slot, dir_fd=aside)
                opened.is_gone = True
            known = opened.captured or opened.moved.entry
            if is_still and known is not None and _digest(opened.fd) == known.content:
                opened.close()
            else:
                left.append(opened)
        return left

    def _read(self, opened: _OpenedFile) -> tuple[Entry, bool]:
        """Return what a file holds, and whether it held still while it was read."""
        before: Key = key_of(os.fstat(opened.fd))
        os.lseek(opened.fd, 0, os.SEEK_SET)
        entry = self._content_reader.read(opened.fd, before, opened.moved.entry)
        now: Key = key_of(os.fstat(opened.fd))
        return entry, (now[MTIME], now[SIZE]) == (before[MTIME], before[SIZE]) == (
            entry.mtime,
            entry.size,
        )

    def put_all_beside(self, moved: Iterable[MovedAside]) -> None:
        """Keep all that is still aside and may be newer than what was captured."""
        for each in moved:
            aside = self._dirs.directory(self._staging)
            with suppress(FileNotFoundError):
                if not each.is_sure or key_at(aside, each.slot) != each.key:
                    self.put_beside(each.slot, each.path)

    def put_beside(self, slot: bytes, path: bytes) -> None:
        """Keep something that cannot be captured, in a directory of its own in the workspace."""
        number = len(self.done.held)
        above = HELD + self._staging.rpartition(b"-")[2]
        top = self._dirs.directory(b"")
        with suppress(FileExistsError):
            os.mkdir(above, 0o700, dir_fd=top)
        name = b"%d-%b" % (number, parent_and_name(path)[1][-200:])
        os.rename(
            slot,
            name,
            src_dir_fd=self._dirs.directory(self._staging),
            dst_dir_fd=self._dirs.directory(above),
        )
        self.done.held.append((path, above + b"/" + name))


def _digest(fd: int) -> bytes:
    """Return the hash of what an open file holds now, as far as it reached when this began."""
    os.lseek(fd, 0, os.SEEK_SET)
    rest = os.fstat(fd).st_size
    digest = hashlib.sha256()
    while rest > 0 and (data := os.read(fd, min(_AT_ONCE, rest))):
        digest.update(data)
        rest -= len(data)
    return digest.digest()[:ID_BYTES]


def left_aside(
    dirs: DirFds,
    staging: bytes,
    moves: Iterable[tuple[bytes, bytes]],
    wanted: Callable[[bytes], Iterable[Entry | None]],
) -> tuple[list[MovedAside], list[tuple[bytes, bytes]]]:
    """Return what a restore that was killed left aside and that neither of its trees has.

    ``wanted`` gives what the trees say of a path. The second list is of directories, which somebody
    put where a file was to be. What is half made is nobody's: nothing was moved there until then.
    """
    try:
        aside = dirs.directory(staging)
    except (FileNotFoundError, NotADirectoryError):
        return [], []
    if key_if_there(aside, MAKING) is not None:
        return [], []
    paths = dict(moves)
    files: list[MovedAside] = []
    directories: list[tuple[bytes, bytes]] = []
    for slot in map(os.fsencode, os.listdir(aside)):
        path = paths.get(slot.partition(b"~")[0])
        if path is None:
            continue
        stack = [(slot, path)]
        while stack:
            slot, path = stack.pop()
            key, known = key_at(aside, slot), [entry for entry in wanted(path) if entry is not None]
            if not stat.S_ISDIR(key[MODE]):
                if not any(_holds(aside, slot, key, entry) for entry in known):
                    files.append(MovedAside(path, slot, None, key, is_sure=False))
            elif any(entry.kind == DIRECTORY for entry in known):
                within = os.listdir(dirs.directory(staging + b"/" + slot))
                stack += [(slot + b"/" + n, path + b"/" + n) for n in map(os.fsencode, within)]
            else:
                directories.append((slot, path))
    return files, directories


def _holds(aside: int, slot: bytes, key: Key, entry: Entry) -> bool:
    """Return whether a file that was left aside holds what an entry says."""
    if stat.S_ISLNK(key[MODE]):
        return entry.kind == SYMLINK and os.readlink(slot, dir_fd=aside) == entry.location
    if entry.kind != FILE or not stat.S_ISREG(key[MODE]) or key[SIZE] != entry.size:
        return False
    fd = os.open(slot, READ, dir_fd=aside)
    try:
        return _digest(fd) == entry.content
    finally:
        os.close(fd)
