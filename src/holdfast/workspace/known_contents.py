"""Where contents lie already, so that no file is stored twice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.workspace.entries import FILE
from holdfast.workspace.index import Folder


class KnownContents:
    """Finds a content among known folders, without going through all of them every time."""

    def __init__(self) -> None:
        self._hints: dict[bytes, tuple[bytes, bytes]] = {}
        self._is_complete = False
        self._others: dict[bytes, object] = {}

    def find(self, folders: Mapping[bytes, Folder], content: bytes) -> object:
        """Return where the bytes of a file lie, if one of the folders has such a file."""
        if content in self._others:
            return self._others[content]
        if not self._is_complete:
            for folder in folders.values():
                self.add(folder)
            self._is_complete = True
        path, name = self._hints.get(content, (b"", b""))
        known = folders.get(path)
        entry = known.entries.get(name) if known is not None else None
        # What was there once may have changed since.
        return entry.location if entry is not None and entry.content == content else None

    def add(self, folder: Folder) -> None:
        """Know the files of one more folder."""
        for name, entry in folder.entries.items():
            if entry.kind == FILE and entry.size:
                self._hints[entry.content] = (folder.path, name)

    def note(self, folders: Iterable[Folder]) -> None:
        """Know the files of folders that changed."""
        for folder in folders:
            self.add(folder)

    def add_others(self, locations: Mapping[bytes, object]) -> None:
        """Know contents that no folder has, and that the note of the last snapshot keeps too."""
        self._others.update(locations)

    def clear(self) -> None:
        """Know nothing any more."""
        self._hints.clear()
        self._others.clear()
        self._is_complete = False
