"""The store of plain files."""

from holdfast.stores.file.store import FileStore

__all__ = ["FileStore"]
