"""A store that takes nothing more from a moment on."""

from holdfast import StoreFullError
from holdfast.stores import MemoryStore, WrappedStore
from holdfast.stores.base import Commit, NotesOnly


class FullStore(WrappedStore):
    """Keeps what it is given until it is full."""

    def __init__(self) -> None:
        super().__init__(MemoryStore())
        self.is_full = False

    def commit(self, commit: Commit | NotesOnly) -> None:
        if self.is_full:
            raise StoreFullError("no space is left")
        super().commit(commit)
