"""A watcher makes an unchanged workspace free, and never a snapshot wrong."""

import os
import select
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
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


def refuse(*_: object) -> None:
    raise AssertionError("it was looked at")


def replace_directory(root: Path) -> None:
    shutil.rmtree(root / "d1")
    put(root / "d1" / "a" / "b", "again")


def test_an_unchanged_workspace_is_not_looked_at(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = workspace.snapshot()

    with monkeypatch.context() as patch:
        patch.setattr(os, "lstat", refuse)
        patch.setattr(os, "scandir", refuse)
        for module in ("scan", "entry_reader"):
            patch.setattr(f"holdfast.workspace.{module}.keys_in", refuse)
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


def test_only_the_files_that_were_written_to_are_looked_at(
    workspace: Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "d1" / "sub" / "f1", "edited")
    (root / "d2" / "sub" / "f2").chmod(0o700)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", refuse)
        snapshot = workspace.snapshot()

    assert workspace.read(snapshot, "d1/sub/f1") == b"edited"
    assert snapshot.tree_id == workspace.snapshot().tree_id
    right(workspace, root, tmp_path)


def test_a_write_to_what_is_not_captured_is_not_looked_at(
    root: Path, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / ".gitignore", "*.log\n")
    put(root / "src" / "main.py")
    put(root / "src" / "main.log", "began\n")
    with Workspace(root, client, watch=True) as workspace, monkeypatch.context() as patch:
        first = workspace.snapshot()
        put(root / "src" / "main.log", "began\nended\n")
        patch.setattr(os, "scandir", refuse)
        patch.setattr(os, "lstat", refuse)

        assert workspace.snapshot() == replace(first, new_bytes=0)


def test_rules_that_are_written_anew_hold_at_once(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / ".gitignore", "*.log\n")
    for name in ("a.log", "a.py", "deep/b.log", "deep/b.py"):
        put(root / name)
    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        put(root / ".gitignore", "*.py\n")
        right(workspace, root, tmp_path)
        found = {entry.path for entry in workspace.ls(workspace.snapshot())}
        assert found == {".gitignore", "a.log", "deep", "deep/b.log"}


def test_what_was_gathered_is_seen_by_the_next_snapshot(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    watcher = workspace._capturer.watcher
    assert watcher is not None
    put(root / "d1" / "sub" / "f1", "written before")
    assert select.select([watcher], [], [], 0)[0]

    watcher.gather()

    assert not select.select([watcher], [], [], 0)[0]
    put(root / "d2" / "sub" / "f2", "written after")
    right(workspace, root, tmp_path)


def test_a_fork_of_the_process_takes_no_events_from_it(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(root / "d1" / "sub" / "f1", "edited")
    child = os.fork()
    if child == 0:
        try:
            workspace.snapshot()
        finally:
            os._exit(0)
    os.waitpid(child, 0)

    assert workspace.read(workspace.snapshot(), "d1/sub/f1") == b"edited"
    right(workspace, root, tmp_path)


@pytest.mark.parametrize("name", ["d2/sub/other", "d2/sub/ignored.log"])
def test_a_name_that_a_file_gets_in_the_workspace_is_seen(
    workspace: Workspace, root: Path, tmp_path: Path, name: str
) -> None:
    put(root / ".gitignore", "*.log\n")
    workspace.snapshot()
    os.link(root / "d1" / "sub" / "f1", root / name)
    with open(root / name, "r+") as file:
        file.write("written by its other name")

    assert workspace.read(workspace.snapshot(), "d1/sub/f1") == b"written by its other name"
    with open(root / name, "r+") as file:
        file.write("WRITTEN")
    right(workspace, root, tmp_path)


def test_a_dry_run_leaves_no_trace_in_later_snapshots(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(root / "x.log", "one")
    first = workspace.snapshot()
    put(root / ".gitignore", "*.log\n")
    put(root / "x.log", "precious")
    second = workspace.snapshot()

    workspace.restore(first, dry_run=True)
    put(root / "d1" / "sub" / "f1", "edited")

    right(workspace, root, tmp_path)
    assert workspace.restore(second).removed == ()
    assert (root / "x.log").read_text() == "precious"


def test_a_directory_above_may_be_replaced(client: SyncClient, tmp_path: Path) -> None:
    root = tmp_path / "above" / "repo"
    put(root / "a", "one")
    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        (tmp_path / "above").rename(tmp_path / "elsewhere")
        put(root / "a", "two")
        put(root / "b", "new")
        right(workspace, root, tmp_path)
        put(root / "b", "newer")
        right(workspace, root, tmp_path)


def test_what_becomes_a_repository_or_ceases_to_be_one_is_seen(
    root: Path, client: SyncClient
) -> None:
    put(root / "mine")
    put(root / "deep" / "nested" / "file")
    with Workspace(root, client, watch=True, nested_git="skip") as workspace:

        def captured() -> bool:
            return "deep/nested/file" in {e.path for e in workspace.ls(workspace.snapshot())}

        assert captured()
        for _ in range(2):
            (root / "deep" / "nested" / ".git").mkdir()
            assert not captured()
            assert not captured()
            (root / "deep" / "nested" / ".git").rmdir()
            assert captured()
            assert captured()


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


def test_what_was_found_is_known_to_the_next_process(
    root: Path, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "d1" / "f1", "first")
    put(root / "d2" / "f2", "second")
    time.sleep(0.05)  # until its times can be trusted
    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        put(root / "d1" / "f1", "edited")
        time.sleep(0.05)
        last = workspace.snapshot()

    with Workspace(root, client) as fresh, monkeypatch.context() as patch:
        patch.setattr(os, "read", refuse)
        assert fresh.snapshot().tree_id == last.tree_id


def test_a_process_that_was_killed_leaves_an_index_that_does_no_harm(
    workspace: Workspace, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "d1" / "sub" / "f1", "edited")
    shutil.rmtree(root / "d2")
    workspace.snapshot()  # not closed, so not written down

    with Workspace(root, client) as fresh:
        right(fresh, root, tmp_path)
        put(root / "d1" / "sub" / "f6", "edited")
        right(fresh, root, tmp_path)
    right(workspace, root, tmp_path)


def test_an_index_that_another_wrote_meanwhile_is_left_alone(
    workspace: Workspace, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "d1" / "sub" / "f1", "edited")
    workspace.snapshot()
    with Workspace(root, client) as other:
        put(root / "d1" / "sub" / "f1", "edited by another")
        other.snapshot()
    workspace.close()

    with Workspace(root, client) as fresh:
        right(fresh, root, tmp_path)


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


def test_a_link_to_itself_does_not_end_watching(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    shutil.rmtree(root / "d1")
    (root / "d1").symlink_to("d1")

    right(workspace, root, tmp_path)
    right(workspace, root, tmp_path)

    assert workspace._capturer.watcher is not None
    assert workspace._capturer.watcher.problem is None
    assert is_watching(workspace)
    (root / "d1").unlink()
    put(root / "d1" / "sub" / "new", "new")
    right(workspace, root, tmp_path)


def test_a_directory_that_became_a_link_to_itself_is_no_reason_not_to_watch(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    put(root / "a" / "b" / "file", "one")
    with Workspace(root, client) as workspace:
        workspace.snapshot()
    shutil.rmtree(root / "a")
    (root / "a").symlink_to("a")

    with Workspace(root, client, watch=True) as workspace:
        workspace.snapshot()
        assert is_watching(workspace)
        right(workspace, root, tmp_path)
