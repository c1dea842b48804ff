"""How a workspace is opened, used from async code, and closed."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import InvalidArgumentError, StoreClosedError
from holdfast.workspace import Workspace, WorkspaceError
from tests.clients import url_of
from tests.workspace.kit import put


@pytest.mark.parametrize("path", [None, 7, "", b""])
def test_a_workspace_needs_a_path(path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a path is a string"):
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


def test_progress_is_told(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    for number in range(20):
        put(root / f"d{number % 4}" / f"f{number}")
    told: list[tuple[int, int | None]] = []
    snapshot = workspace.snapshot(progress=lambda done, total: told.append((done, total)))
    assert told[-1][0] >= 20

    told.clear()
    workspace.fork(snapshot, tmp_path / "fork", progress=lambda d, t: told.append((d, t))).close()
    assert told[-1] == (20, 20)


def test_every_failure_of_the_file_system_is_said_in_our_words(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "file")
    with Workspace(root, client) as workspace:
        first = workspace.snapshot()
        with pytest.raises(WorkspaceError, match="/proc/none"):
            workspace.fork(first, "/proc/none/fork")
        for bad in (5, None, "", "a\0b"):
            with pytest.raises(InvalidArgumentError):
                workspace.fork(first, bad)  # type: ignore[arg-type]
            with pytest.raises(InvalidArgumentError):
                workspace.read(first, bad)  # type: ignore[arg-type]
        with pytest.raises(InvalidArgumentError, match="no path"):
            Workspace("a\0b", client)
        shutil.rmtree(root)
        for work in (workspace.snapshot, workspace.status, lambda: workspace.diff(first)):
            with pytest.raises(WorkspaceError, match="No such file"):
                work()
        root.mkdir()
        workspace.restore(first)
    assert (root / "file").exists()


@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_losing_what_lies_beside_the_store_costs_time_only(
    store: str, root: Path, tmp_path: Path
) -> None:
    put(root / "file", "one")
    with Workspace(root, url_of(store, tmp_path)) as workspace:
        first = workspace.snapshot()
        shutil.rmtree(workspace._local.directory)
        put(root / "file", "two")
        workspace.snapshot()
        workspace.restore(first)
        shutil.rmtree(workspace._local.directory)
    assert (root / "file").read_text() == "one"


def test_a_restore_of_some_paths_is_not_what_status_compares_with(
    root: Path, client: SyncClient
) -> None:
    for name in ("x", "y"):
        put(root / name, "1")
    with Workspace(root, client) as workspace:
        first = workspace.snapshot()
        for name in ("x", "y"):
            put(root / name, "two")
        workspace.snapshot()
        workspace.restore(first, paths=["x"])

        assert str(workspace.status()) == "M x"
        workspace.restore(first)
        assert not workspace.status()
