"""What the methods of a workspace return."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from holdfast.core.kinds.content_links import ContentLink
from holdfast.errors import CheckpointIntegrityError
from holdfast.workspace.entries import DIRECTORY, FILE, SYMLINK, Entry


@dataclass(frozen=True)
class Skipped:
    """Something in the workspace that is not captured, and is left alone by restore."""

    path: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The files of a workspace at one moment."""

    tree_id: str
    """Names the content: equal files, modes and times have equal ids, wherever they are kept."""
    files: int
    bytes: int
    """The sizes of all files together."""
    root: ContentLink = field(repr=False)
    """The chunk of the tree in the store."""
    workspace: str
    message: str | None = None
    created_at: datetime | None = None
    new_bytes: int = 0
    """What it added to the store, compressed."""
    skipped: tuple[Skipped, ...] = field(default=(), repr=False)
    """What was not captured: sockets, fifos, devices, unreadable files."""
    unsettled: tuple[str, ...] = field(default=(), repr=False)
    """Files that kept changing while they were read; what was read last is kept."""

    def as_value(self) -> dict[str, Any]:
        """Return what a checkpoint or a note keeps of it."""
        return {
            "tree": self.root,
            "tree_id": self.tree_id,
            "files": self.files,
            "bytes": self.bytes,
            "workspace": self.workspace,
            "message": self.message,
        }

    @classmethod
    def from_value(cls, value: Any, created_at: datetime | None = None) -> Snapshot:
        """Return the snapshot that a checkpoint or a note holds."""
        try:
            root, tree_id, files, size = (value[k] for k in ("tree", "tree_id", "files", "bytes"))
            workspace, message = value["workspace"], value["message"]
        except (KeyError, TypeError):
            raise CheckpointIntegrityError(None, "its workspace is of another shape") from None
        if type(root) is not ContentLink or type(tree_id) is not str:
            raise CheckpointIntegrityError(None, "its workspace leads to no tree")
        shape = (type(files), type(size), type(workspace), type(message))
        if shape not in ((int, int, str, str), (int, int, str, type(None))):
            raise CheckpointIntegrityError(None, "its workspace is of another shape")
        return cls(
            tree_id=tree_id,
            files=files,
            bytes=size,
            root=root,
            workspace=workspace,
            message=message,
            created_at=created_at,
        )


@dataclass(frozen=True, kw_only=True)
class Restored:
    """What a restore did, or would do."""

    tree_id: str
    undo_tree: str | None
    """Restoring this leads back; None for a dry run."""
    written: tuple[str, ...] = ()
    """Files and symlinks that are new or have other contents, in order."""
    removed: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()
    """Files and directories that only got another mode or time."""
    directories: tuple[str, ...] = ()
    """Directories that were made."""
    bytes: int = 0
    """How many bytes were written."""
    late: tuple[str, ...] = ()
    """Files that somebody changed while they were replaced; ``undo_tree`` has them as they were
    last."""
    stayed: tuple[str, ...] = ()
    """Directories that were to go, and stay because something in them is ignored or new."""
    held: tuple[str, ...] = ()
    """Where in the workspace files are that were replaced while somebody had them open for writing:
    what is written to them from then on goes there."""
    dry_run: bool = False

    def __str__(self) -> str:
        would = "would be " if self.dry_run else ""
        counts = {"written": self.written, "removed": self.removed, "touched": self.touched}
        said = ", ".join(f"{len(paths):,} {would}{what}" for what, paths in counts.items() if paths)
        names = ", ".join([*self.written, *self.removed][:3])
        back = f"; {self.undo_tree} leads back" if self.undo_tree else ""
        return (f"{said} ({names}, …)" if names else said or "nothing to do") + back

    def __repr__(self) -> str:
        return f"<Restored {self.tree_id}: {self}>"

    @property
    def changed(self) -> bool:
        """Whether there was anything to do."""
        return bool(self.written or self.removed or self.touched or self.directories)


_KINDS: dict[int, Literal["file", "symlink", "directory"]] = {
    FILE: "file",
    SYMLINK: "symlink",
    DIRECTORY: "directory",
}


class TreeEntry:
    """A file, symlink or directory of a tree."""

    __slots__ = ("_entry", "_path")

    def __init__(self, path: bytes, entry: Entry) -> None:
        self._path = path
        self._entry = entry

    @property
    def path(self) -> str:
        """Where it is in the tree; bytes that are no text are escaped as Python's os does."""
        return os.fsdecode(self._path)

    @property
    def kind(self) -> Literal["file", "symlink", "directory"]:
        """What it is."""
        return _KINDS[self._entry.kind]

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return self._entry.mode

    @property
    def mtime_ns(self) -> int:
        """When it was written, in nanoseconds; 0 for a directory."""
        return self._entry.mtime

    @property
    def size(self) -> int:
        """How many bytes it has."""
        return self._entry.size

    @property
    def content_id(self) -> str:
        """Equal for equal contents."""
        return self._entry.content.hex()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.path!r}, {self.size} bytes>"
