"""What is known of the workspace's files since the last snapshot, so that unchanged ones are free.

Only a cache: what it says of a file holds while the file's times, size, inode and mode are the
same, and losing it costs time. It is a log: what changed is appended, the last word counts.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import ormsgpack
from xxhash import xxh3_64_digest

from holdfast.system import private_files
from holdfast.system.atomic_files import write_file
from holdfast.workspace.entries import BlockLocation, Entry
from holdfast.workspace.stat_keys import Key

_SUM_BYTES = 8
_REWRITE = 2**62
_PIN = "anchor"
"""How the row of what keeps the snapshot is marked in the file."""


class Folder:
    """A directory as it was found: its entries, and the keys of all names looked at."""

    __slots__ = (
        *("_entries", "_rows", "chunk", "files", "inner", "key", "keys", "others", "outer"),
        *("names", "path", "size", "tree_id"),
    )

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.key: Key | None = None
        self.outer = b""
        """The fingerprint of the ignore rules from above."""
        self.inner = b""
        """The fingerprint of the rules that hold for what is in it."""
        self._entries: dict[bytes, Entry] | None = {}
        self._rows: list[Any] = []
        self.keys: dict[bytes, Key | None] = {}
        """Of all names looked at, captured or not."""
        self.others: dict[bytes, str] = {}
        """Names that are not captured, and why; ignore files that are ignored have no reason."""
        self.names: list[bytes] | None = None
        """Those of ``keys``, once they were needed."""
        self.tree_id = self.chunk = b""
        self.files = self.size = 0

    @property
    def entries(self) -> dict[bytes, Entry]:
        """What is captured, by name; made from the stored rows when first asked for."""
        if self._entries is None:
            self._entries = {row[0]: _entry(row) for row in self._rows}
            self._rows = []
        return self._entries

    @entries.setter
    def entries(self, entries: dict[bytes, Entry]) -> None:
        self._entries = entries

    def row(self) -> list[Any]:
        """Return plain data, for the log."""
        entries = self._entries
        rows = self._rows if entries is None else [_row(*item) for item in entries.items()]
        return [
            *(self.path, self.key, self.outer, self.inner, self.tree_id, self.chunk),
            *(self.files, self.size, rows, list(self.keys), list(self.keys.values())),
            list(self.others.items()),
        ]

    @classmethod
    def from_row(cls, row: list[Any]) -> Folder:
        """Return the folder of a row."""
        folder = cls(row[0])
        key, folder.outer, folder.inner, folder.tree_id, folder.chunk = row[1:6]
        folder.files, folder.size, folder._rows, names, keys, others = row[6:]
        folder.key = None if key is None else tuple(key)
        folder._entries = None
        folder.keys = dict(
            zip(names, [None if key is None else tuple(key) for key in keys], strict=True)
        )
        folder.others = dict(others)
        return folder


def _row(name: bytes, entry: Entry) -> list[Any]:
    location = entry.location
    return [name, *entry[:5], list(location) if isinstance(location, BlockLocation) else location]


def _entry(row: list[Any]) -> Entry:
    _, kind, mode, mtime, size, content, location = row
    if type(location) is list:
        location = BlockLocation(*location)
    return Entry(kind, mode, mtime, size, content, location)


@dataclass(frozen=True)
class Pin:
    """What keeps the last snapshot in the store: a note, or checkpoints."""

    scope: str
    key: str
    after: int = field(compare=False)
    """A number that the note comes after, as late a one as is known."""
    tree_id: bytes
    chunk: bytes
    until: float | None = None
    """When the note expires, as a time stamp; None if it never does."""
    checkpoints: tuple[str, ...] = ()

    def also_kept_by(self, checkpoint_id: str) -> Pin:
        """Return the same, kept by a checkpoint too; the newest few are remembered."""
        return replace(self, checkpoints=(*self.checkpoints, checkpoint_id)[-8:])

    def row(self) -> list[Any]:
        """Return plain data, for the log."""
        return [
            *(self.scope, self.key, self.after, self.tree_id, self.chunk, self.until),
            list(self.checkpoints),
        ]

    @classmethod
    def from_row(cls, row: list[Any]) -> Pin:
        """Return the pin of a row."""
        scope, key, after, tree_id, chunk, until, checkpoints = row
        return cls(scope, key, after, tree_id, chunk, until, tuple(checkpoints))


@dataclass
class Index:
    """The folders of the last snapshot by their paths, and what keeps it in the store."""

    file: str
    identity: list[Any]
    """Of which workspace and with which options; those of another are of no use."""
    folders: dict[bytes, Folder] = field(default_factory=dict)
    pin: Pin | None = None
    _saved_pin: Pin | None = None
    _logged: int = 0
    _changed: set[bytes] = field(default_factory=set)
    _gone: set[bytes] = field(default_factory=set)

    def load(self) -> Index:
        """Read what was written last; whatever cannot be read is left out."""
        try:
            with open(self.file, "rb") as file:
                data = file.read()
        except OSError:
            return self
        identity, *rows = _rows(data) or [None]
        if identity != self.identity:
            return self
        last = max((i for i, row in enumerate(rows) if row[0] == _PIN), default=-1)
        for kind, row in rows[: last + 1]:  # what comes later is of a snapshot that nothing keeps
            if kind == _PIN:
                self.pin = Pin.from_row(row)
            elif kind == "gone":
                self.folders.pop(row, None)
            else:
                self.folders[row[0]] = Folder.from_row(row)
        self._saved_pin = self.pin
        self._logged = len(rows) if last + 1 == len(rows) else _REWRITE
        return self

    def note(self, changed: Iterable[bytes], gone: Iterable[bytes]) -> None:
        """Know what the file does not say yet."""
        self._changed.update(changed)
        self._gone.update(gone)

    @property
    def unsaved(self) -> int:
        """How much the file does not say yet."""
        return len(self._changed) + len(self._gone) + (self.pin != self._saved_pin)

    def save(self) -> None:
        """Write down what changed, or everything where that is about as much."""
        rows: list[Any] = [["gone", path] for path in self._gone]
        rows += [
            ["folder", self.folders[path].row()] for path in self._changed if path in self.folders
        ]
        self._logged += len(rows) + 1
        pin = [] if self.pin is None else [[_PIN, self.pin.row()]]
        if self._logged > 2 * len(self.folders) + 100 or not os.path.exists(self.file):
            rows = [["folder", folder.row()] for folder in self.folders.values()]
            self._replace([self.identity, *rows, *pin])
            self._logged = len(rows) + 1
        else:
            with open(self.file, "ab", opener=private_files.opener) as file:
                file.write(b"".join(map(_framed, rows + pin)))
        self._saved_pin = self.pin
        self._changed.clear()
        self._gone.clear()

    def _replace(self, rows: list[Any]) -> None:
        write_file(self.file, b"".join(map(_framed, rows)), durable=False)


def _framed(row: Any) -> bytes:
    data = ormsgpack.packb(row)
    return len(data).to_bytes(4, "big") + xxh3_64_digest(data) + data


def _rows(data: bytes) -> list[Any]:
    """Return the rows of a log, as far as it is whole; one more, of nothing, if it is not."""
    rows: list[Any] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + 4], "big")
        at += 4 + _SUM_BYTES
        row = data[at : at + size]
        if len(row) != size or xxh3_64_digest(row) != data[at - _SUM_BYTES : at]:
            return [*rows, [None, None]]
        at += size
        rows.append(ormsgpack.unpackb(row))
    return rows
