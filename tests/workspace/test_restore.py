"""A restore that cannot hurt: planned first, undoable, atomic, and never through a symlink."""

import os
import shutil
import stat
import threading
import time
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.workspace import Workspace, WorkspaceError, checkout
from tests.disks import own_disk, run_module
from tests.workspace.kit import at, left_behind, open_to_all, picture, put, unprivileged


def test_a_dry_run_keeps_nothing_of_what_it_looks_at(
    root: Path, client: SyncClient, workspace: Workspace
) -> None:
    before = workspace.snapshot()
    (root / "large.bin").write_bytes(os.urandom(3_000_000))
    (root / "small.txt").write_text("not to be kept")
    kept, noted = client.stats(), client.store.notes(None)

    planned = workspace.restore(before, dry_run=True)

    assert set(planned.removed) == {"large.bin", "small.txt"}
    assert client.stats() == kept
    assert client.store.notes(None) == noted
    assert set(workspace.restore(before).removed) == set(planned.removed)


def test_a_dry_run_tells_what_would_be_done_and_changes_nothing(
    workspace: Workspace, root: Path
) -> None:
    put(root / "edited", "one")
    put(root / "gone" / "file", "gone")
    put(root / "run.sh", mode=0o644)
    before = workspace.snapshot()
    put(root / "edited", "two")
    shutil.rmtree(root / "gone")
    (root / "run.sh").chmod(0o755)
    put(root / "new" / "file")
    was = picture(root)

    plan = workspace.restore(before, dry_run=True)

    assert picture(root) == was
    assert (plan.written, plan.removed) == (("edited", "gone/file"), ("new", "new/file"))
    assert (plan.touched, plan.directories) == (("run.sh",), ("gone",))
    assert plan.undo_tree is None
    done = workspace.restore(before)
    assert (done.written, done.removed) == (plan.written, plan.removed)


def test_everything_that_a_restore_takes_away_can_be_had_back(
    workspace: Workspace, root: Path
) -> None:
    put(root / "a", "one")
    before = workspace.snapshot()
    put(root / "a", "never captured")
    put(root / "b" / "c", "never captured either")
    (root / "link").symlink_to("/nowhere")
    was = picture(root)

    done = workspace.restore(before)
    workspace.restore(str(done.undo_tree))

    assert picture(root) == was


def test_an_ignored_file_that_the_tree_holds_is_captured_before_it_is_replaced(
    workspace: Workspace, root: Path
) -> None:
    put(root / "conf" / ".env", "old")
    put(root / "cache" / "deep" / "x", "old")
    before = workspace.snapshot()
    put(root / ".gitignore", ".env\ncache/\n")
    put(root / "conf" / ".env", "precious and ignored")
    put(root / "cache" / "deep" / "x", "precious too")
    put(root / "cache" / "other", "not in the tree")
    time.sleep(0.05)  # nothing is too fresh to be known by its times

    done = workspace.restore(before)

    assert (root / "conf" / ".env").read_text() == "old"
    assert (root / "cache" / "other").read_text() == "not in the tree"
    assert workspace.read(str(done.undo_tree), "conf/.env") == b"precious and ignored"
    assert workspace.read(str(done.undo_tree), "cache/deep/x") == b"precious too"


def test_a_restore_refuses_to_lose_what_it_cannot_capture(workspace: Workspace, root: Path) -> None:
    put(root / "thing", "a file")
    before = workspace.snapshot()
    (root / "thing").unlink()
    put(root / "thing" / "kept" / "ignored.log", "precious")
    put(root / ".gitignore", "*.log\n")
    put(root / "other", "other")
    was = picture(root)

    with pytest.raises(WorkspaceError, match=r"thing/kept/ignored\.log"):
        workspace.restore(before)

    assert picture(root) == was


def test_a_fifo_in_the_way_is_named_and_nothing_changes(workspace: Workspace, root: Path) -> None:
    put(root / "thing", "a file")
    before = workspace.snapshot()
    (root / "thing").unlink()
    os.mkfifo(root / "thing")
    put(root / "other", "other")

    with pytest.raises(WorkspaceError, match="thing"):
        workspace.restore(before)

    assert stat.S_ISFIFO((root / "thing").stat().st_mode)
    assert (root / "other").exists()


def test_only_the_chosen_paths_are_restored(workspace: Workspace, root: Path) -> None:
    for name in ("a", "b", "d/e/f", "d/g", "d/e/gone"):
        put(root / name, "one")
    before = workspace.snapshot()
    for name in ("a", "b", "d/e/f", "d/g", "d/e/new", "d/new"):
        put(root / name, "two")
    (root / "d" / "e" / "gone").unlink()

    workspace.restore(before, paths=["a", Path("d/e")])

    now = {path: entry[3] for path, entry in picture(root).items() if entry[0] == "file"}
    assert now == {
        b"a": b"one",
        b"b": b"two",
        b"d/e/f": b"one",
        b"d/e/gone": b"one",
        b"d/g": b"two",
        b"d/new": b"two",
    }


def test_a_chosen_path_gets_the_directories_above_it(workspace: Workspace, root: Path) -> None:
    put(root / "a" / "b" / "c", "one")
    put(root / "a" / "other", "one")
    before = workspace.snapshot()
    shutil.rmtree(root / "a")
    put(root / "a", "a file now")

    workspace.restore(before, paths=["a/b/c"])

    assert (root / "a" / "b" / "c").read_text() == "one"
    assert not (root / "a" / "other").exists()


@pytest.mark.parametrize("path", ["../outside", "/etc/passwd", "a/../../b", "", ".", "no\x00name"])
def test_a_path_that_leads_out_is_refused(path: str, workspace: Workspace, root: Path) -> None:
    snapshot = workspace.snapshot()

    with pytest.raises(InvalidArgumentError):
        workspace.restore(snapshot, paths=[path])
    with pytest.raises(InvalidArgumentError):
        workspace.read(snapshot, path)


def test_an_unknown_path_is_refused(workspace: Workspace) -> None:
    with pytest.raises(InvalidArgumentError, match="neither"):
        workspace.restore(workspace.snapshot(), paths=["nowhere"])


def test_a_file_is_whole_at_every_moment(workspace: Workspace, root: Path) -> None:
    file = put(root / "file", b"a" * 100_000)
    first = workspace.snapshot()
    file.write_bytes(b"b" * 100_000)
    second = workspace.snapshot()
    seen: set[bytes] = set()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            seen.add(file.read_bytes())

    reader = threading.Thread(target=look)
    reader.start()
    for _ in range(10):
        workspace.restore(first)
        workspace.restore(second)
    stop.set()
    reader.join()

    assert seen <= {b"a" * 100_000, b"b" * 100_000}


def test_a_directory_swapped_for_a_symlink_is_not_written_through(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside" / "file", "theirs")
    put(root / "dir" / "file", "one")
    before = workspace.snapshot()
    put(root / "dir" / "file", "two")

    def swap(time: int) -> None:
        if time == 1:
            (root / "dir").rename(root / "moved")
            (root / "dir").symlink_to(tmp_path / "outside")

    with at("workspace:staged", swap), pytest.raises(WorkspaceError, match="symlinks"):
        workspace.restore(before)

    assert (tmp_path / "outside" / "file").read_text() == "theirs"
    assert os.listdir(tmp_path / "outside") == ["file"]
    assert not left_behind(root)


def test_a_symlink_in_place_of_a_directory_is_replaced_and_not_followed(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside" / "file", "theirs")
    put(root / "dir" / "file", "one")
    before, was = workspace.snapshot(), picture(root)
    shutil.rmtree(root / "dir")
    (root / "dir").symlink_to(tmp_path / "outside")

    workspace.restore(before)

    assert picture(root) == was
    assert (tmp_path / "outside" / "file").read_text() == "theirs"


def test_a_file_edited_while_it_is_restored_is_in_the_tree_that_leads_back(
    workspace: Workspace, root: Path
) -> None:
    put(root / "file", "one")
    before = workspace.snapshot()
    put(root / "file", "two")

    with at("workspace:staged", lambda _: put(root / "file", "written at the last moment")):
        done = workspace.restore(before)

    assert (root / "file").read_text() == "one"
    assert done.undo_tree is not None
    assert done.late == ("file",)
    assert workspace.read(done.undo_tree, "file") == b"written at the last moment"
    assert b"two" in [workspace.read(s, "file") for s in workspace.snapshots()]
    assert not left_behind(root)


def test_a_restore_gives_up_where_somebody_puts_directories_in_its_way(
    workspace: Workspace, root: Path
) -> None:
    put(root / "file", "one")
    before = workspace.snapshot()
    put(root / "file", "two")

    def block(time: int) -> None:
        if (root / "file").is_file():
            (root / "file").unlink()
        put(root / "file" / f"inner {time}", "new")

    with (
        at("workspace:staged", block),
        pytest.raises(WorkspaceError, match="keeps changing"),
    ):
        workspace.restore(before)

    assert sorted(os.listdir(root / "file")) == [f"inner {time}" for time in range(1, 6)]
    assert not left_behind(root)


def test_a_restore_that_fails_half_way_is_taken_back(workspace: Workspace, root: Path) -> None:
    for number in range(10):
        put(root / f"d{number}" / "file", "one")
    before = workspace.snapshot()
    for number in range(10):
        put(root / f"d{number}" / "file", "two")
    was = picture(root)

    def fail(time: int) -> None:
        if time == 5:
            raise OSError(5, "Input/output error")

    with (
        at("workspace:moved", fail),
        pytest.raises(WorkspaceError, match=r"Input/output error; the workspace is as it was"),
    ):
        workspace.restore(before)

    assert picture(root) == was
    assert not left_behind(root)
    workspace.restore(before)
    assert (root / "d9" / "file").read_text() == "one"


def test_a_full_disk_leaves_the_workspace_as_it_was(tmp_path: Path) -> None:
    disk = own_disk(tmp_path / "disk", "32m")

    run_module("tests.workspace.jobs", "full_disk", tmp_path / "disk", tmp_path, within=disk)


def test_a_directory_that_may_not_be_written_stops_the_restore_and_changes_nothing() -> None:
    with open_to_all() as place:
        root = place / "repo"
        put(root / "theirs" / "file", "one")
        put(root / "own" / "file", "one", mode=0o666)
        (root / "own").chmod(0o777)
        was = picture(root)

        def work() -> None:
            with Workspace(root, f"sqlite:///{place}/agent.db") as workspace:
                before = workspace.snapshot()
                put(root / "own" / "file", "two")
                now = picture(root)
                tree = before
                with Workspace(place / "edited", f"sqlite:///{place}/agent.db") as other:
                    tree = other.snapshot()
                with pytest.raises(WorkspaceError):
                    workspace.restore(tree)
                assert picture(root) == now
                workspace.restore(before)
                assert picture(root, times=False) == {
                    path: (*entry[:2], 0, *entry[3:]) if entry[0] == "file" else entry
                    for path, entry in was.items()
                }

        shutil.copytree(root, place / "edited")
        put(place / "edited" / "theirs" / "file", "three")
        put(place / "edited" / "own" / "file", "three")
        if os.geteuid() == 0:
            unprivileged(work)


def test_a_tree_is_forked_into_a_new_directory(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(root / "a" / "b", "one", mode=0o755)
    (root / "link").symlink_to("a")
    (root / "empty").mkdir()
    snapshot, was = workspace.snapshot(), picture(root)

    with workspace.fork(snapshot, tmp_path / "new" / "fork") as fork:
        assert picture(tmp_path / "new" / "fork") == was
        put(tmp_path / "new" / "fork" / "a" / "b", "two")
        assert fork.snapshot().tree_id != snapshot.tree_id
        assert (root / "a" / "b").read_text() == "one"
        assert workspace.diff(snapshot, fork.snapshot()).modified == ("a/b",)


def test_several_forks_may_be_made_at_once(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    for number in range(100):
        put(root / f"d{number % 7}" / f"f{number}", os.urandom(5000))
    snapshot, was = workspace.snapshot(), picture(root)

    threads = [
        threading.Thread(
            target=lambda n=n: workspace.fork(snapshot, tmp_path / f"fork-{n}").close()
        )
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    for number in range(4):
        assert picture(tmp_path / f"fork-{number}") == was


def test_large_files_of_a_fork_are_cloned_where_the_file_system_can(
    workspace: Workspace, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "large", os.urandom(2_000_000))
    put(root / "stale", os.urandom(2_000_000))
    time.sleep(0.05)
    snapshot, was = workspace.snapshot(), picture(root)
    put(root / "stale", os.urandom(2_000_000))
    cloned: list[int] = []

    def clone(to: int, request: int, source: int) -> None:
        """What FICLONE does, on any file system."""
        cloned.append(request)
        while data := os.read(source, 2**20):
            os.write(to, data)

    monkeypatch.setattr("holdfast.workspace.clone.fcntl.ioctl", clone)
    workspace.fork(snapshot, tmp_path / "fork").close()

    assert picture(tmp_path / "fork") == was
    assert len(cloned) == 1


def test_a_checkout_makes_a_directory_or_puts_one_back(
    workspace: Workspace, client: SyncClient, root: Path, tmp_path: Path
) -> None:
    put(root / "file", "one")
    snapshot, was = workspace.snapshot(), picture(root)

    checkout(snapshot.tree_id, tmp_path / "new", client).close()
    put(tmp_path / "new" / "file", "two")
    put(tmp_path / "new" / "other", "two")
    with checkout(snapshot, tmp_path / "new", client) as there:
        assert there.snapshots()[0].message == "before a restore"

    assert picture(tmp_path / "new") == was


def test_a_fork_never_overwrites_and_never_lies_inside(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    snapshot = workspace.snapshot()
    put(tmp_path / "there" / "file", "precious")
    (tmp_path / "empty").mkdir()

    for place in (tmp_path / "there", tmp_path / "there" / "file", root / "inner", root):
        with pytest.raises(InvalidArgumentError):
            workspace.fork(snapshot, place)
    workspace.fork(snapshot, tmp_path / "empty").close()

    assert picture(tmp_path / "there").keys() == {b"file"}


def test_a_fork_of_a_damaged_tree_leaves_nothing_behind(
    workspace: Workspace, root: Path, client: SyncClient, tmp_path: Path
) -> None:
    for number in range(50):
        put(root / f"f{number}", os.urandom(20_000))
    snapshot = workspace.snapshot()
    (tmp_path / "forks").mkdir()
    from holdfast.stores.base import NotesOnly

    leaf = workspace._reader.tree(snapshot.root.name).entries[b"f40"].location.block
    client.store.commit(NotesOnly((), {leaf: b"\x00damaged"}))

    with pytest.raises(CheckpointIntegrityError):
        workspace.fork(snapshot, tmp_path / "forks" / "one")
    assert os.listdir(tmp_path / "forks") == []
    was = picture(root)
    (root / "f40").unlink()
    with pytest.raises(CheckpointIntegrityError):
        workspace.restore(snapshot)
    assert picture(root).keys() == was.keys() - {b"f40"}
