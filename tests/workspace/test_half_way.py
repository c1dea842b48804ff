"""Restores that cannot be carried out to the end: taken back, or ended when the cause is gone."""

import os
import signal
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace, WorkspaceError
from tests.integration.fork_server import ForkServer
from tests.workspace.kit import at, left_behind, picture, put, unchangeable

NAMES = ["a", "b", "dir/c", "dir/d", "e"]


def two_versions(root: Path) -> None:
    for name in NAMES:
        put(root / name, f"two {name}")
    put(root / "new" / "f", "two")


def one_version(root: Path) -> None:
    for name in NAMES:
        put(root / name, f"one {name}")


@pytest.mark.parametrize("name", [*NAMES, "new/f"])
def test_a_restore_stopped_by_an_immutable_file_leaves_all_as_it_was_and_names_it(
    name: str, workspace: Workspace, root: Path
) -> None:
    one_version(root)
    target = workspace.snapshot()
    two_versions(root)
    was = picture(root)

    with unchangeable(root / name):
        with pytest.raises(WorkspaceError, match=rf"'{name}'.*the workspace is as it was"):
            workspace.restore(target)
        assert picture(root) == was
        assert not left_behind(root)

    workspace.restore(target)
    assert (root / name).exists() == (name != "new/f")


@pytest.mark.parametrize("point", ["workspace:moved", "workspace:removed"])
def test_a_killed_restore_that_cannot_be_completed_is_taken_back(
    point: str, tmp_path: Path, root: Path
) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    one_version(root)
    with Workspace(root, url) as workspace:
        workspace.snapshot("one")
    two_versions(root)
    was = picture(root)
    with ForkServer("tests.workspace.crash_jobs") as server:
        ended = server.killed(
            "tests.workspace.crash_jobs:restore_and_be_killed", str(tmp_path), point
        )
    assert ended.signal == signal.SIGKILL, ended.error
    stuck = next(name for name in NAMES if (root / name).read_text().startswith("two"))

    with unchangeable(root / stuck), Workspace(root, url) as workspace:
        assert workspace.recovered is not None
        assert picture(root) == was
    assert not left_behind(root)
    with Workspace(root, url) as workspace:
        assert workspace.recovered is None


def test_a_mixture_that_can_neither_be_completed_nor_taken_back_is_ended_later(
    tmp_path: Path, root: Path
) -> None:
    url = f"sqlite:///{tmp_path}/agent.db"
    one_version(root)
    with Workspace(root, url) as workspace:
        workspace.snapshot("one")
    two_versions(root)
    with ForkServer("tests.workspace.crash_jobs") as server:
        server.killed(
            "tests.workspace.crash_jobs:restore_and_be_killed", str(tmp_path), "workspace:moved"
        )
    texts = {name: (root / name).read_text()[:3] for name in NAMES}
    done = next(name for name in NAMES if texts[name] == "one")
    open_ = next(name for name in NAMES if texts[name] == "two")
    mixture = picture(root)

    with unchangeable(root / done), unchangeable(root / open_):
        for _ in range(2):
            with pytest.raises(WorkspaceError, match="neither be completed nor taken back") as told:
                Workspace(root, url)
            assert open_ in str(told.value)
            assert not left_behind(root)
            assert {k: v for k, v in picture(root).items() if k in mixture} == {
                k: v for k, v in mixture.items() if not k.startswith(b".holdfast-")
            }

    with Workspace(root, url) as workspace:
        assert workspace.recovered is not None
        assert {(root / name).read_text()[:3] for name in NAMES} == {"one"}
        assert not os.path.lexists(root / "new")
        workspace.restore(workspace.recovered.undo_tree or "")
        assert {(root / name).read_text()[:3] for name in NAMES} == {"two"}


def test_what_cannot_be_kept_in_the_store_any_more_is_kept_beside(
    root: Path, tmp_path: Path
) -> None:
    put(root / "file", "one")
    with SyncClient.sqlite(tmp_path / "agent.db") as client, Workspace(root, client) as workspace:
        target = workspace.snapshot()
        put(root / "file", "two")

        def edit_and_close(_: int) -> None:
            put(root / "file", "written at the last moment")
            client.close()

        with (
            at("workspace:staged", edit_and_close),
            pytest.raises(WorkspaceError, match=r"restored, but.*\.holdfast-held-"),
        ):
            workspace.restore(target)

    assert (root / "file").read_text() == "one"
    (held,) = root.glob(".holdfast-held-*/*")
    assert held.read_text() == "written at the last moment"
