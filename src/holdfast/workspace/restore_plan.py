"""What a restore has to do, found out before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.workspace.entries import DIRECTORY, FILE, DirectoryTree, Entry
from holdfast.workspace.index import Folder
from holdfast.workspace.paths import parent_and_name, start_of
from holdfast.workspace.tree_reader import TreeReader


@dataclass
class RestorePlan:
    """The steps from the workspace as it is to a tree."""

    directories: list[tuple[bytes, Entry]] = field(default_factory=list)
    """To be made, each after the one it is in."""
    files: list[tuple[bytes, Entry]] = field(default_factory=list)
    symlinks: list[tuple[bytes, Entry]] = field(default_factory=list)
    touched: list[tuple[bytes, Entry]] = field(default_factory=list)
    """Files and symlinks that only get another mode or time."""
    modes: list[tuple[bytes, Entry]] = field(default_factory=list)
    """Directories that only get another mode."""
    removed: list[tuple[bytes, Entry]] = field(default_factory=list)
    """Files and symlinks that go, for good or to make room for a directory."""
    removed_directories: list[bytes] = field(default_factory=list)
    """Each before those in it."""

    @property
    def written(self) -> list[bytes]:
        """The paths of all files and symlinks that are new or replaced, in order."""
        return sorted(path for path, _ in (*self.files, *self.symlinks))

    def is_empty(self) -> bool:
        """Return whether there is nothing to do."""
        return not any(vars(self).values())

    def bytes(self) -> int:
        """Return how many bytes are written."""
        return sum(entry.size for _, entry in self.files)


Folders = Mapping[bytes, Folder]


def make_plan(
    folders: Folders,
    reader: TreeReader,
    root: bytes,
    paths: Collection[bytes] | None,
    private: Collection[bytes] = (),
) -> RestorePlan:
    """Return how to get from these folders to a tree, at these paths and below or everywhere.

    What is private stays as it is, whatever the tree says of it.
    """
    return _Planner(folders, Selection(paths), frozenset(private)).plan(reader, root)


class Selection:
    """The part of a workspace that a restore is about."""

    def __init__(self, paths: Collection[bytes] | None) -> None:
        self._all = paths is None
        self._paths = frozenset(paths or ())
        self._above = {
            b"/".join(path.split(b"/")[:depth])
            for path in self._paths
            for depth in range(path.count(b"/") + 1)
        }

    def holds(self, path: bytes) -> bool:
        """Return whether the path or one above it was chosen."""
        if self._all or path in self._paths:
            return True
        parts = path.split(b"/")
        return any(b"/".join(parts[:depth]) in self._paths for depth in range(1, len(parts)))

    def leads_to(self, path: bytes) -> bool:
        """Return whether something beneath the path was chosen."""
        return not self._all and path in self._above


class _Planner:
    def __init__(self, folders: Folders, selection: Selection, private: frozenset[bytes]) -> None:
        self._folders = folders
        self._private = private
        self._selection = selection
        self._made = RestorePlan()

    def plan(self, reader: TreeReader, root: bytes) -> RestorePlan:
        reader.levels(root, self._enter)
        plan = self._made
        plan.directories.sort()
        plan.removed_directories.sort()
        return plan

    def _enter(self, path: bytes, tree: DirectoryTree) -> Iterable[tuple[bytes, bytes]]:
        """Compare a directory with what is there; returns the subtrees that have to be compared."""
        folder = self._folders.get(path)
        now = folder.entries if folder is not None else {}
        start = start_of(path)
        for name, entry in now.items():
            if name not in tree.entries:
                self._remove(start + name, entry)
        for name, entry in tree.entries.items():
            inner = start + name
            if inner in self._private:
                continue
            before = now.get(name)
            if self._selection.holds(inner):
                descend = self._change(inner, before, entry)
            else:
                descend = self._selection.leads_to(inner) and self._make_way(inner, before, entry)
            if descend:
                yield inner, entry.location

    def _change(self, path: bytes, before: Entry | None, entry: Entry) -> bool:
        if before is not None and before.kind != entry.kind:
            self._remove(path, before, in_the_way=True)
            before = None
        if entry.kind == DIRECTORY:
            if before is None:
                self._made.directories.append((path, entry))
            elif before.mode != entry.mode:
                self._made.modes.append((path, entry))
            return before is None or before.content != entry.content
        if before is None or before.content != entry.content:
            (self._made.files if entry.kind == FILE else self._made.symlinks).append((path, entry))
        elif (before.mode, before.mtime) != (entry.mode, entry.mtime):
            self._made.touched.append((path, entry))
        return False

    def _make_way(self, path: bytes, before: Entry | None, entry: Entry) -> bool:
        """See that there is a directory, above something that was chosen."""
        if entry.kind != DIRECTORY:
            if before is not None:
                self._remove(path, before)
            return False
        if before is None or before.kind != DIRECTORY:
            return self._change(path, before, entry)
        return before.content != entry.content

    def _remove(self, path: bytes, entry: Entry, in_the_way: bool = False) -> None:
        """Take away what is there, as far as it was chosen or is in the way."""
        if not (in_the_way or self._selection.holds(path) or self._selection.leads_to(path)):
            return
        stack = [(path, entry)]
        while stack:
            path, entry = stack.pop()
            chosen = in_the_way or self._selection.holds(path)
            if entry.kind != DIRECTORY:
                if chosen:
                    self._made.removed.append((path, entry))
            elif chosen or self._selection.leads_to(path):
                if chosen:
                    self._made.removed_directories.append(path)
                within = self._folders[path].entries
                stack += [(path + b"/" + name, inner) for name, inner in within.items()]


def wanted_paths(reader: TreeReader, root: bytes, beneath: Collection[bytes]) -> frozenset[bytes]:
    """Return all paths of a tree at these paths and below."""
    selection = Selection(beneath)
    found: set[bytes] = set()

    def enter(path: bytes, tree: DirectoryTree) -> Iterable[tuple[bytes, bytes]]:
        start = start_of(path)
        for name, entry in tree.entries.items():
            inner = start + name
            if selection.holds(inner) or selection.leads_to(inner):
                found.add(inner)
                if entry.kind == DIRECTORY:
                    yield inner, entry.location

    reader.levels(root, enter)
    return frozenset(found)


def in_the_way(plan: RestorePlan, folders: Folders, exists: Callable[[bytes], bool]) -> list[bytes]:
    """Return paths the plan would make at which something stands that was not captured."""
    removed = {path for path, _ in plan.removed} | set(plan.removed_directories)
    blocked: list[bytes] = []
    for path, _ in (*plan.directories, *plan.files, *plan.symlinks):
        above, name = parent_and_name(path)
        folder = folders.get(above)
        if folder is None or name in folder.entries or path in removed:
            continue
        if exists(path):
            blocked.append(path)
    return blocked
