"""A snapshot notices every change, whatever the clock and others do, and does no work twice."""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from holdfast.workspace.capture import Capturer
from tests.disks import own_disk, run_module
from tests.workspace.kit import paths, picture, put


def test_files_made_by_shell_commands_are_captured_and_taken_away_again(
    workspace: Workspace, root: Path
) -> None:
    put(root / "main.py")
    before, was = workspace.snapshot(), picture(root)
    script = "mkdir -p out && echo made > out/made && cp main.py copy.py && ln -s main.py link"
    subprocess.run(["sh", "-c", script], cwd=root, check=True)

    assert workspace.status().added == ("copy.py", "link", "out/made")
    done = workspace.restore(before)
    assert picture(root) == was
    workspace.restore(str(done.undo_tree))
    assert (root / "out" / "made").read_text() == "made\n"


@pytest.mark.parametrize("pause", [0, 0.05])
def test_an_edit_that_keeps_size_and_time_is_noticed(
    pause: float, workspace: Workspace, root: Path
) -> None:
    file = put(root / "file", "one")
    was = file.stat()
    time.sleep(pause)
    workspace.snapshot()
    workspace.snapshot()
    file.write_text("two")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))

    assert workspace.read(workspace.snapshot(), "file") == b"two"


def test_many_edits_within_one_tick_of_the_clock_are_all_noticed(
    workspace: Workspace, root: Path
) -> None:
    file = root / "file"
    for number in range(200):
        file.write_bytes(b"%03d" % number)
        snapshot = workspace.snapshot()
        assert workspace.read(snapshot, "file") == b"%03d" % number


def test_files_from_the_future_are_captured_right(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a clock was set back: all that is on the disk was written later than now."""
    file = put(root / "file", "one")
    time.sleep(0.05)
    past = time.time_ns() - 3600 * 10**9
    monkeypatch.setattr("holdfast.workspace.scan.now_of_files", lambda: past)
    workspace.snapshot()
    was = file.stat()
    file.write_text("two")
    os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))

    assert workspace.read(workspace.snapshot(), "file") == b"two"


def test_a_file_replaced_by_another_of_the_same_size_and_time_is_noticed(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    file = put(root / "file", "one")
    other = put(tmp_path / "other", "two")
    os.utime(other, ns=(file.stat().st_mtime_ns, file.stat().st_mtime_ns))
    time.sleep(0.05)
    workspace.snapshot()
    other.rename(file)

    assert workspace.read(workspace.snapshot(), "file") == b"two"


def test_a_directory_under_another_name_is_not_read_again(
    root: Path, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "a", "1")
    put(root / "b", "2")
    with Workspace(root, client, name="one") as workspace:
        workspace.snapshot()

    monkeypatch.setattr(Capturer, "forget", refuse_for_good(Capturer.forget))
    put(root / "a", "3")
    with Workspace(root, client, name="two") as workspace:
        assert workspace.read(workspace.snapshot(), "a") == b"3"


def refuse_for_good(forget: Callable[..., None]) -> Callable[..., None]:
    def refusing(capturer: Capturer, for_good: bool = False) -> None:
        assert not for_good, "all that was known is lost"
        forget(capturer)

    return refusing


def test_two_snapshotters_at_once_both_see_everything(root: Path, client: SyncClient) -> None:
    def work(number: int) -> None:
        with Workspace(root, client) as workspace:
            for step in range(15):
                put(root / f"{number}-{step}", f"{number} {step}")
                snapshot = workspace.snapshot()
                for done in range(step + 1):
                    text = workspace.read(snapshot, f"{number}-{done}")
                    if text != f"{number} {done}".encode():
                        wrong.append((number, step, done))

    wrong: list[tuple[int, int, int]] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert not wrong
    with Workspace(root, client) as workspace:
        assert workspace.snapshot().files == 45
    assert client.verify().ok


def test_a_workspace_may_lie_on_another_file_system(tmp_path: Path) -> None:
    disk = own_disk(tmp_path / "disk", "64m")

    run_module(
        "tests.workspace.jobs", "another_file_system", tmp_path / "disk", tmp_path, within=disk
    )


@pytest.mark.parametrize("file", [".holdfast/holdfast.db", "data/agent.db", "agent.db"])
def test_a_store_in_the_workspace_is_never_captured(
    file: str, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "main.py", "1")
    monkeypatch.chdir(root)
    with Workspace(".", f"sqlite:///{file}") as workspace:
        before = workspace.snapshot()
        put(root / "main.py", "2")
        workspace.restore(before)

        assert [path for path in paths(workspace) if path != "data"] == ["main.py"]
        assert (root / "main.py").read_text() == "1"
        assert len(workspace.snapshots()) > 1


def test_losing_the_index_costs_only_time(root: Path, client: SyncClient, tmp_path: Path) -> None:
    put(root / "a" / "file", "one")
    with Workspace(root, client) as workspace:
        first = workspace.snapshot()
    for file in (tmp_path / "store").rglob("index"):
        file.write_bytes(file.read_bytes()[:-7])

    with Workspace(root, client) as workspace:
        assert workspace.snapshot().tree_id == first.tree_id
    for file in (tmp_path / "store").rglob("index"):
        file.write_bytes(b"\xff" * 1000)
    with Workspace(root, client) as workspace:
        assert workspace.snapshot().tree_id == first.tree_id


def test_equal_trees_have_equal_ids_wherever_their_bytes_lie(
    root: Path, client: SyncClient, tmp_path: Path
) -> None:
    for number in range(30):
        put(root / f"d{number % 3}" / f"f{number}", f"{number}" * 1000)
    with Workspace(root, client) as workspace:
        first = workspace.snapshot()
        for number in range(0, 30, 2):
            (root / f"d{number % 3}" / f"f{number}").unlink()
        workspace.snapshot()
        workspace.restore(first)
        again = workspace.snapshot()
    (tmp_path / "copy").mkdir()
    with Workspace(tmp_path / "copy", "memory://") as other:
        elsewhere = other.snapshot()
        for name in ("d2", "d0", "d1"):  # captured one by one, and so kept in other blocks
            shutil.copytree(root / name, tmp_path / "copy" / name)
            elsewhere = other.snapshot()

    assert first.tree_id == again.tree_id == elsewhere.tree_id
    assert first.root != elsewhere.root


def test_an_unchanged_workspace_adds_nothing_to_the_store(
    workspace: Workspace, root: Path, client: SyncClient
) -> None:
    put(root / "a" / "file", os.urandom(5000))
    workspace.snapshot()
    before = client.stats()

    again = workspace.snapshot()

    assert again.new_bytes == 0
    assert client.stats() == before


def test_content_that_is_there_already_is_not_stored_again(
    workspace: Workspace, root: Path
) -> None:
    put(root / "one", os.urandom(200_000))
    workspace.snapshot()
    (root / "one").rename(root / "two")
    put(root / "copy", (root / "two").read_bytes())

    assert workspace.snapshot().new_bytes < 2000


def test_a_small_change_of_a_large_file_costs_little(workspace: Workspace, root: Path) -> None:
    content = os.urandom(20 * 2**20)
    file = put(root / "model.bin", content)
    workspace.snapshot()

    file.write_bytes(content[: 10**7] + b"inserted" + content[10**7 :])
    inserted = workspace.snapshot()

    assert inserted.new_bytes < 2 * 2**20
    assert workspace.read(inserted, "model.bin") == file.read_bytes()


@pytest.mark.timeout(1200)
def test_very_many_files_are_captured_and_put_back(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    count = int(os.environ.get("HOLDFAST_FILES", "3000"))
    for number in range(count):
        if number % 100 == 0:
            (root / f"{number // 100}").mkdir()
        (root / f"{number // 100}" / f"{number}").write_text(f"file {number}\n")
    snapshot = workspace.snapshot()
    assert snapshot.files == count

    workspace.fork(snapshot, tmp_path / "fork").close()

    assert picture(tmp_path / "fork") == picture(root)


@pytest.mark.timeout(1200)
def test_a_huge_file_is_captured_and_put_back_in_bounded_memory(tmp_path: Path) -> None:
    megabytes = os.environ.get("HOLDFAST_HUGE_MB", "300")

    run_module("tests.workspace.jobs", "huge_file", tmp_path, megabytes, within=[])
