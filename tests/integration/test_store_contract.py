"""Every store that ships passes the suite that users' own stores run."""

from pathlib import Path

import pytest

from holdfast.stores.file import FileStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite import SqliteStore
from holdfast.testing import OpenStore, StoreContract


class TestMemoryStore(StoreContract):
    persistent = False

    @pytest.fixture
    def open_store(self) -> OpenStore:
        return MemoryStore


class TestFileStoreOfJson(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: FileStore(tmp_path / "checkpoints")


class TestFileStoreOfPickle(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: FileStore(tmp_path / "checkpoints", "pickle")


class TestSqliteStore(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: SqliteStore(tmp_path / "holdfast.db")


class TestSqliteStoreOfNormalDurability(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: SqliteStore(tmp_path / "holdfast.db", "normal")
