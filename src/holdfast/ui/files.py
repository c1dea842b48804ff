"""The files of a checkpoint, read from its tree in the store: never from the disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import NotFound, UsageError
from holdfast.cli.output.json_schemas import TEXT, WHOLE, Schema, maybe, record, several
from holdfast.core.short_repr import brief
from holdfast.ui.line_diff import Told, is_binary, unified
from holdfast.ui.reading import parent_of
from holdfast.ui.routes import Content, Parameters, Route
from holdfast.ui.shapes import with_optional
from holdfast.ui.tree_paths import needed_place, place_of, ref_of, shown
from holdfast.ui.trees import (
    COUNTED,
    Changes,
    bytes_of,
    changes_between,
    entry_at,
    root_of,
    snapshot_in,
)
from holdfast.workspace.entries import DIRECTORY, SYMLINK, Entry
from holdfast.workspace.tree_reader import TreeReader

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo

_KINDS = {DIRECTORY: "directory", SYMLINK: "link"}
_LONGEST_TEXT = 500_000
_LARGEST_RAW = 64 * 2**20
_IMAGES = (
    ("image/png", lambda data: data.startswith(b"\x89PNG\r\n\x1a\n")),
    ("image/jpeg", lambda data: data.startswith(b"\xff\xd8\xff")),
    ("image/gif", lambda data: data.startswith((b"GIF87a", b"GIF89a"))),
    ("image/webp", lambda data: data[:4] == b"RIFF" and data[8:12] == b"WEBP"),
    ("image/avif", lambda data: data[4:12] in (b"ftypavif", b"ftypavis")),
)
"""By how a file begins, for its name says nothing of what is in it."""


def _root(client: SyncClient, info: CheckpointInfo) -> bytes:
    root = root_of(client, info)
    if root is None:
        raise NotFound(f"checkpoint {info.checkpoint_id!r} was saved without files")
    return root


def files(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return what a directory of a checkpoint holds, a page at a time."""
    info = Names(client).checkpoint(given.needed("id"))
    path = place_of(given) or b""
    at, limit = given.number("cursor") or 0, given.limit
    root, changed = _root(client, info), _since_parent(client, info)
    entries = _entries(client, root, path, changed)
    rows: list[tuple[bytes, Entry | None, bool]] = [
        (name, entry, entry.kind == DIRECTORY) for name, entry in entries.items()
    ]
    if isinstance(changed, Changes):
        gone = changed.gone.get(path, {})
        rows += [(name, None, was) for name, was in gone.items() if name not in entries]
    rows.sort(key=lambda row: (not row[2], row[0]))
    start = path + b"/" if path else b""
    return {
        "path": shown(path),
        "ref": ref_of(path),
        "entries": [_row(start + row[0], *row, changed) for row in rows[at : at + limit]],
        "next": str(at + limit) if at + limit < len(rows) else None,
        "total": len(rows),
        "changed": changed.counts if isinstance(changed, Changes) else changed,
    }


def _since_parent(client: SyncClient, info: CheckpointInfo) -> Changes | dict[str, int] | None:
    """Return what changed since the parent: only how many files there are, where it had none."""
    before, snapshot = parent_of(client, info), snapshot_in(client, info)
    if before is None or snapshot is None:
        return None
    old = root_of(client, before)
    if old is None:
        return {**dict.fromkeys(COUNTED, 0), "added": snapshot.files}
    return changes_between(client, old, snapshot.root.name)


def _entries(
    client: SyncClient, root: bytes, path: bytes, changed: Changes | dict[str, int] | None
) -> dict[bytes, Entry]:
    """Return what a directory holds; nothing where it is gone since the parent."""
    reader = TreeReader(client.store)
    if not path:
        return dict(reader.tree(root).entries)
    if isinstance(changed, Changes) and path in changed.gone and reader.find(root, path) is None:
        return {}
    entry = entry_at(client, root, path)
    if entry.kind != DIRECTORY:
        raise UsageError(f"{brief(shown(path))} is no directory")
    return dict(reader.tree(entry.location).entries)


def _row(
    path: bytes,
    name: bytes,
    entry: Entry | None,
    is_directory: bool,
    changed: Changes | dict[str, int] | None,
) -> dict[str, Any]:
    row: dict[str, Any] = {
        "name": shown(name),
        "path": shown(path),
        "ref": ref_of(path),
        "kind": "directory" if is_directory else "file",
        "size": None,
        "mode": None,
        "changed": None if changed is None else "added",
    }
    if isinstance(changed, Changes):
        row["changed"] = "removed" if entry is None else changed.mark(path, is_directory)
        if (old := changed.old_names.get(path)) is not None:
            row |= {"old_path": shown(old), "old_ref": ref_of(old)}
    if entry is not None:
        row |= {"kind": _KINDS.get(entry.kind, "file"), "mode": entry.mode}
        row["size"] = None if is_directory else entry.size
    return row


def file(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return a file of a checkpoint, as far as it is text, and what changed in it."""
    info = Names(client).checkpoint(given.needed("id"))
    path = needed_place(given)
    entry = entry_at(client, _root(client, info), path)
    data = bytes_of(client, entry, _LONGEST_TEXT + 1)
    told: dict[str, Any] = {
        "path": shown(path),
        "ref": ref_of(path),
        "size": entry.size,
        "mode": entry.mode,
    }
    if entry.kind == SYMLINK:
        return {**told, "kind": "link", "text": shown(data)}
    if media_of(data) is not None:
        return {**told, "kind": "image"}
    if is_binary(data):
        return {**told, "kind": "binary"}
    text, encoding = _text(data)
    return {
        **told,
        "kind": "text",
        "text": text,
        "cut": entry.size if len(data) > _LONGEST_TEXT else None,
        "encoding": encoding,
        "language": PurePosixPath(shown(path)).suffix[1:21].lower() or None,
        "diff": _diff_of(client, info, entry, path),
    }


def _text(data: bytes) -> tuple[str, str]:
    """Return what bytes say, and in which encoding; a character that was cut is left out."""
    cut = data[:_LONGEST_TEXT]
    try:
        return cut.decode(), "utf-8"
    except UnicodeDecodeError as error:
        if len(data) > _LONGEST_TEXT and error.start >= _LONGEST_TEXT - 3:
            return cut[: error.start].decode(), "utf-8"
        return cut.decode("latin-1"), "latin-1"


def _diff_of(client: SyncClient, info: CheckpointInfo, entry: Entry, path: bytes) -> str | None:
    """Return the changed lines of one file since the parent; None if it is the same or new."""
    before = parent_of(client, info)
    root = None if before is None else root_of(client, before)
    old = None if root is None else TreeReader(client.store).find(root, path)
    if old is None or old.kind == DIRECTORY or old.content == entry.content:
        return None
    if max(old.size, entry.size) > _LONGEST_TEXT:
        return None
    sides = [bytes_of(client, each, _LONGEST_TEXT) for each in (old, entry)]
    if is_binary(sides[0]):
        return None
    return unified(Told(*sides), f"a/{shown(path)}", f"b/{shown(path)}")


def media_of(data: bytes) -> str | None:
    """Return the media type of an image that a browser may show; None for all else."""
    return next((media for media, fits in _IMAGES if fits(data)), None)


def raw(client: SyncClient, given: Parameters) -> Content:
    """Return the bytes of a file; but for images they are text, or to be saved."""
    info = Names(client).checkpoint(given.needed("id"))
    path = needed_place(given)
    entry = entry_at(client, _root(client, info), path)
    if entry.size > _LARGEST_RAW:
        raise UsageError(
            f"{brief(shown(path))} has {entry.size} bytes, too many for this: put it into a "
            "directory with `holdfast restore`"
        )
    data = bytes_of(client, entry, _LARGEST_RAW)
    name = shown(path.rpartition(b"/")[2])
    download = name if given.flag("download") else None
    media = media_of(data)
    if media is not None:
        return Content(data, media, download)
    if not is_binary(data):
        return Content(data, "text/plain; charset=utf-8", download)
    return Content(data, "application/octet-stream", name)


def _words(names: Iterable[str]) -> Schema:
    return {"enum": [*names]}


_REF = {**TEXT, "description": "the same path, as it is given back"}
_ENTRY = with_optional(
    record(
        name=TEXT,
        path=TEXT,
        ref=_REF,
        kind=_words(("directory", "file", "link")),
        size=maybe(WHOLE),
        mode=maybe(WHOLE),
        changed=maybe(_words(COUNTED)),
    ),
    old_path=TEXT,
    old_ref=TEXT,
)
_FILES = record(
    path=TEXT,
    ref=_REF,
    entries=several(_ENTRY),
    next=maybe(TEXT),
    total=WHOLE,
    changed=maybe(record(**dict.fromkeys(COUNTED, WHOLE))),
)
_FILE = with_optional(
    record(
        path=TEXT,
        ref=_REF,
        size=WHOLE,
        mode=WHOLE,
        kind=_words(("text", "image", "binary", "link")),
    ),
    text=TEXT,
    cut={**maybe(WHOLE), "description": "how many bytes the whole has, where this is not it"},
    encoding=_words(("utf-8", "latin-1")),
    language=maybe(TEXT),
    diff=maybe(TEXT),
)
_ID = {"id": "the checkpoint, as the command line takes it"}
_PATH = {"path": "the file", "ref": "the same, where its name is no text"}
ROUTES: tuple[Route, ...] = (
    Route(
        "files",
        files,
        "What a directory of a checkpoint holds",
        {
            **_ID,
            "path": "the directory",
            "ref": _PATH["ref"],
            "limit": "rows of a page",
            "cursor": "the page",
        },
        _FILES,
    ),
    Route("file", file, "A file of a checkpoint", {**_ID, **_PATH}, _FILE),
    Route(
        "raw",
        raw,
        "The bytes of a file",
        {**_ID, **_PATH, "download": "as a file to be saved"},
    ),
)
