"""What a snapshot keeps: every kind of file, under every kind of name."""

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from holdfast.workspace import Workspace
from tests.workspace.kit import back, paths, picture, put


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
