"""A watcher makes an unchanged workspace free, and never a snapshot wrong."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.workspace.kit import picture, put


@pytest.fixture
def workspace(root: Path, client: SyncClient) -> Iterator[Workspace]:
    for number in range(20):
        put(root / f"d{number % 5}" / "sub" / f"f{number}", f"{number}")
    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        assert is_watching(workspace)
        yield workspace


def is_watching(workspace: Workspace) -> bool:
    watcher = workspace._capturer.watcher
    assert watcher is not None
    return watcher.is_watching


def right(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    """A snapshot now is what a new look at everything finds."""
    now = workspace.snapshot()
    with Workspace(root, "memory://") as fresh:
        assert now.tree_id == fresh.snapshot().tree_id


def replace_directory(root: Path) -> None:
    shutil.rmtree(root / "d1")
    put(root / "d1" / "a" / "b", "again")


def test_an_unchanged_workspace_is_not_looked_at(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workspace.snapshot()

    def refuse(*_: object) -> None:
        raise AssertionError("it was looked at")

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        patch.setattr(os, "scandir", refuse)
        assert workspace.snapshot().tree_id == first.tree_id


@pytest.mark.parametrize(
    "change",
    [
        lambda root: put(root / "d1" / "sub" / "f1", "edited"),
        lambda root: put(root / "d1" / "sub" / "f1", "E"),
        lambda root: put(root / "new", "new"),
        lambda root: put(root / "x" / "y" / "z", "new"),
        lambda root: (root / "d1" / "sub" / "f1").unlink(),
        lambda root: shutil.rmtree(root / "d1"),
        lambda root: (root / "d1").rename(root / "d9"),
        lambda root: (root / "d1" / "sub").rename(root / "d2" / "other"),
        lambda root: (root / "d1" / "sub" / "f1").chmod(0o755),
        lambda root: (root / "d1").chmod(0o700),
        lambda root: os.utime(root / "d1" / "sub" / "f1", ns=(5, 5)),
        lambda root: (root / "link").symlink_to("d1"),
        lambda root: os.link(root / "d1" / "sub" / "f1", root / "hard"),
        lambda root: put(root / ".gitignore", "sub/\n"),
        lambda root: put(root / "d1" / ".gitignore", "f1\n"),
        replace_directory,
        lambda root: os.truncate(root / "d1" / "sub" / "f1", 0),
    ],
)
def test_every_kind_of_change_is_seen(
    change, workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    change(root)
    right(workspace, root, tmp_path)
    put(root / "d2" / "sub" / "more", "more")
    right(workspace, root, tmp_path)
    right(workspace, root, tmp_path)


def test_a_change_through_a_name_outside_is_seen(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    file = put(root / "dir" / "file", "one")
    os.link(file, tmp_path / "outside")
    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        workspace.snapshot()
        (tmp_path / "outside").write_text("two")

        assert workspace.read(workspace.snapshot(), "dir/file") == b"two"


def test_more_events_than_the_queue_holds_lead_to_a_full_scan(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    first, second = root / "d1" / "sub" / "f1", root / "d2" / "sub" / "f2"
    for number in range(limit // 2 + 10):  # equal events in a row are merged
        os.utime(first, ns=(number, number))
        os.utime(second, ns=(number, number))
    put(root / "d4" / "late", "lost from the queue")

    right(workspace, root, tmp_path)
    right(workspace, root, tmp_path)


def test_a_lost_watcher_leads_to_a_full_scan(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    watcher = workspace._capturer.watcher
    assert watcher is not None
    watcher.close()
    put(root / "d1" / "sub" / "f1", "unseen")

    right(workspace, root, tmp_path)
    assert is_watching(workspace)


def test_where_no_more_can_be_watched_everything_is_looked_at(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    watcher = workspace._capturer.watcher
    assert watcher is not None
    watcher._give_up(OSError(28, "No space left on device"))
    put(root / "d1" / "sub" / "f1", "unseen")

    right(workspace, root, tmp_path)
    assert not is_watching(workspace)
    assert "max_user_watches" in str(watcher.problem)


def test_a_restore_is_seen_too(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    before, was = workspace.snapshot(), picture(root)
    shutil.rmtree(root / "d1")
    put(root / "d2" / "sub" / "f2", "edited")
    workspace.snapshot()

    workspace.restore(before)

    assert picture(root) == was
    assert workspace.snapshot().tree_id == before.tree_id


def test_another_process_that_snapshots_too_does_no_harm(
    workspace: Workspace, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    with Workspace(root, client) as other:
        put(root / "d1" / "sub" / "f1", "edited")
        other.snapshot()
        put(root / "d1" / "sub" / "f6", "edited")
        right(workspace, root, tmp_path)
        put(root / "d3" / "sub" / "f3", "edited")
        assert other.snapshot().tree_id == workspace.snapshot().tree_id
