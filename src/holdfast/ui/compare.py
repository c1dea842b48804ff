"""What differs between two checkpoints: values by path, messages, files, and lines of a file."""

from __future__ import annotations

import os
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.commands.diff import PARTS, Compared, compared, diff_json
from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.output.checkpoints import checkpoint_json
from holdfast.cli.output.json_schemas import (
    CHECKPOINT,
    SHAPES,
    TEXT,
    TRUTH,
    WHOLE,
    mapping,
    maybe,
    record,
    several,
)
from holdfast.core.diff import Diff
from holdfast.core.json_form import to_json
from holdfast.core.short_repr import brief
from holdfast.ui import explorations
from holdfast.ui.checkpoint import new_bytes
from holdfast.ui.line_diff import LARGEST, Told, is_binary
from holdfast.ui.messages import said_between
from holdfast.ui.numbers import exact
from holdfast.ui.reading import small
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.tree_paths import needed_place, place_of, ref_of, shown
from holdfast.ui.trees import bytes_of, root_of
from holdfast.workspace.diff import compare
from holdfast.workspace.entries import DIRECTORY, Entry
from holdfast.workspace.tree_reader import TreeReader

if TYPE_CHECKING:
    from holdfast.cli.output.messages import MessageChanges
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.workspace import TreeDiff

MOST_PATHS = 500
"""Of each sort of change so many are told, and how many more there are."""
LARGEST_VALUE = 20_000
_TABLES = ("added", "removed", "changed", "moved")
_LISTED = ("added", "removed", "modified", "renamed", "mode", "touched")


def _pair(client: SyncClient, given: Parameters) -> tuple[CheckpointInfo, CheckpointInfo]:
    names = Names(client)
    new = names.checkpoint(given.text("b") or given.needed("a"))
    if given.text("b") is not None:
        return names.checkpoint(given.needed("a")), new
    if new.parent_id is None:
        raise NotFound(f"checkpoint {new.checkpoint_id!r} is the first: name another to compare")
    return names.checkpoint(new.parent_id), new


def diff(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return what changed from one checkpoint to another; without ``b``, since the parent."""
    part = given.choice("part", ("all", "files", *PARTS), "all")
    every = given.flag("all")
    old, new = _pair(client, given)
    chosen = [part] if part in PARTS else []
    seen = Compared() if part == "files" else compared(client, old, new, chosen, every)
    said = seen.said if part != "all" else seen.said or said_between(client, old, new)
    files = None if chosen else _files(client, old, new)
    cut: dict[str, int] = {}
    return {
        **diff_json(old, new, Diff(), None, None),
        **_changes(seen.changes, cut),
        "messages": None if said is None else _said(said, cut),
        "files": None if files is None else _told(files, shown, cut),
        "refs": None if files is None else _refs(files),
        "a": checkpoint_json(old),
        "b": checkpoint_json(new),
        "new": new_bytes(client, new, old),
        "hidden": seen.hidden,
        "cut": cut,
    }


def _changes(changes: Diff, cut: dict[str, int]) -> dict[str, Any]:
    """Return the first changes of each sort, by path; the others are counted."""
    told: dict[str, Any] = {"moved": dict(islice(changes.moved.items(), MOST_PATHS))}
    for name in ("added", "removed"):
        first = islice(getattr(changes, name).items(), MOST_PATHS)
        told[name] = {path: _value(value) for path, value in first}
    told["changed"] = {
        path: {"old": _value(old), "new": _value(new)}
        for path, (old, new) in islice(changes.changed.items(), MOST_PATHS)
    }
    for name in _TABLES:
        _count(cut, name, getattr(changes, name))
    return told


def _count(cut: dict[str, int], name: str, found: Any) -> None:
    if len(found) > MOST_PATHS:
        cut[name] = len(found) - MOST_PATHS


def _value(value: Any) -> Any:
    """Return a value in the typed form, or how it begins where it is too large for a page."""
    if _size(value, LARGEST_VALUE) <= LARGEST_VALUE:
        return small(exact(to_json(value)), LARGEST_VALUE)
    return {"$type": "preview", "value": brief(value, LARGEST_VALUE // 10), "size": None}


def _size(value: Any, most: int) -> int:
    """Return about how many characters a value has; it is not counted far beyond so many."""
    count, waiting = 0, [value]
    while waiting and count <= most:
        each = waiting.pop()
        if isinstance(each, str | bytes):
            count += len(each)
        elif isinstance(each, dict):
            waiting += [*each.keys(), *each.values()] if len(each) <= most else []
            count += len(each) * 4
        elif isinstance(each, list | tuple | set | frozenset):
            waiting += each if len(each) <= most else ()
            count += len(each) * 2
        else:
            count += sys.getsizeof(each, 64) // 4
    return count


def _said(said: MessageChanges, cut: dict[str, int]) -> dict[str, Any]:
    told = said.as_dict()
    for name in ("added", "removed"):
        _count(cut, f"messages.{name}", told[name])
        told[name] = [_short(message) for message in told[name][:MOST_PATHS]]
    return told


def _short(message: dict[str, Any]) -> dict[str, Any]:
    calls = [
        {**call, "arguments": _cut_text(call["arguments"])}
        for call in message["calls"][:MOST_PATHS]
    ]
    return {**message, "text": _cut_text(message["text"]), "calls": calls}


def _cut_text(text: str) -> str:
    clean = text.encode("utf-8", "replace").decode()
    return clean if len(clean) <= LARGEST_VALUE else f"{clean[:LARGEST_VALUE]}…"


def _files(client: SyncClient, old: CheckpointInfo, new: CheckpointInfo) -> TreeDiff | None:
    """Return what changed in files, of whose checkpoints no state is read."""
    before, after = root_of(client, old), root_of(client, new)
    if before is None and after is None:
        return None
    return compare(TreeReader(client.store), before, after)


def _told(files: TreeDiff, say: Any, cut: dict[str, int]) -> dict[str, Any]:
    found: dict[str, Any] = {"text": None}
    for name in _LISTED:
        listed = getattr(files, name)
        _count(cut, f"files.{name}", listed)
        found[name] = [
            [say(os.fsencode(each)) for each in path]
            if isinstance(path, tuple)
            else say(os.fsencode(path))
            for path in listed[:MOST_PATHS]
        ]
    return found


def _refs(files: TreeDiff) -> dict[str, Any]:
    """Return the same lists of paths, as they are given back."""
    found = _told(files, ref_of, {})
    del found["text"]
    return found


def file_diff(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return the lines of a file that changed, with the words that did."""
    old, new = _pair(client, given)
    path = needed_place(given)
    was = place_of(given, "old_path", "old_ref") or path
    entries = [_entry(client, old, was), _entry(client, new, path)]
    if entries == [None, None]:
        raise NotFound(f"there is no file {brief(shown(path))} in either checkpoint")
    if any(entry is not None and entry.kind == DIRECTORY for entry in entries):
        raise UsageError(f"{brief(shown(path))} is a directory")
    sides = [b"" if entry is None else bytes_of(client, entry, LARGEST + 1) for entry in entries]
    told: dict[str, Any] = {"path": shown(path), "ref": ref_of(path)}
    if any(map(is_binary, sides)):
        return {**told, "hunks": [], "binary": True, "cut": False}
    found = Told(*sides)
    return {**told, "hunks": found.hunks, "binary": False, "cut": found.is_cut}


def _entry(client: SyncClient, info: CheckpointInfo, path: bytes) -> Entry | None:
    root = root_of(client, info)
    return None if root is None else TreeReader(client.store).find(root, path)


_TWO = {"a": "the older checkpoint", "b": "the newer one; without it, a and its parent"}
_REFS = {name: several(several(TEXT) if name == "renamed" else TEXT) for name in _LISTED}
_DIFF = {
    **SHAPES["diff"],
    "properties": {
        **SHAPES["diff"]["properties"],
        "a": CHECKPOINT,
        "b": CHECKPOINT,
        "refs": {**maybe(record(**_REFS)), "description": "paths of files as they are given back"},
        "new": {**maybe(WHOLE), "description": "stored bytes of b that a does not hold"},
        "hidden": {**WHOLE, "description": "changes of what a framework keeps for itself"},
        "cut": {**mapping(WHOLE), "description": "how many more there are, where not all are told"},
    },
    "required": [*SHAPES["diff"]["required"], "a", "b", "refs", "new", "hidden", "cut"],
}
_WORD = {"type": "array", "prefixItems": [TEXT, TRUTH], "minItems": 2, "maxItems": 2}
_LINE = record(
    op={"enum": [" ", "-", "+"]}, old=maybe(WHOLE), new=maybe(WHOLE), words=several(_WORD)
)
_FILE_DIFF = record(
    path=TEXT,
    ref=TEXT,
    hunks=several(record(old_start=WHOLE, new_start=WHOLE, lines=several(_LINE))),
    binary=TRUTH,
    cut=TRUTH,
)
ROUTES: tuple[Route, ...] = (
    Route(
        "diff",
        diff,
        "What changed between two checkpoints",
        {**_TWO, "part": "all, files, state, context, tasks or effects", "all": "also plumbing"},
        _DIFF,
    ),
    Route(
        "file-diff",
        file_diff,
        "What changed in a file, with the words",
        {
            **_TWO,
            "path": "the file",
            "ref": "the same, where its name is no text",
            "old_path": "what it was called before",
            "old_ref": "the same, where that is no text",
        },
        _FILE_DIFF,
    ),
    *explorations.ROUTES,
)
