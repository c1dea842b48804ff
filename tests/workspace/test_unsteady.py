"""Files that change, vanish or are replaced while a snapshot reads them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.workspace import Workspace
from tests.workspace.kit import at, paths, put


def test_a_file_that_grows_while_it_is_read_is_read_again(workspace: Workspace, root: Path) -> None:
    file = put(root / "log", "one\n")

    with at("workspace:reading", lambda time: file.write_text("one\ntwo\n") if time == 1 else None):
        snapshot = workspace.snapshot()

    assert workspace.read(snapshot, "log") == b"one\ntwo\n"
    assert snapshot.unsettled == ()


@pytest.mark.parametrize("size", [1000, 600_000])
def test_a_file_that_shrinks_while_it_is_read_is_read_again(
    size: int, workspace: Workspace, root: Path
) -> None:
    file = put(root / "data", b"x" * size)

    with at("workspace:reading", lambda time: os.truncate(file, 10) if time == 1 else None):
        snapshot = workspace.snapshot()

    assert workspace.read(snapshot, "data") == b"x" * 10


def test_a_small_file_that_becomes_large_while_it_is_read_is_whole(
    workspace: Workspace, root: Path
) -> None:
    file = put(root / "data", b"small")
    large = os.urandom(900_000)

    with at("workspace:reading", lambda time: file.write_bytes(large) if time == 1 else None):
        snapshot = workspace.snapshot()

    assert workspace.read(snapshot, "data") == large


def test_a_file_that_never_stops_changing_is_named(workspace: Workspace, root: Path) -> None:
    file = put(root / "log", "start\n")

    def grow(time: int) -> None:
        with file.open("a") as log:
            log.write(f"line {time}\n")

    with at("workspace:read", grow):
        snapshot = workspace.snapshot()

    assert snapshot.unsettled == ("log",)
    assert file.read_bytes().startswith(workspace.read(snapshot, "log"))
    assert workspace.read(workspace.snapshot(), "log") == file.read_bytes()


def test_a_file_that_vanishes_before_it_is_read_is_left_out(
    workspace: Workspace, root: Path
) -> None:
    file = put(root / "gone")
    put(root / "kept")

    with at("workspace:found", lambda _: file.unlink(missing_ok=True)):
        assert paths(workspace) == ["kept"]


def test_a_file_replaced_by_a_symlink_before_it_is_read_is_not_followed(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    secret = put(tmp_path / "secret", "secret")
    file = put(root / "file")

    def swap(_: int) -> None:
        file.unlink()
        file.symlink_to(secret)

    with at("workspace:found", swap):
        snapshot = workspace.snapshot()

    assert [s.reason for s in snapshot.skipped] == ["replaced while it was read"]
    assert workspace.read(workspace.snapshot(), "file") == os.fsencode(secret)


def test_a_directory_replaced_by_a_symlink_is_not_read_through(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside" / "file", "secret")
    put(root / "dir" / "file", "own")

    def swap(time: int) -> None:
        if time == 1:
            (root / "dir").rename(tmp_path / "moved")
            (root / "dir").symlink_to(tmp_path / "outside")

    with at("workspace:found", swap):
        snapshot = workspace.snapshot()

    assert all(
        workspace.read(snapshot, e.path) != b"secret"
        for e in workspace.ls(snapshot)
        if e.kind == "file"
    )


def test_a_file_that_grows_faster_than_it_is_read_is_kept_as_far_as_it_was(
    workspace: Workspace, root: Path
) -> None:
    log = put(root / "log", b"a line of a log\n" * 40_000)
    writer = (
        "import os, sys\n"
        "fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)\n"
        "os.write(1, b'.')\n"
        "while os.fstat(fd).st_size < 2**31: os.write(fd, b'a line of a log\\n' * 100_000)\n"
    )
    command = [sys.executable, "-c", writer, str(log)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)
            snapshot = workspace.snapshot()
            assert process.poll() is None, "it stopped before the snapshot ended"
        finally:
            process.kill()

    assert snapshot.unsettled == ("log",)
    (entry,) = workspace.ls(snapshot)
    assert 640_000 <= entry.size < log.stat().st_size
    kept = workspace.read(snapshot, "log")
    with log.open("rb") as now:
        assert kept == now.read(len(kept))


@pytest.mark.parametrize("known", [False, True])
def test_a_directory_swapped_for_a_symlink_before_it_is_listed_lets_nothing_in(
    known: bool, workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    put(tmp_path / "outside" / "secret", "secret")
    put(tmp_path / "outside" / "deeper" / "secret too", "secret")
    put(root / "dir" / "own", "own")
    if known:
        workspace.snapshot()
        put(root / "dir" / "another", "own")

    def swap(_: int) -> None:
        if not (root / "dir").is_symlink():
            (root / "dir").rename(tmp_path / "moved")
            (root / "dir").symlink_to(tmp_path / "outside")

    passed = 0

    def on_second(time: int) -> None:
        nonlocal passed
        passed = time
        if time == 2:  # the first is the workspace itself
            swap(time)

    with at("workspace:listing", on_second):
        snapshot = workspace.snapshot()

    assert passed >= 2
    assert [entry.path for entry in workspace.ls(snapshot)] in ([], ["dir"])
    assert workspace.read(workspace.snapshot(), "dir") == os.fsencode(tmp_path / "outside")


def test_no_name_from_outside_comes_in_while_directories_and_symlinks_change_places(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    for number in range(20):
        put(tmp_path / "outside" / f"secret {number}", "secret")
        put(root / "dir" / f"own {number}", "own")
        put(root / "dir" / "deep" / f"own {number}", "own")
    swapper = (
        "import os, sys\n"
        "real, link, aside = sys.argv[1:]\n"
        "os.write(1, b'.')\n"
        "while True:\n"
        "    os.rename(real, aside); os.rename(link, real)\n"
        "    os.rename(real, link); os.rename(aside, real)\n"
        "    for _ in range(300): os.stat(real)\n"
    )
    (tmp_path / "link").symlink_to(tmp_path / "outside")
    places = [str(root / "dir"), str(tmp_path / "link"), str(tmp_path / "aside")]
    command = [sys.executable, "-c", swapper, *places]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.read(1)
            trees = [workspace.snapshot() for _ in range(60)]
        finally:
            process.kill()

    names = {entry.path for tree in trees for entry in workspace.ls(tree)}
    assert "dir/own 1" in names
    assert not [name for name in names if "secret" in name]
