"""Files that change, vanish or are replaced while a snapshot reads them."""

import os
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
