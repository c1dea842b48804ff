"""What a restore has to do, found out before anything is done."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from holdfast.workspace.entries import DIRECTORY, FILE, DirectoryTree, Entry
from holdfast.workspace.index import Folder
from holdfast.workspace.made_before import MadeBefore
from holdfast.workspace.paths import parent_and_name, start_of
from holdfast.workspace.selection import Selection
from holdfast.workspace.target_rules import TargetRules
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
    made_before: MadeBefore | None = None,
) -> RestorePlan:
    """Return how to get from these folders to a tree, at these paths and below or everywhere.

    What is private stays as it is, whatever the tree says of it. So does what the tree's own rules
    ignore, unless it was made before; without ``made_before`` there are no rules.
    """
    rules = None if made_before is None else TargetRules(reader)
    planner = _Planner(folders, Selection(paths), frozenset(private), rules, made_before)
    return planner.plan(reader, root)


class _Planner:
    def __init__(
        self,
        folders: Folders,
        selection: Selection,
        private: frozenset[bytes],
        rules: TargetRules | None,
        made_before: MadeBefore | None,
    ) -> None:
        self._folders = folders
        self._private = private
        self._selection = selection
        self._rules = rules
        self._made_before = made_before
        self._staying: set[bytes] = set()
        """What stays though the tree has it not, and the directories above it."""
        self._made = RestorePlan()

    def plan(self, reader: TreeReader, root: bytes) -> RestorePlan:
        reader.levels(root, self._enter)
        plan = self._made
        plan.directories.sort()
        plan.removed_directories = sorted({*plan.removed_directories} - self._staying)
        return plan

    def _enter(self, path: bytes, tree: DirectoryTree) -> Iterable[tuple[bytes, bytes]]:
        """Compare a directory with what is there; returns the subtrees that have to be compared."""
        if self._rules is not None:
            self._rules.note(path, tree)
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
        rules = None
        if self._rules is not None and not in_the_way:
            rules = self._rules.within(parent_and_name(path)[0])
        stack = [(path, entry, False)]
        while stack:
            path, entry, is_ignored = stack.pop()
            is_directory = entry.kind == DIRECTORY
            chosen = in_the_way or self._selection.holds(path)
            if rules is not None:
                is_ignored = is_ignored or rules.leave_out(path, is_directory)
            if chosen and is_ignored and not self._was_made_before(path, entry):
                self._stay(path)
            elif chosen and is_directory:
                self._made.removed_directories.append(path)
            elif chosen:
                self._made.removed.append((path, entry))
            if is_directory and (chosen or self._selection.leads_to(path)):
                within = self._folders[path].entries
                stack += [(path + b"/" + name, inner, is_ignored) for name, inner in within.items()]

    def _was_made_before(self, path: bytes, entry: Entry) -> bool:
        return self._made_before is not None and self._made_before.holds(path, entry)

    def _stay(self, path: bytes) -> None:
        while path and path not in self._staying:
            self._staying.add(path)
            path, _ = parent_and_name(path)


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
