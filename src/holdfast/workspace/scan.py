"""Looking at every file of the workspace, and taking in those that changed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.core.chunk_format import ID_BYTES
from holdfast.system.crash_points import reach
from holdfast.workspace.blocks import Blocks
from holdfast.workspace.contents import Contents
from holdfast.workspace.dir_fds import Inside
from holdfast.workspace.entries import (
    DIRECTORY,
    SMALL,
    SYMLINK,
    Entry,
    Place,
    directory_mode,
    is_reserved,
    pack_tree,
)
from holdfast.workspace.ignore import FILES, EverythingIsLeftOut, NoRules, Rules
from holdfast.workspace.index import LINKS, MODE, SIZE, Folder, Key, key_of, trusted
from holdfast.workspace.known_contents import Whereabouts

_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_AT_ONCE = 2**20
_ATTEMPTS = 4
_LONGEST_PATH = 4096
"""What lies deeper is reached by descriptor alone, which no program of the user's does."""
_GONE = (errno.ENOENT, errno.ENOTDIR, errno.ESTALE)
REPOSITORY = "a repository of its own"
_SPECIAL = {
    stat.S_IFSOCK: "a socket",
    stat.S_IFIFO: "a fifo",
    stat.S_IFBLK: "a device",
    stat.S_IFCHR: "a device",
}


@dataclass(frozen=True)
class Skipped:
    """Something in the workspace that is not captured, and is left alone by restore."""

    path: str
    reason: str


@dataclass(frozen=True)
class Options:
    """What is captured."""

    include_ignored: bool = False
    skip_repositories: bool = False
    private: frozenset[bytes] = frozenset()
    """Paths, such as those of the store itself, that are never captured."""
    wanted: frozenset[bytes] = frozenset()
    """Paths that are captured though they are ignored, as a restore is about to replace them."""


class _Vanished(Exception):
    """It was there a moment ago."""


class _Unreadable(Exception):
    """It cannot be captured; the reason is its message."""


@dataclass
class Found:
    """What a scan came upon."""

    changed: set[bytes] = field(default_factory=set)
    """Folders of which the tree has to be made again."""
    noted: set[bytes] = field(default_factory=set)
    """Folders of which the index has to be written again."""
    gone: set[bytes] = field(default_factory=set)
    unsettled: list[bytes] = field(default_factory=list)
    """Files that kept changing while they were read."""
    linked: set[bytes] = field(default_factory=set)
    """Folders with a file that has other names."""


class Scanner:
    """Brings the folders of an index up to what is on the disk."""

    def __init__(
        self,
        root: bytes,
        folders: dict[bytes, Folder],
        blocks: Blocks,
        options: Options,
        pieces_of: Callable[[Entry], Collection[bytes]],
        also_known: Mapping[bytes, object],
        whereabouts: Whereabouts,
        progress: Callable[[int, int | None], None] | None = None,
        on_folder: Callable[[bytes, int], None] | None = None,
    ) -> None:
        self._above_all = len(root.rstrip(b"/")) + 1
        self._folders = folders
        self._blocks = blocks
        self._options = options
        self.contents = Contents(blocks, self._stored, pieces_of)
        self._also_known = also_known
        self._whereabouts = whereabouts
        self._progress = progress
        self._on_folder = on_folder
        self._started = time.time_ns()
        self._files = 0
        self._forced: set[bytes] = set()
        self._inside = Inside(root)
        self.found = Found()

    def close(self) -> None:
        """Close the directories that were opened."""
        self._inside.close()

    def scan(self) -> Found:
        """Look at everything."""
        for path in self._options.wanted:
            folder = self._folders.get(path.rpartition(b"/")[0])
            if folder is not None:
                folder.key = None  # so that it is listed again
        top = key_of(os.fstat(self._inside.directory(b"")))
        visited = self._walk([(b"", top, NoRules())])
        for path in self._folders.keys() - visited:
            self._forget(path)
        self._rebuild()
        return self.found

    def rescan(self, dirty: Mapping[bytes, Collection[bytes] | None]) -> Found:
        """Look only at these folders, and at whatever is new beneath them.

        Where names are given, only these files were written to.
        """
        for path in sorted(dirty, key=lambda path: (path.count(b"/"), path)):
            folder, names = self._folders.get(path), dirty[path]
            if folder is not None and (names is None or not self._retake(folder, names)):
                folder.key = None  # so that it is listed again
                try:
                    key = key_of(os.fstat(self._inside.directory(path)))
                except OSError:
                    continue  # gone, as its parent will tell, which is dirty too
                self._walk([(path, key, self._rules_above(path))], only_new=True)
        self._rebuild()
        return self.found

    def _retake(self, folder: Folder, names: Collection[bytes]) -> bool:
        """Take in files of a folder again; False if it has to be listed to know what happened."""
        reader = _Reader(self, folder.path, folder)
        for name in names:
            if name in FILES:
                return False
            if name in folder.keys:  # else it is not captured
                before = folder.entries.get(name)
                if before is None or not reader.retake(folder, name, before):
                    return False
                self.found.noted.add(folder.path)
                if folder.entries[name] != before:
                    self.found.changed.add(folder.path)
        return True

    @staticmethod
    def _whole_name(path: bytes, name: bytes) -> bytes:
        return path + b"/" + name if path else name

    def _rules_above(self, path: bytes) -> Rules:
        rules: Rules = NoRules()
        if path:
            parts = path.split(b"/")
            for depth in range(len(parts)):
                above = b"/".join(parts[:depth])
                folder = self._folders.get(above)
                if folder is None or folder.inner != folder.outer:  # else it has none of its own
                    rules = self._rules(above, rules)
        return rules

    def _rules(self, path: bytes, outer: Rules) -> Rules:
        """The rules for what is in a directory."""
        if self._options.include_ignored:
            return outer
        if path in self._forced:
            return EverythingIsLeftOut()
        texts = [text for name in FILES if (text := self._text(path, name))]
        return Rules(outer, texts, path) if texts else outer

    def _text(self, path: bytes, name: bytes) -> bytes:
        try:
            fd = os.open(name, _READ, dir_fd=self._inside.directory(path))
        except OSError:
            return b""
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return b""
            return os.read(fd, _AT_ONCE)
        finally:
            os.close(fd)

    def _walk(self, stack: list[tuple[bytes, Key, Rules]], only_new: bool = False) -> set[bytes]:
        visited: set[bytes] = set()
        while stack:
            path, key, outer = stack.pop()
            folder = self._folders.get(path)
            rules: Rules | None = None
            seen = self._unchanged(folder, key, outer)
            if folder is None or seen is None:
                fresh = self._read(path, outer, folder)
                if fresh is None:
                    continue
                folder, seen, rules = fresh
            visited.add(path)
            if self._progress is not None:
                self._files += len(folder.entries)
                self._progress(self._files, None)
            below = [
                name
                for name, entry_key in seen.items()
                if stat.S_ISDIR(entry_key[MODE]) and name not in folder.others
            ]
            if below and rules is None:
                rules = outer if folder.inner == folder.outer else self._rules(path, outer)
            for name in reversed(below):
                inner = self._whole_name(path, name)
                assert rules is not None
                if not only_new or self._is_news(inner, seen[name], rules):
                    stack.append((inner, seen[name], rules))
        return visited

    def _is_news(self, path: bytes, key: Key, rules: Rules) -> bool:
        folder = self._folders.get(path)
        return folder is None or folder.key != key or folder.outer != rules.fingerprint

    def _unchanged(self, folder: Folder | None, key: Key, outer: Rules) -> dict[bytes, Key] | None:
        """The keys of what is in a folder, if nothing in it has changed."""
        if folder is None or folder.key != key or folder.outer != outer.fingerprint:
            return None
        if folder.names is None:
            folder.names = list(folder.keys)
        try:
            keys = self._keys(folder.path, folder.names)
        except OSError:
            return None
        return folder.keys if keys == list(folder.keys.values()) else None  # type: ignore[return-value]

    def _keys(self, path: bytes, names: Iterable[bytes]) -> list[Key]:
        """The keys of what is in a directory, which no symlink leads away from."""
        look = partial(os.stat, dir_fd=self._inside.directory(path), follow_symlinks=False)
        return list(map(key_of, map(look, names)))

    def _read(
        self, path: bytes, outer: Rules, old: Folder | None
    ) -> tuple[Folder, dict[bytes, Key], Rules] | None:
        """List a directory and take in what is new in it; None if it cannot be listed."""
        reach("workspace:listing")
        try:
            if self._above_all + len(path) >= _LONGEST_PATH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            fd = self._inside.directory(path)
            key = key_of(os.fstat(fd))
            if self._on_folder is not None:
                self._on_folder(path, fd)
            names, others, rules = self._list(path, fd, outer)
        except OSError as error:
            self._drop(path, error)
            return None
        folder = Folder(path)
        folder.outer, folder.inner, folder.others = outer.fingerprint, rules.fingerprint, others
        seen = self._look(path, [*names, *others], others)
        forced = any(self._whole_name(path, name) in self._forced for name in names)
        folder.key = None if forced else trusted(key, self._started)
        before = old.entries if old is not None else {}
        reader = _Reader(self, path, old)
        for name, entry_key in seen.items():
            if name not in others:
                folder.keys[name] = reader.take(folder, name, entry_key, before.get(name))
            else:
                folder.keys[name] = trusted(entry_key, self._started)
        if old is not None:
            folder.tree_id, folder.chunk = old.tree_id, old.chunk
            folder.files, folder.size = old.files, old.size
        if old is None or folder.entries != before:
            self.found.changed.add(path)
        for name, entry in before.items():
            now = folder.entries.get(name)
            if entry.kind == DIRECTORY and (now is None or now.kind != DIRECTORY):
                self._forget_all(self._whole_name(path, name))
        self.found.noted.add(path)
        self._folders[path] = folder
        self.found.gone.discard(path)
        return folder, seen, rules

    def _list(
        self, path: bytes, fd: int, outer: Rules
    ) -> tuple[list[bytes], dict[bytes, str], Rules]:
        """The names in a directory that are captured, others that matter, and the rules."""
        names: list[bytes] = []
        others: dict[bytes, str] = {}
        start = path + b"/" if path else b""
        private, wanted = self._options.private, self._options.wanted
        with os.scandir(fd) as found:
            items = [(os.fsencode(item.name), item.is_dir(follow_symlinks=False)) for item in found]
        has_rules = path in self._forced or any(name in FILES for name, _ in items)
        rules = self._rules(path, outer) if has_rules else outer
        for name, is_directory in items:
            if is_reserved(name) or start + name in private:
                continue
            if not rules.leave_out(start + name, is_directory):
                names.append(name)
            elif start + name in wanted:
                names.append(name)
                self._forced.add(start + name)
            elif name in FILES:
                others[name] = ""  # its changes matter though it is not captured
        names.sort()
        return names, others, rules

    def _look(self, path: bytes, names: list[bytes], others: dict[bytes, str]) -> dict[bytes, Key]:
        try:
            return dict(zip(names, self._keys(path, names), strict=True))
        except OSError:
            seen: dict[bytes, Key] = {}
            for name in names:
                try:
                    (seen[name],) = self._keys(path, [name])
                except OSError as error:
                    if error.errno not in _GONE:
                        others[name] = _reason(error)
            return seen

    def _drop(self, path: bytes, error: OSError) -> None:
        """Leave out a directory that cannot be listed."""
        self._forget_all(path)
        above, _, name = path.rpartition(b"/")
        parent = self._folders.get(above) if path else None
        if parent is None:
            raise error
        parent.entries.pop(name, None)
        self.found.changed.add(above)
        self.found.noted.add(above)
        if error.errno not in _GONE:
            parent.others[name] = _reason(error)
        else:
            parent.keys.pop(name, None)
            parent.key = None

    def _forget_all(self, path: bytes) -> None:
        start = path + b"/"
        for inner in [p for p in self._folders if p == path or p.startswith(start)]:
            self._forget(inner)

    def _forget(self, path: bytes) -> None:
        if self._folders.pop(path, None) is not None:
            self.found.gone.add(path)
            self.found.changed.discard(path)
            self.found.noted.discard(path)

    def _stored(self, content: bytes) -> object:
        """Where the same bytes lie already, if they do."""
        if content in self._also_known:
            return self._also_known[content]
        return self._whereabouts.find(self._folders, content)

    def _rebuild(self) -> None:
        """Make the trees of changed folders, and of all above them."""
        self._blocks.settle()
        affected = set(self.found.changed)
        for path in self.found.changed:
            while path:
                path = path.rpartition(b"/")[0]
                affected.add(path)
        for path in sorted(affected, key=_depth, reverse=True):
            self._build(self._folders[path])
        self.found.noted |= affected

    def _build(self, folder: Folder) -> None:
        files = size = 0
        entries = folder.entries
        start = folder.path + b"/" if folder.path else b""
        for name, entry in entries.items():
            if entry.kind == DIRECTORY:
                inner = self._folders[start + name]
                files += inner.files
                size += inner.size
                if entry.content != inner.tree_id or entry.place != inner.chunk:
                    entries[name] = entry._replace(content=inner.tree_id, place=inner.chunk)
            else:
                files += 1
                size += entry.size
                place = entry.place
                if place is not None and type(place) is not Place and type(place) is not bytes:
                    entries[name] = self.contents.settled(entry)
        folder.files, folder.size = files, size
        identity, raw = pack_tree(entries)
        if identity != folder.tree_id:
            folder.tree_id, folder.chunk = identity, self._blocks.keep(raw)


class _Reader:
    """Takes in the files of one directory, beneath a descriptor that no symlink leads away from."""

    def __init__(self, scanner: Scanner, path: bytes, old: Folder | None) -> None:
        self._scanner = scanner
        self._path = path
        self._keys = old.keys if old is not None else {}

    def take(self, folder: Folder, name: bytes, key: Key, before: Entry | None) -> Key | None:
        """Add the entry of a name to a folder; returns the key by which it is known."""
        mode = key[MODE]
        key_now: Key | None = key
        try:
            if stat.S_ISDIR(mode):
                entry = self._directory(name, key, before)
            elif before is not None and self._keys.get(name) == key:
                folder.entries[name] = before
                return key
            elif stat.S_ISREG(mode):
                entry, key_now = self._file(name, key, before)
            elif stat.S_ISLNK(mode):
                entry = self._symlink(name)
            else:
                raise _Unreadable(_SPECIAL.get(stat.S_IFMT(mode), "of unknown kind"))
        except _Vanished:
            folder.key = None
            return None
        except _Unreadable as error:
            folder.others[name] = str(error)
            return trusted(key, self._scanner._started)
        folder.entries[name] = entry
        return trusted(key_now, self._scanner._started) if key_now is not None else None

    def retake(self, folder: Folder, name: bytes, before: Entry) -> bool:
        """Take in a file that is known; False if it is none any more, or cannot be read."""
        try:
            (key,) = self._scanner._keys(self._path, [name])
            if not stat.S_ISREG(key[MODE]):
                return False
            entry, key_now = self._file(name, key, before)
        except (OSError, _Vanished, _Unreadable):
            return False
        folder.entries[name] = entry
        folder.keys[name] = trusted(key_now, self._scanner._started) if key_now else None
        return True

    def _directory(self, name: bytes, key: Key, before: Entry | None) -> Entry:
        if self._scanner._options.skip_repositories:
            try:
                self._scanner._keys(Scanner._whole_name(self._path, name), [b".git"])
            except OSError:
                pass
            else:
                raise _Unreadable(REPOSITORY)
        mode = directory_mode(key[MODE])
        if before is not None and before.kind == DIRECTORY:
            return before if before.mode == mode else before._replace(mode=mode)
        return Entry(DIRECTORY, mode, 0, 0, b"", None)

    def _symlink(self, name: bytes) -> Entry:
        try:
            fd = self._folder_fd()
            target = os.readlink(name, dir_fd=fd)
            mtime = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mtime_ns
        except OSError as error:
            raise _failure(error) from None
        content = hashlib.sha256(target).digest()[:ID_BYTES]
        return Entry(SYMLINK, 0, mtime, len(target), content, target)

    def _file(self, name: bytes, key: Key, before: Entry | None) -> tuple[Entry, Key | None]:
        """Read a file until it has held still for that long."""
        entry: Entry | None = None
        if key[LINKS] > 1:
            self._scanner.found.linked.add(self._path)
        reach("workspace:found")
        try:
            fd = os.open(name, _READ, dir_fd=self._folder_fd())
        except OSError as error:
            raise _failure(error) from None
        try:
            for _ in range(_ATTEMPTS):
                reach("workspace:reading")
                entry = self._scanner.contents.read(fd, key, before)
                reach("workspace:read")
                now: Key = key_of(os.fstat(fd))
                if not stat.S_ISREG(now[MODE]):
                    raise _Unreadable("replaced while it was read")
                if now == key and entry.size == key[SIZE]:
                    return entry, key
                if now[SIZE] > key[SIZE] == entry.size > SMALL:
                    break  # a log, for instance, which may grow faster than it can be read
                key = now
                os.lseek(fd, 0, os.SEEK_SET)
        except OSError as error:
            raise _failure(error) from None
        finally:
            os.close(fd)
        assert entry is not None
        self._scanner.found.unsettled.append(Scanner._whole_name(self._path, name))
        return entry, None

    def _folder_fd(self) -> int:
        return self._scanner._inside.directory(self._path)


def _failure(error: OSError) -> Exception:
    if error.errno in _GONE:
        return _Vanished()
    return _Unreadable(_reason(error))


def _reason(error: OSError) -> str:
    if error.errno in (errno.EACCES, errno.EPERM):
        return "unreadable"
    if error.errno == errno.ELOOP:
        return "replaced while it was read"
    if error.errno == errno.ENAMETOOLONG:
        return "its path is too long"
    return error.strerror or str(error)


def _depth(path: bytes) -> int:
    return path.count(b"/") + 1 if path else 0
