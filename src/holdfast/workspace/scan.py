"""Looking at every file of the workspace, and taking in those that changed."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from holdfast.system.crash_points import reach
from holdfast.workspace.blocks import Blocks
from holdfast.workspace.content_reader import ContentReader
from holdfast.workspace.dir_fds import READ, DirFds
from holdfast.workspace.entries import DIRECTORY, Entry, is_reserved
from holdfast.workspace.entry_reader import GONE, EntryReader, reason_of
from holdfast.workspace.ignore import FILES, LONGEST, IgnoreEverything, IgnoreRules, NoRules
from holdfast.workspace.index import Folder
from holdfast.workspace.known_contents import KnownContents
from holdfast.workspace.paths import depth, parent_and_name, start_of
from holdfast.workspace.stat_keys import MODE, Key, key_of, keys_in, now_of_files, trusted
from holdfast.workspace.tree_builder import build_trees

_LONGEST_PATH = 4096
"""What lies deeper is reached by descriptor alone, which no program of the user's does."""


@dataclass(frozen=True)
class CaptureOptions:
    """What is captured."""

    include_ignored: bool = False
    skip_repositories: bool = False
    private: frozenset[bytes] = frozenset()
    """Paths, such as those of the store itself, that are never captured."""
    wanted: frozenset[bytes] = frozenset()
    """Paths that are captured though they are ignored, as a restore is about to replace them."""


@dataclass
class ScanResult:
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
        options: CaptureOptions,
        pieces_of: Callable[[Entry], Collection[bytes]],
        known_contents: KnownContents,
        progress: Callable[[int, int | None], None] | None = None,
        on_folder: Callable[[bytes, int], None] | None = None,
    ) -> None:
        self._above_all = len(root.rstrip(b"/")) + 1
        self._folders = folders
        self._blocks = blocks
        self._options = options
        self._content_reader = ContentReader(
            blocks, partial(known_contents.find, folders), pieces_of
        )
        self._progress = progress
        self._on_folder = on_folder
        self._started = now_of_files()
        self._files = 0
        self._forced: set[bytes] = set()
        self._dirs = DirFds(root)
        self._entry_reader = EntryReader(
            self._dirs, self._content_reader, self._started, options.skip_repositories
        )
        self.found = ScanResult(
            unsettled=self._entry_reader.unsettled, linked=self._entry_reader.linked
        )

    def close(self) -> None:
        """Close the directories that were opened."""
        self._dirs.close()

    def scan(self) -> ScanResult:
        """Look at everything."""
        for path in self._options.wanted:
            folder = self._folders.get(parent_and_name(path)[0])
            if folder is not None:
                folder.key = None  # so that it is listed again
        top = key_of(os.fstat(self._dirs.directory(b"")))
        visited = self._walk([(b"", top, NoRules())])
        for path in self._folders.keys() - visited:
            self._forget(path)
        self._rebuild()
        return self.found

    def rescan(self, dirty: Mapping[bytes, Collection[bytes] | None]) -> ScanResult:
        """Look only at these folders, and at whatever is new beneath them.

        Where names are given, only these files were written to.
        """
        for path in sorted(dirty, key=lambda path: (depth(path), path)):
            folder, names = self._folders.get(path), dirty[path]
            if folder is not None and (names is None or not self._retake(folder, names)):
                folder.key = None  # so that it is listed again
                try:
                    key = key_of(os.fstat(self._dirs.directory(path)))
                except OSError:
                    continue  # gone, as its parent will tell, which is dirty too
                self._walk([(path, key, self._rules_above(path))], only_new=True)
        self._rebuild()
        return self.found

    def _retake(self, folder: Folder, names: Collection[bytes]) -> bool:
        """Take in files of a folder again; False if it has to be listed to know what happened."""
        for name in names:
            if name in FILES:
                return False
            if name in folder.keys:  # else it is not captured
                before = folder.entries.get(name)
                if before is None or not self._entry_reader.retake(folder, name, before):
                    return False
                self.found.noted.add(folder.path)
                if folder.entries[name] != before:
                    self.found.changed.add(folder.path)
        return True

    def _rules_above(self, path: bytes) -> IgnoreRules:
        rules: IgnoreRules = NoRules()
        if path:
            parts = path.split(b"/")
            for depth in range(len(parts)):
                above = b"/".join(parts[:depth])
                folder = self._folders.get(above)
                if folder is None or folder.inner != folder.outer:  # else it has none of its own
                    rules = self._rules(above, rules)
        return rules

    def _rules(self, path: bytes, outer: IgnoreRules) -> IgnoreRules:
        """Return the rules for what is in a directory."""
        if self._options.include_ignored:
            return outer
        if path in self._forced:
            return IgnoreEverything()
        texts = [text for name in FILES if (text := self._text(path, name))]
        return IgnoreRules(outer, texts, path) if texts else outer

    def _text(self, path: bytes, name: bytes) -> bytes:
        try:
            fd = os.open(name, READ, dir_fd=self._dirs.directory(path))
        except OSError:
            return b""
        try:
            if not stat.S_ISREG(os.fstat(fd).st_mode):
                return b""
            return os.read(fd, LONGEST)
        finally:
            os.close(fd)

    def _walk(
        self, stack: list[tuple[bytes, Key, IgnoreRules]], only_new: bool = False
    ) -> set[bytes]:
        visited: set[bytes] = set()
        while stack:
            path, key, outer = stack.pop()
            folder = self._folders.get(path)
            rules: IgnoreRules | None = None
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
            start = start_of(path)
            for name in reversed(below):
                inner = start + name
                assert rules is not None
                if not only_new or self._is_news(inner, seen[name], rules):
                    stack.append((inner, seen[name], rules))
        return visited

    def _is_news(self, path: bytes, key: Key, rules: IgnoreRules) -> bool:
        folder = self._folders.get(path)
        return folder is None or folder.key != key or folder.outer != rules.fingerprint

    def _unchanged(
        self, folder: Folder | None, key: Key, outer: IgnoreRules
    ) -> dict[bytes, Key] | None:
        """Return the keys of what is in a folder, if nothing in it has changed."""
        if folder is None or folder.key != key or folder.outer != outer.fingerprint:
            return None
        if folder.names is None:
            folder.names = list(folder.keys)
        try:
            keys = keys_in(self._dirs, folder.path, folder.names)
        except OSError:
            return None
        return folder.keys if keys == list(folder.keys.values()) else None  # type: ignore[return-value]

    def _read(
        self, path: bytes, outer: IgnoreRules, old: Folder | None
    ) -> tuple[Folder, dict[bytes, Key], IgnoreRules] | None:
        """List a directory and take in what is new in it; return None if it cannot be listed."""
        reach("workspace:listing")
        try:
            if self._above_all + len(path) >= _LONGEST_PATH:
                raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
            fd = self._dirs.directory(path)
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
        start = start_of(path)
        forced = any(start + name in self._forced for name in names)
        folder.key = None if forced else trusted(key, self._started)
        before = old.entries if old is not None else {}
        known = old.keys if old is not None else {}
        take = self._entry_reader.take
        for name, entry_key in seen.items():
            if name not in others:
                folder.keys[name] = take(folder, name, entry_key, before.get(name), known.get(name))
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
                self._forget_all(start + name)
        self.found.noted.add(path)
        self._folders[path] = folder
        self.found.gone.discard(path)
        return folder, seen, rules

    def _list(
        self, path: bytes, fd: int, outer: IgnoreRules
    ) -> tuple[list[bytes], dict[bytes, str], IgnoreRules]:
        """Return the names in a directory that are captured, others that matter, and the rules."""
        names: list[bytes] = []
        others: dict[bytes, str] = {}
        start = start_of(path)
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
            return dict(zip(names, keys_in(self._dirs, path, names), strict=True))
        except OSError:
            seen: dict[bytes, Key] = {}
            for name in names:
                try:
                    (seen[name],) = keys_in(self._dirs, path, [name])
                except OSError as error:
                    if error.errno not in GONE:
                        others[name] = reason_of(error)
            return seen

    def _drop(self, path: bytes, error: OSError) -> None:
        """Leave out a directory that cannot be listed."""
        self._forget_all(path)
        above, name = parent_and_name(path)
        parent = self._folders.get(above) if path else None
        if parent is None:
            raise error
        parent.entries.pop(name, None)
        self.found.changed.add(above)
        self.found.noted.add(above)
        if error.errno not in GONE:
            parent.others[name] = reason_of(error)
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

    def _rebuild(self) -> None:
        self.found.noted |= build_trees(
            self._folders, self.found.changed, self._blocks, self._content_reader
        )
