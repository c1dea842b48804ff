"""What each checkpoint of a listing changed in the files, counted: ``~3 files +12 -4``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from holdfast.cli.output.checkpoints import payloads_of
from holdfast.core.chunk_format import LINK
from holdfast.core.kinds import Ready
from holdfast.core.kinds.content_links import link_of
from holdfast.errors import HoldfastError
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import TreeDiff

_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
MANY = 100
"""Of more files than these the lines are not counted: it would take too long for a listing."""


@dataclass(frozen=True)
class Changed:
    """How many files a checkpoint changed, and how many lines; None if they were not counted."""

    files: int
    added: int | None = None
    removed: int | None = None

    def said(self, unicode: bool = True, brief: bool = False) -> str:
        """As it stands in a listing."""
        noun = "" if brief else " file" if self.files == 1 else " files"
        counted = ""
        if self.added is not None and self.removed is not None and not brief:
            counted = f" {plus_minus(self.added, self.removed, unicode)}"
        return f"~{self.files:,}{noun}{counted}"

    def as_dict(self) -> dict[str, int | None]:
        return {"files": self.files, "added": self.added, "removed": self.removed}


def changes_of(client: LazyClient, infos: Sequence[CheckpointInfo]) -> dict[str, Changed]:
    """Return what each of some checkpoints changed since the one before, if anything."""
    if not client.store.shares_chunks:
        return {}  # whole documents, which hold no files
    trees = _trees(client, infos)
    if not trees:
        return {}
    missing = {i.parent_id for i in infos if i.parent_id} - trees.keys()
    older = client.store.query(Query(ids=sorted(missing))) if missing else []
    trees |= _trees(client, older)
    found = {}
    for info in infos:
        mine, before = trees.get(info.checkpoint_id), trees.get(info.parent_id or "")
        if mine is not None and before is not None and mine != before:
            changed = _compared(client, before, mine)
            if changed is not None:
                found[info.checkpoint_id] = changed
    return found


def _trees(client: LazyClient, infos: Sequence[CheckpointInfo]) -> dict[str, bytes]:
    """Return the root of the files that each checkpoint holds."""
    found = {}
    for checkpoint_id, payload in payloads_of(client, infos):
        part = payload.get("workspace")
        root = _root(part.get("tree")) if isinstance(part, dict) else None
        if root is not None:
            found[checkpoint_id] = root
    return found


def _root(tree: Any) -> bytes | None:
    if type(tree) is not Ready or tree.code != LINK or type(tree.plain) is not bytes:
        return None
    try:
        return link_of(tree.plain).name
    except HoldfastError:  # leads nowhere: `verify` says so, a list goes on
        return None


def _compared(client: LazyClient, before: bytes, after: bytes) -> Changed | None:
    from holdfast.workspace.diff import compare
    from holdfast.workspace.tree_reader import TreeReader

    reader = TreeReader(client.store)
    try:
        found = compare(reader, before, after)
        files = changed_files(found)
        if not files or files > MANY:
            return Changed(files) if files else None
        text = compare(reader, before, after, text=True).text or ""
    except HoldfastError:  # files that are damaged: `verify` and `diff` say so, a list goes on
        return None
    return Changed(files, *_lines(text))


def changed_files(found: TreeDiff) -> int:
    """Return how many files changed."""
    parts = (found.added, found.removed, found.modified, found.renamed, found.mode)
    return sum(map(len, parts))


def _lines(text: str) -> tuple[int, int]:
    counts = lines_by_file(text).values()
    return sum(added for added, _ in counts), sum(removed for _, removed in counts)


def lines_by_file(text: str) -> dict[str, tuple[int, int]]:
    """Return how many lines a unified diff adds to each file, and how many it takes away."""
    found: dict[str, tuple[int, int]] = {}
    name, old, new = "", 0, 0
    for line in text.split("\n"):
        if old > 0 or new > 0:
            added, removed = found.get(name, (0, 0))
            if line.startswith("+"):
                found[name], new = (added + 1, removed), new - 1
            elif line.startswith("-"):
                found[name], old = (added, removed + 1), old - 1
            elif not line.startswith("\\"):
                old, new = old - 1, new - 1
        elif line.startswith(("--- a/", "+++ b/")):
            name = line[6:]
        elif (hunk := _HUNK.match(line)) is not None:
            old, new = (1 if each is None else int(each) for each in hunk.groups())
    return found


def plus_minus(added: int, removed: int, unicode: bool) -> str:
    """Return so many lines as ``+12 −4``."""
    return f"+{added:,} {'−' if unicode else '-'}{removed:,}"
