"""Every store that ships passes the suite that users' own stores run."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.stores.one_table import OneTableStore
from holdfast.stores.file.store import FileStore
from holdfast.stores.memory import MemoryStore
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import OpenStore, StoreContract
from tests.integration.async_face import on_loops


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


class TestSqliteStoreOnALoop(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        yield from on_loops(lambda: SqliteStore(tmp_path / "holdfast.db"))


class TestAStoreOfOnesOwn(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> OpenStore:
        return lambda: OneTableStore(tmp_path / "kept.db")


class TestAStoreOfOnesOwnOnALoop(StoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Iterator[OpenStore]:
        yield from on_loops(lambda: OneTableStore(tmp_path / "kept.db"))


WITHOUT_PYTEST = """
import sys
sys.modules["pytest"] = None
from holdfast.testing import crash_points
assert crash_points.POINTS["sqlite"]
from holdfast.testing import StoreContract
"""


def test_without_pytest_the_suite_says_what_it_needs_and_crash_points_work() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PYTEST], capture_output=True, text=True)

    assert done.stderr.splitlines()[-1] == (
        "holdfast.errors.MissingPackageError: holdfast.testing.StoreContract needs the package "
        "pytest: pip install pytest"
    )
