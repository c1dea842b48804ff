"""What a snapshot keeps, what it leaves out, and that it notices every change."""

import os
import shutil
import socket
import stat
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
from tests.workspace.kit import at, open_to_all, picture, put, unprivileged


def back(workspace: Workspace, root: Path) -> None:
    """Snapshot, wipe, restore: everything is there again."""
    before = picture(root)
    snapshot = workspace.snapshot()
    for path in root.iterdir():
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    workspace.restore(snapshot)
    assert picture(root) == before


def paths(workspace: Workspace) -> list[str]:
    return [entry.path for entry in workspace.ls(workspace.snapshot())]


def test_bytes_are_kept_exactly(workspace: Workspace, root: Path) -> None:
    put(root / "dos.txt", b"one\r\ntwo\r\n")
    put(root / ".gitattributes", "* text=auto eol=lf\n")
    put(root / "binary", bytes(range(256)) * 100)
    put(root / "empty", b"")

    back(workspace, root)


def test_permission_bits_of_files_and_directories_are_kept(
    workspace: Workspace, root: Path
) -> None:
    put(root / "run.sh", mode=0o755)
    put(root / "secret", mode=0o600)
    put(root / "bin" / "tool", mode=0o711)
    (root / "bin").chmod(0o750)
    (root / "shared" / "own").mkdir(parents=True)
    (root / "shared" / "own" / "private").mkdir()
    (root / "shared").chmod(0o2775)
    (root / "shared" / "own").chmod(0o755)
    (root / "shared" / "own" / "private").chmod(0o700)

    back(workspace, root)


def test_a_changed_mode_alone_is_noticed(workspace: Workspace, root: Path) -> None:
    file = put(root / "run.sh", mode=0o644)
    before = workspace.snapshot()
    file.chmod(0o755)

    after = workspace.snapshot()

    assert workspace.diff(before, after).mode == ("run.sh",)
    workspace.restore(before)
    assert stat.S_IMODE(file.stat().st_mode) == 0o644


def test_times_of_files_are_kept(workspace: Workspace, root: Path) -> None:
    for time_ns in (0, 1, 10**18, 1_500_000_000_123_456_789):
        file = put(root / str(time_ns))
        os.utime(file, ns=(time_ns, time_ns))

    back(workspace, root)


@pytest.mark.parametrize("target", ["nowhere", "/etc/passwd", "dir", "../..", ".", "dir/file"])
def test_symlinks_are_kept_and_never_followed(
    target: str, workspace: Workspace, root: Path
) -> None:
    put(root / "dir" / "file")
    (root / "link").symlink_to(target)

    back(workspace, root)

    assert [p for p in paths(workspace) if p.startswith("link")] == ["link"]


def test_empty_directories_are_kept(workspace: Workspace, root: Path) -> None:
    (root / "a" / "b" / "c").mkdir(parents=True)

    back(workspace, root)


@pytest.mark.parametrize(
    "name",
    [
        b"\xff\xfe\x80",
        b"line\nbreak",
        b"caf\xc3\xa9",
        b"cafe\xcc\x81",
        b"n" * 255,
        b" ",
        b"-rf",
        b"back\\slash",
        b"...",
        b"*?[a]",
        "日本語".encode(),
    ],
)
def test_any_name_is_kept_as_bytes(name: bytes, workspace: Workspace, root: Path) -> None:
    directory = os.path.join(os.fsencode(root), name)
    os.mkdir(directory)
    with open(os.path.join(directory, name), "wb") as file:
        file.write(name)

    back(workspace, root)

    assert workspace.read(workspace.snapshot(), name + b"/" + name) == name


def test_names_that_differ_only_in_their_form_are_kept_apart(
    workspace: Workspace, root: Path
) -> None:
    put(root / "caf\u00e9", "composed")
    put(root / "cafe\u0301", "decomposed")

    back(workspace, root)


def test_directories_are_captured_as_deep_as_a_path_may_be(
    workspace: Workspace, root: Path
) -> None:
    deepest = root
    while len(os.fsencode(deepest)) < 3900:
        deepest = deepest / "d"
    subprocess.run(["mkdir", "-p", deepest], check=True)
    (deepest / "f").write_text("deep")

    try:
        snapshot = workspace.snapshot()
        subprocess.run(["rm", "-rf", root / "d"], check=True)
        workspace.restore(snapshot)

        assert (deepest / "f").read_text() == "deep"
    finally:  # Python's own way to remove a directory does not go that deep
        subprocess.run(["rm", "-rf", root / "d"], check=True)


def test_what_lies_too_deep_for_a_path_is_reported(workspace: Workspace, root: Path) -> None:
    fd = os.open(root, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=fd)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)

    try:
        assert [s.reason for s in workspace.snapshot().skipped] == ["its path is too long"]
    finally:
        subprocess.run(["rm", "-rf", root / ("d" * 250)], check=True)


def test_a_rename_that_changes_only_the_case_is_noticed(workspace: Workspace, root: Path) -> None:
    put(root / "Readme", "read")
    before = workspace.snapshot()
    (root / "Readme").rename(root / "README")

    assert workspace.diff(before).renamed == (("Readme", "README"),)
    workspace.restore(before)
    assert os.listdir(root) == ["Readme"]


def test_files_directories_and_symlinks_may_take_each_others_place(
    workspace: Workspace, root: Path
) -> None:
    def make(kind: str) -> None:
        thing = root / "thing"
        if thing.is_symlink() or thing.is_file():
            thing.unlink()
        elif thing.is_dir():
            shutil.rmtree(thing)
        if kind == "file":
            put(thing, "file")
        elif kind == "symlink":
            thing.symlink_to("/etc")
        elif kind == "directory":
            put(thing / "inner" / "file", "inner")

    trees = {}
    for kind in ("file", "symlink", "directory", "nothing"):
        make(kind)
        trees[kind] = (workspace.snapshot(), picture(root))
    for first in trees:
        for second in trees:
            workspace.restore(trees[first][0])
            assert picture(root) == trees[first][1]
            workspace.restore(trees[second][0])
            assert picture(root) == trees[second][1]


def test_hard_links_are_captured_as_files_and_left_linked_where_nothing_changes(
    workspace: Workspace, root: Path, tmp_path: Path
) -> None:
    file = put(root / "a", "shared")
    os.link(file, root / "b")
    os.link(file, tmp_path / "outside")
    before = workspace.snapshot()
    put(root / "c", "new")

    workspace.restore(before)
    assert file.stat().st_nlink == 3

    (root / "a").write_text("edited through one name")
    workspace.restore(before)

    assert (root / "a").read_text() == (root / "b").read_text() == "shared"
    assert (tmp_path / "outside").read_text() == "edited through one name"


def test_a_sparse_file_comes_back_sparse(workspace: Workspace, root: Path) -> None:
    with (root / "disk.img").open("wb") as file:
        file.write(b"head")
        file.seek(64 * 2**20)
        file.write(b"tail")

    back(workspace, root)

    assert (root / "disk.img").stat().st_blocks * 512 < 4 * 2**20
    assert workspace.snapshot().new_bytes < 10_000


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


def test_sockets_and_fifos_are_reported_and_left_alone(workspace: Workspace, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        os.chdir(root)
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
    monkeypatch.setattr("holdfast.workspace.scan.time.time_ns", lambda: past)
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
    if not disk:
        pytest.skip("no disk can be mounted here")

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
