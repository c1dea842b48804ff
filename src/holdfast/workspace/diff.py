"""What differs between two trees."""

from __future__ import annotations

import difflib
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from holdfast.stores.base import Store
from holdfast.workspace.entries import (
    DIRECTORY,
    FILE,
    MAX_DEPTH,
    MAX_ENTRIES,
    SYMLINK,
    DirectoryTree,
    Entry,
)
from holdfast.workspace.paths import start_of
from holdfast.workspace.results import Snapshot
from holdfast.workspace.tree_reader import TreeReader, too_much

_LONGEST_TEXT = 2**20


@dataclass(frozen=True)
class TreeDiff:
    """What changed from one tree to another, by path; a directory counts where it is empty.

    ``str(diff)`` reads like ``git status --short``, or like ``git diff`` with ``text=True``.
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    """Files that have another name and the same content: the old name and the new."""
    mode: tuple[str, ...] = ()
    """Files and directories whose permission bits changed."""
    touched: tuple[str, ...] = ()
    """Files of which only the time changed."""
    text: str | None = None
    """The changed lines of text files, where they were asked for."""

    def __bool__(self) -> bool:
        return bool(
            self.added or self.removed or self.modified or self.renamed or self.mode or self.touched
        )

    def __repr__(self) -> str:
        names = ("added", "removed", "modified", "renamed", "mode", "touched")
        counts = [f"{len(getattr(self, each)):,} {each}" for each in names if getattr(self, each)]
        return f"<TreeDiff: {', '.join(counts) or 'no changes'}>"

    def __str__(self) -> str:
        if self.text is not None:
            return self.text
        lines = [
            *(f"A {path}" for path in self.added),
            *(f"D {path}" for path in self.removed),
            *(f"M {path}" for path in self.modified),
            *(f"R {old} -> {new}" for old, new in self.renamed),
            *(f"m {path}" for path in self.mode),
        ]
        return "\n".join(map(_on_one_line, lines))


def compare(reader: TreeReader, a: bytes | None, b: bytes | None, text: bool = False) -> TreeDiff:
    """Return what changed from one tree to another, reading only that; None is an empty tree."""
    pairs = list(differing(reader, a, b))
    added = {path: new for path, old, new in pairs if old is None and new is not None}
    removed = {path: old for path, old, new in pairs if new is None and old is not None}
    both = [(path, old, new) for path, old, new in pairs if old is not None and new is not None]
    modified = [
        path
        for path, old, new in both
        if old.kind != new.kind or (old.kind != DIRECTORY and old.content != new.content)
    ]
    changed = set(modified)
    mode = [path for path, old, new in both if path not in changed and old.mode != new.mode]
    timed = [
        path for path, old, new in both if old.mtime != new.mtime and path not in {*changed, *mode}
    ]
    renamed = _renames(removed, added)
    for old_path, new_path in renamed:
        del removed[old_path], added[new_path]
    return TreeDiff(
        added=_shown(added),
        removed=_shown(removed),
        modified=tuple(map(os.fsdecode, sorted(modified))),
        renamed=tuple((os.fsdecode(old), os.fsdecode(new)) for old, new in renamed),
        mode=tuple(map(os.fsdecode, sorted(mode))),
        touched=tuple(map(os.fsdecode, sorted(timed))),
        text=_texts(reader, [p for p in pairs if p[0] in {*added, *removed, *changed}])
        if text
        else None,
    )


def compare_captured(store: Store, old: Any, new: Any) -> TreeDiff:
    """Return what changed from the files that one checkpoint holds to those of another."""
    before, after = (Snapshot.from_value(part).root.name for part in (old, new))
    return compare(TreeReader(store), before, after)


def _shown(entries: dict[bytes, Entry]) -> tuple[str, ...]:
    """Return paths in order; of directories only the empty ones, with a slash at their end."""
    above = {path.rpartition(b"/")[0] for path in entries}
    return tuple(
        os.fsdecode(path + b"/" if entry.kind == DIRECTORY else path)
        for path, entry in sorted(entries.items())
        if entry.kind != DIRECTORY or path not in above
    )


def _renames(removed: dict[bytes, Entry], added: dict[bytes, Entry]) -> list[tuple[bytes, bytes]]:
    by_content: dict[tuple[int, bytes], list[bytes]] = {}
    for path, entry in sorted(removed.items()):
        if entry.kind != DIRECTORY and entry.size:
            by_content.setdefault((entry.kind, entry.content), []).append(path)
    pairs: list[tuple[bytes, bytes]] = []
    for path, entry in sorted(added.items()):
        old = by_content.get((entry.kind, entry.content))
        if entry.kind != DIRECTORY and old:
            # Of several, one that kept its last name is the likelier.
            name = path.rpartition(b"/")[2]
            same = next((p for p in old if p.rpartition(b"/")[2] == name), old[0])
            old.remove(same)
            pairs.append((same, path))
    return pairs


def differing(
    reader: TreeReader, a: bytes | None, b: bytes | None
) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
    """Yield every path at which two trees differ, with what stands there in each."""
    level = [(b"", a, b)]
    count = 0
    for _ in range(MAX_DEPTH):
        chunks = {chunk for _, *both in level for chunk in both if chunk is not None}
        trees: dict[bytes | None, DirectoryTree] = {
            None: DirectoryTree(b"", {}),
            **dict(reader.trees(chunks)),
        }
        following: list[tuple[bytes, bytes | None, bytes | None]] = []
        count += sum(len(trees[one].entries) + len(trees[other].entries) for _, one, other in level)
        if count > MAX_ENTRIES:
            break
        for path, one, other in level:
            old, new = trees[one].entries, trees[other].entries
            start = start_of(path)
            for name in sorted({*old, *new}):
                before, after = old.get(name), new.get(name)
                if before is not None and after is not None and before[:5] == after[:5]:
                    continue
                yield start + name, before, after
                below = [
                    e.location if e is not None and e.kind == DIRECTORY else None
                    for e in (before, after)
                ]
                if any(below):
                    following.append((start + name, *below))  # type: ignore[arg-type]
        level = following
        if not level:
            return
    raise too_much()


def _texts(reader: TreeReader, pairs: list[tuple[bytes, Entry | None, Entry | None]]) -> str:
    return "".join(
        part for path, old, new in sorted(pairs) for part in _text(reader, path, old, new)
    )


def _text(reader: TreeReader, path: bytes, old: Entry | None, new: Entry | None) -> Iterator[str]:
    shown = _on_one_line(os.fsdecode(path).encode("utf-8", "backslashreplace").decode())
    if all(entry is None or entry.kind == DIRECTORY for entry in (old, new)):
        return
    names = (f"a/{shown}" if old else "/dev/null", f"b/{shown}" if new else "/dev/null")
    if any(entry is not None and entry.size > _LONGEST_TEXT for entry in (old, new)):
        yield f"Files {names[0]} and {names[1]} differ, and are too long to be shown\n"
        return
    before, after = _lines(reader, old), _lines(reader, new)
    if before is None or after is None:
        yield f"Binary files {names[0]} and {names[1]} differ\n"
        return
    for line in difflib.unified_diff(before, after, *names):
        yield line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"


def _lines(reader: TreeReader, entry: Entry | None) -> list[str] | None:
    """Return the lines of a text; None for what is none."""
    if entry is None or entry.kind == DIRECTORY:
        return []
    data = entry.location if entry.kind == SYMLINK else b"".join(reader.read(entry))
    if entry.kind == FILE and is_binary(data):
        return None
    return list(io.StringIO(data.decode("utf-8", "backslashreplace")))  # cut at "\n" alone


def _on_one_line(text: str) -> str:
    """Return a name with its line breaks escaped, and whatever else would not be printed."""
    return "".join(
        c if c.isprintable() or "\udc80" <= c <= "\udcff" else c.encode("unicode_escape").decode()
        for c in text
    )


def is_binary(data: bytes) -> bool:
    """Return whether these are not the bytes of a text: as git tells, by a NUL near the start."""
    return b"\x00" in data[:8000]
