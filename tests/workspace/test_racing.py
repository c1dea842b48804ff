"""Editors that work while the workspace is restored: nothing they have written is ever lost.

HOLDFAST_RACES says how many restores each kind of editor has to live through.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.workspace import Restored, Workspace, WorkspaceError, safe_rename
from tests.workspace.editors import version
from tests.workspace.kit import at, left_behind, picture, put

ROOT = Path(__file__).parents[2]
RACES = int(os.environ.get("HOLDFAST_RACES", "20"))


@contextmanager
def editor(kind: str, file: Path, progress: Path) -> Iterator[subprocess.Popen[bytes]]:
    """An editor that has begun to write."""
    progress.write_bytes(bytes(8))
    command = [sys.executable, "-m", "tests.workspace.editors", kind, str(file), str(progress)]
    with subprocess.Popen(command, cwd=ROOT) as process:
        try:
            while told(progress) < 3:
                assert process.poll() is None
                time.sleep(0.001)
            yield process
        finally:
            process.kill()


def told(progress: Path) -> int:
    """The last version of which the editor said that it was written."""
    return int.from_bytes(progress.read_bytes(), "little")


def everything_of(workspace: Workspace, root: Path, done: Restored) -> Iterator[bytes]:
    """All that a file is found to hold after a restore: in place, in the way back, beside."""
    assert done.undo_tree is not None
    for name in ("file", ".swap-of-an-editor"):
        if (root / name).exists():
            yield (root / name).read_bytes()
    if any(entry.path == "file" for entry in workspace.ls(done.undo_tree)):
        yield workspace.read(done.undo_tree, "file")
    for held in done.held:
        yield (root / held).read_bytes()


def newest(texts: Iterator[bytes]) -> int:
    """The newest version that is anywhere to be found, whole."""
    lines = [line for text in texts for line in text.splitlines(keepends=True)]
    numbers = [int(line.split()[0]) for line in lines if line[:1].isdigit()]
    whole = [number for number in numbers if version(number) in lines]
    return max(whole, default=0)


@pytest.fixture(params=["exchanging", "linking"])
def able(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With what the kernel offers, and as where a file system cannot exchange names."""
    if request.param == "linking":
        monkeypatch.setattr(safe_rename, "_renameat2", lambda: None)
    return str(request.param)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["in_place", "appending", "replacing"])
def test_what_an_editor_wrote_before_or_during_a_restore_is_found_afterwards(
    kind: str, able: str, workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    file, progress = put(root / "file", "0 target\n"), tmp_path / "progress"
    put(root / "other" / "file", "0 other\n")
    target = workspace.snapshot()
    late = 0

    for race in range(RACES):
        with editor(kind, file, progress) as process:
            put(root / "other" / f"new {race}", "to be removed")
            done = workspace.restore(target)
            written = told(progress)
            process.send_signal(signal.SIGSTOP)
            found = list(everything_of(workspace, root, done))
        assert newest(iter(found)) >= written, (written, [text[:50] for text in found])
        if kind == "appending":
            lines = [line for text in found for line in text.splitlines(keepends=True)]
            assert {version(number) for number in range(1, written + 1)} <= set(lines)
        late += bool(done.late or done.held)
        assert not left_behind(root)
        (root / "file").unlink(missing_ok=True)
        (root / ".swap-of-an-editor").unlink(missing_ok=True)

    assert late, "no editor ever came at the wrong moment: the test shows nothing"


def test_a_file_replaced_at_the_last_moment_is_in_the_way_back(
    able: str, workspace: Workspace, root: Path
) -> None:
    put(root / "a", "one")
    put(root / "b", "one")
    target = workspace.snapshot()
    put(root / "a", "two")
    put(root / "b", "two")

    def replace(time: int) -> None:
        if time == 1:  # "a" has been replaced, "b" is next
            put(root / "beside", "newer").rename(root / "b")

    with at("workspace:moved", replace):
        done = workspace.restore(target)

    assert picture(root, times=False) == {
        b"a": ("file", 0o644, 0, b"one"),
        b"b": ("file", 0o644, 0, b"one"),
    }
    assert done.undo_tree is not None
    assert done.late == ("b",)
    assert workspace.read(done.undo_tree, "a") == b"two"
    assert workspace.read(done.undo_tree, "b") == b"newer"


def test_a_file_that_comes_again_while_it_is_replaced_is_kept_too(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(safe_rename, "_renameat2", lambda: None)
    put(root / "file", "one")
    target = workspace.snapshot()
    put(root / "file", "two")
    move, came = safe_rename.move, list[bytes]()

    def racing(old_fd: int, old: bytes, new_fd: int, new: bytes) -> None:
        if new == b"file" and not came:  # the file was moved aside, and nothing is there yet
            came.append(put(root / "file", "three").read_bytes())
        move(old_fd, old, new_fd, new)

    monkeypatch.setattr(safe_rename, "move", racing)
    done = workspace.restore(target)

    assert (root / "file").read_bytes() == b"one"
    assert done.undo_tree is not None
    kept = [workspace.read(done.undo_tree, "file"), *((root / h).read_bytes() for h in done.held)]
    assert kept == [b"two", b"three"]


def test_what_is_written_through_an_open_descriptor_is_in_the_way_back(
    able: str, workspace: Workspace, root: Path
) -> None:
    put(root / "file", "one")
    target = workspace.snapshot()
    put(root / "file", "two")

    with (root / "file").open("r+") as opened:

        def write(_: int) -> None:
            opened.write("three")
            opened.close()

        with at("workspace:swapped", write):
            done = workspace.restore(target)

    assert (root / "file").read_text() == "one"
    assert done.undo_tree is not None
    assert (done.late, done.held) == (("file",), ())
    assert workspace.read(done.undo_tree, "file") == b"three"
    assert not left_behind(root)


@pytest.mark.parametrize("age", [0, 10])
def test_a_file_that_somebody_has_open_for_writing_is_kept_beside(
    age: int, workspace: Workspace, root: Path
) -> None:
    put(root / "log", "one\n")
    target = workspace.snapshot()
    log = put(root / "log", "one\ntwo\n")
    os.utime(log, (time.time() - age,) * 2)

    with log.open("a") as opened:
        done = workspace.restore(target)
        opened.write("three\n")

    assert log.read_text() == "one\n"
    (held,) = done.held
    assert (root / held).read_text() == "one\ntwo\nthree\n"
    assert done.undo_tree is not None
    assert workspace.read(done.undo_tree, "log") == b"one\ntwo\n"
    assert [entry.path for entry in workspace.ls(workspace.snapshot())] == ["log"]


def test_a_file_made_where_the_tree_has_one_is_in_the_way_back(
    able: str, workspace: Workspace, root: Path
) -> None:
    put(root / "file", "one")
    target = workspace.snapshot()
    (root / "file").unlink()

    with at("workspace:staged", lambda _: put(root / "file", "made meanwhile")):
        done = workspace.restore(target)

    assert (root / "file").read_text() == "one"
    assert done.undo_tree is not None
    assert workspace.read(done.undo_tree, "file") == b"made meanwhile"


def test_a_directory_in_which_a_file_appears_stays_and_is_named(
    workspace: Workspace, root: Path
) -> None:
    target = workspace.snapshot()
    put(root / "build" / "old", "old")

    with at("workspace:removed", lambda _: put(root / "build" / "new", "new")):
        done = workspace.restore(target)

    assert picture(root, times=False).keys() == {b"build", b"build/new"}
    assert done.stayed == ("build",)
    assert done.removed == ("build/old",)


def test_a_file_written_to_while_only_its_time_is_put_back_keeps_what_was_written(
    workspace: Workspace, root: Path
) -> None:
    file = put(root / "file", "one")
    put(root / "other", "one")
    target = workspace.snapshot()
    os.utime(file, (1, 1))
    put(root / "other", "two")

    with at("workspace:moved", lambda _: put(file, "newer")):
        workspace.restore(target)

    assert file.read_text() == "newer"
    assert file.stat().st_mtime > 10


def test_what_was_written_to_new_files_of_a_restore_that_fails_is_kept(
    able: str, workspace: Workspace, root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    put(root / "dir" / "inner", "one")
    put(root / "z", "one")
    target = workspace.snapshot()
    (root / "dir" / "inner").unlink()
    (root / "dir").rmdir()
    put(root / "z", "two")
    was = picture(root)

    def fail(time: int) -> None:
        put(root / "dir" / "inner", "edited in the new one")
        put(root / "dir" / "mine", "made in the new one")
        raise OSError(5, "Input/output error")

    with (
        at("workspace:moved", fail),
        pytest.raises(WorkspaceError, match=r"'dir'.*; the workspace is as it was"),
    ):
        workspace.restore(target)

    assert picture(root) == was
    newest = workspace.snapshots()[0]
    assert newest.tree_id in caplog.text
    assert workspace.read(newest, "dir/inner") == b"edited in the new one"
    assert workspace.read(newest, "dir/mine") == b"made in the new one"
