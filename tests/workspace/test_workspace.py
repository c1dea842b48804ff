"""How a workspace is opened, used from async code, and closed."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.workspace import Workspace, WorkspaceError
from tests.workspace.kit import picture, put


@pytest.mark.parametrize("path", [None, 7, "", b""])
def test_a_workspace_needs_a_path(path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="path of a directory"):
        Workspace(path, "memory://")


def test_a_workspace_is_a_directory_that_is_there(tmp_path: Path) -> None:
    put(tmp_path / "file")
    for path in (tmp_path / "nowhere", tmp_path / "file"):
        with pytest.raises(WorkspaceError, match="no directory: make it first"):
            Workspace(path, "memory://")


@pytest.mark.parametrize(
    "options", [{"nested_git": "maybe"}, {"name": ""}, {"store": 7}, {"store": "nothing"}]
)
def test_wrong_options_are_refused(options: Any, root: Path) -> None:
    if options.get("name") == "":
        options = {"name": " "}
    with pytest.raises(InvalidArgumentError):
        Workspace(root, **{"store": "memory://", **options})


def test_a_store_may_be_given_in_every_form(root: Path, tmp_path: Path) -> None:
    put(root / "file", "one")
    url = f"sqlite:///{tmp_path}/agent.db"
    with Workspace(root, url) as workspace:
        tree = workspace.snapshot().tree_id
    with SyncClient.open(url) as client:
        for store in (client, client.store, url):
            with Workspace(root, store) as workspace:
                assert workspace.read(tree, "file") == b"one"
        assert client.verify().ok  # a client that was given is not closed


def test_the_default_store_is_the_one_of_the_environment(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_URL", f"sqlite:///{tmp_path}/named.db")

    with Workspace(root) as workspace:
        workspace.snapshot()

    assert (tmp_path / "named.db").exists()


def test_a_closed_workspace_says_so(root: Path) -> None:
    workspace = Workspace(root, "memory://")
    workspace.close()
    workspace.close()

    with pytest.raises(StoreClosedError):
        workspace.snapshot()


def test_a_workspace_reached_through_a_symlink_is_the_same(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "file", "one")
    (tmp_path / "link").symlink_to(root)
    with Workspace(root, client) as workspace, Workspace(tmp_path / "link", client) as other:
        first = workspace.snapshot("first")
        assert other.name == workspace.name
        assert [s.tree_id for s in other.snapshots()] == [first.tree_id]


async def test_every_verb_has_an_async_twin(root: Path, tmp_path: Path) -> None:
    put(root / "file", "one")
    async with (
        Client.sqlite(tmp_path / "agent.db") as client,
        Workspace(root, client) as workspace,
    ):
        first, was = await workspace.asnapshot("first"), picture(root)
        put(root / "file", "two")
        assert (await workspace.astatus()).modified == ("file",)
        assert (await workspace.adiff(first)).modified == ("file",)
        assert (await workspace.arestore(first)).written == ("file",)
        assert picture(root) == was
        assert await workspace.aread(first, "file") == b"one"
        assert [e.path for e in await workspace.als(first)] == ["file"]
        forks = await asyncio.gather(
            *(workspace.afork(first, tmp_path / f"fork-{n}") for n in range(3))
        )
        for number, fork in enumerate(forks):
            assert picture(tmp_path / f"fork-{number}") == was
            fork.close()


def test_progress_is_told(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    for number in range(20):
        put(root / f"d{number % 4}" / f"f{number}")
    told: list[tuple[int, int | None]] = []
    snapshot = workspace.snapshot(progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] >= 20

    told.clear()
    workspace.fork(snapshot, tmp_path / "fork", progress=lambda d, t: told.append((d, t))).close()
    assert told[-1] == (20, 20)
