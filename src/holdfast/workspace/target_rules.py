"""The ignore rules that a tree itself holds: what they ignore was there, perhaps, and not taken."""

from __future__ import annotations

from holdfast.workspace.entries import FILE, DirectoryTree, Entry
from holdfast.workspace.ignore import FILES, LONGEST, IgnoreEverything, IgnoreRules, NoRules
from holdfast.workspace.tree_reader import TreeReader


class TargetRules:
    """The rules of a tree that is gone through from its root down; read once they are needed."""

    def __init__(self, reader: TreeReader) -> None:
        self._reader = reader
        self._files: dict[bytes, list[Entry]] = {}
        self._known: dict[bytes, IgnoreRules] = {}

    def note(self, path: bytes, tree: DirectoryTree) -> None:
        """Know the ignore files of a directory of the tree."""
        named = [tree.entries[name] for name in FILES if name in tree.entries]
        if found := [entry for entry in named if entry.kind == FILE and entry.size]:
            self._files[path] = found

    def within(self, directory: bytes) -> IgnoreRules:
        """Return the rules for what is in a directory."""
        rules: IgnoreRules = NoRules()
        if not self._files:
            return rules
        parts = directory.split(b"/") if directory else []
        for depth in range(len(parts) + 1):
            path = b"/".join(parts[:depth])
            if path not in self._known:
                self._known[path] = self._rules(path, rules)
            rules = self._known[path]
        return rules

    def _rules(self, path: bytes, outer: IgnoreRules) -> IgnoreRules:
        if path and outer.leave_out(path, is_directory=True):
            return IgnoreEverything()
        texts = [self._text(entry) for entry in self._files.get(path, ())]
        return IgnoreRules(outer, texts, path) if texts else outer

    def _text(self, entry: Entry) -> bytes:
        text = b""
        for piece in self._reader.read(entry):
            text += piece
            if len(text) >= LONGEST:
                break
        return text[:LONGEST]
