"""What a snapshot leaves out and a restore leaves alone, and what it says of that."""

import os
import socket
import stat
import time
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.workspace.kit import back, open_to_all, paths, picture, put, unprivileged


def test_unreadable_files_and_directories_are_reported_and_left_alone() -> None:
    with open_to_all() as place:

        def work() -> None:
            root = place / "repo"
            put(root / "open", "open")
            put(root / "closed", "closed", mode=0o000)
            put(root / "dir" / "inner", "inner")
            (root / "dir").chmod(0o000)
            with Workspace(root, f"sqlite:///{place}/agent.db") as workspace:
                first = workspace.snapshot()
                assert {(s.path, s.reason) for s in first.skipped} == {
                    ("closed", "unreadable"),
                    ("dir", "unreadable"),
                }
                (root / "open").unlink()
                workspace.restore(first)
                assert (root / "open").read_text() == "open"
                assert stat.S_IMODE((root / "closed").stat().st_mode) == 0
                (root / "closed").chmod(0o600)
                (root / "dir").chmod(0o700)
                assert workspace.snapshot().skipped == ()
                assert workspace.snapshot().files == 3

        unprivileged(work)


def test_read_only_files_and_directories_are_put_back_and_stay_read_only() -> None:
    with open_to_all() as place:

        def work() -> None:
            root = place / "repo"
            put(root / "dir" / "sub" / "file", "one", mode=0o444)
            (root / "dir" / "sub").chmod(0o555)
            (root / "dir").chmod(0o555)
            with Workspace(root, f"sqlite:///{place}/agent.db") as workspace:
                first, before = workspace.snapshot(), picture(root)
                for directory in (root / "dir", root / "dir" / "sub"):
                    directory.chmod(0o755)
                put(root / "dir" / "more" / "x", "x")
                (root / "dir" / "sub" / "file").chmod(0o644)
                (root / "dir" / "sub" / "file").write_text("two")
                (root / "dir" / "more").chmod(0o500)
                (root / "dir").chmod(0o555)
                second, after = workspace.snapshot(), picture(root)
                workspace.restore(first)
                assert picture(root) == before
                workspace.restore(second)
                assert picture(root) == after
                workspace.fork(first, place / "fork").close()
                assert picture(place / "fork") == before

        unprivileged(work)


def test_sockets_and_fifos_are_reported_and_left_alone(
    workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(root)
        server.bind("socket")
        put(root / "file")

        snapshot = workspace.snapshot()
        (root / "file").unlink()
        workspace.restore(snapshot)

    assert {(s.path, s.reason) for s in snapshot.skipped} == {
        ("pipe", "a fifo"),
        ("socket", "a socket"),
    }
    assert sorted(os.listdir(root)) == ["file", "pipe", "socket"]


def test_a_git_directory_is_never_captured_or_touched(workspace: Workspace, root: Path) -> None:
    put(root / ".git" / "HEAD", "ref: refs/heads/main\n")
    put(root / "vendor" / ".git" / "HEAD", "ref: refs/heads/other\n")
    put(root / "vendor" / "code.py", "1")
    put(root / "module" / ".git", "gitdir: ../.git/modules/module\n")
    before = workspace.snapshot()
    put(root / "vendor" / ".git" / "HEAD", "moved on\n")
    put(root / "vendor" / "code.py", "2")

    workspace.restore(before)

    assert paths(workspace) == ["module", "vendor", "vendor/code.py"]
    assert (root / "vendor" / "code.py").read_text() == "1"
    assert (root / "vendor" / ".git" / "HEAD").read_text() == "moved on\n"


def test_a_nested_repository_may_be_left_alone(root: Path, client: SyncClient) -> None:
    put(root / "vendor" / ".git" / "HEAD")
    put(root / "vendor" / "code.py", "1")
    put(root / "own.py", "1")
    with Workspace(root, client, nested_git="skip") as workspace:
        before = workspace.snapshot()
        put(root / "vendor" / "code.py", "2")
        put(root / "own.py", "2")

        workspace.restore(before)

        assert [(s.path, s.reason) for s in before.skipped] == [
            ("vendor", "a repository of its own")
        ]
    assert (root / "own.py").read_text() == "1"
    assert (root / "vendor" / "code.py").read_text() == "2"


def test_a_removed_directory_that_holds_a_repository_stays_for_its_sake(
    workspace: Workspace, root: Path
) -> None:
    before = workspace.snapshot()
    put(root / "vendor" / ".git" / "HEAD", "head")
    put(root / "vendor" / "code.py")

    workspace.restore(before)

    assert (root / "vendor" / ".git" / "HEAD").read_text() == "head"
    assert not (root / "vendor" / "code.py").exists()


def test_ignored_files_are_left_out_and_left_in_place(workspace: Workspace, root: Path) -> None:
    put(root / ".gitignore", "*.log\nbuild/\n!keep.log\n")
    put(root / "sub" / ".gitignore", "!debug.log\n/only-here\n")
    for name in ("a.log", "keep.log", "build/out", "sub/debug.log", "sub/only-here", "only-here"):
        put(root / name, "first")
    first = workspace.snapshot()
    for name in ("a.log", "keep.log", "build/out", "sub/debug.log", "sub/only-here", "only-here"):
        put(root / name, "second")

    workspace.restore(first)

    found = [e.path for e in workspace.ls(first) if e.kind == "file"]
    assert found == [".gitignore", "keep.log", "only-here", "sub/.gitignore", "sub/debug.log"]
    assert (root / "keep.log").read_text() == "first"
    assert (root / "a.log").read_text() == "second"
    assert (root / "build" / "out").read_text() == "second"
    assert (root / "sub" / "only-here").read_text() == "second"


def test_holdfastignore_has_the_last_word(workspace: Workspace, root: Path) -> None:
    put(root / ".gitignore", "*.env\n")
    put(root / ".holdfastignore", "!local.env\ndata/\n")
    put(root / "local.env")
    put(root / "other.env")
    put(root / "data" / "big")

    assert paths(workspace) == [".gitignore", ".holdfastignore", "local.env"]


def test_ignored_files_are_captured_where_that_is_asked_for(root: Path, client: SyncClient) -> None:
    put(root / ".gitignore", "*\n")
    put(root / "build" / "out", "built")

    with Workspace(root, client, include_ignored=True) as workspace:
        back(workspace, root)
        assert "build/out" in paths(workspace)


def test_changed_ignore_rules_are_noticed_everywhere_below(
    workspace: Workspace, root: Path
) -> None:
    put(root / "a" / "b" / "x.tmp")
    put(root / "a" / "b" / "y")
    time.sleep(0.05)
    assert "a/b/x.tmp" in paths(workspace)

    put(root / "a" / ".gitignore", "*.tmp\n")
    assert "a/b/x.tmp" not in paths(workspace)

    put(root / "a" / ".gitignore", ".gitignore\n")
    assert paths(workspace) == ["a", "a/b", "a/b/x.tmp", "a/b/y"]

    put(root / "a" / ".gitignore", ".gitignore\ny\n")
    assert paths(workspace) == ["a", "a/b", "a/b/x.tmp"]
