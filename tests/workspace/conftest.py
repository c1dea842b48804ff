"""A directory and a workspace on it, for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty directory to work in."""
    directory = tmp_path / "repo"
    directory.mkdir()
    return directory


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    """A store beside it."""
    with SyncClient.sqlite(tmp_path / "store" / "agent.db", durability="normal") as client:
        yield client


@pytest.fixture
def workspace(root: Path, client: SyncClient) -> Iterator[Workspace]:
    """The workspace of the directory."""
    with Workspace(root, client) as workspace:
        yield workspace
