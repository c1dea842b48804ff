"""Thousands of random file operations, snapshots, restores and forks, against plain copies.

HOLDFAST_OPERATIONS says how many operations; every tree that is put back is compared with the copy
made when it was captured, byte by byte and mode by mode.
"""

import os
import random
import shutil
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.workspace.kit import Picture, picture

OPERATIONS = int(os.environ.get("HOLDFAST_OPERATIONS", "2000"))
NAMES = [b"a", b"b", b"A", b"caf\xc3\xa9", b"cafe\xcc\x81", b"\xff\xfe", b"x\ny", b"." + b"n" * 200]


class Scribbler:
    """Does random things to a directory, as agents and shell commands do."""

    def __init__(self, root: Path, chance: random.Random) -> None:
        self.root = os.fsencode(root)
        self.chance = chance

    def some(self, kind: str) -> bytes | None:
        found = [
            os.path.join(where, name)
            for where, directories, files in os.walk(self.root)
            for name in (directories if kind == "directory" else files)
            if kind == "file" or not os.path.islink(os.path.join(where, name))
        ]
        return self.chance.choice(found) if found else None

    def new(self) -> bytes:
        above = self.some("directory") if self.chance.random() < 0.7 else None
        return os.path.join(above or self.root, self.chance.choice(NAMES))

    def clear(self, path: bytes) -> None:
        if os.path.islink(path) or os.path.isfile(path):
            os.unlink(path)
        elif os.path.isdir(path):
            shutil.rmtree(path)

    def content(self) -> bytes:
        size = self.chance.choice([0, 1, 10, 1000, 5000, 70_000, 300_000, 1_500_000])
        if self.chance.random() < 0.2:
            return bytes(size)
        return self.chance.randbytes(min(size, 1000)) * (size // 1000 or 1)

    def step(self) -> None:
        getattr(
            self,
            self.chance.choice(
                ["write"] * 4
                + ["edit", "edit", "append", "truncate", "remove", "remove", "rename", "rename"]
                + ["chmod", "directory", "directory", "symlink", "touch", "same_size", "link"]
            ),
        )()

    def write(self) -> None:
        path = self.new()
        self.clear(path)
        with open(path, "wb") as file:
            file.write(self.content())

    def edit(self) -> None:
        path = self.some("file")
        if path and not os.path.islink(path) and os.path.getsize(path):
            os.chmod(path, 0o644)
            with open(path, "r+b") as file:
                file.seek(self.chance.randrange(os.path.getsize(path)))
                file.write(self.chance.randbytes(self.chance.randrange(1, 20)))

    def same_size(self) -> None:
        """An edit that keeps size and time."""
        path = self.some("file")
        if path and not os.path.islink(path) and os.path.getsize(path):
            times = os.stat(path)
            os.chmod(path, 0o644)
            with open(path, "r+b") as file:
                file.write(self.chance.randbytes(1))
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))

    def append(self) -> None:
        path = self.some("file")
        if path and not os.path.islink(path):
            os.chmod(path, 0o644)
            with open(path, "ab") as file:
                file.write(self.chance.randbytes(100))

    def truncate(self) -> None:
        path = self.some("file")
        if path and not os.path.islink(path):
            os.truncate(path, self.chance.choice([0, 5, 400_000]))

    def remove(self) -> None:
        path = self.some(self.chance.choice(["file", "file", "directory"]))
        if path:
            self.clear(path)

    def rename(self) -> None:
        old, new = self.some(self.chance.choice(["file", "directory"])), self.new()
        if old and not (new + b"/").startswith(old + b"/") and not old.startswith(new + b"/"):
            self.clear(new)
            os.rename(old, new)

    def chmod(self) -> None:
        path = self.some(self.chance.choice(["file", "directory"]))
        if path and not os.path.islink(path):
            os.chmod(path, self.chance.choice([0o644, 0o755, 0o600, 0o700, 0o555, 0o777]))

    def directory(self) -> None:
        path = self.new()
        if not os.path.lexists(path) or self.chance.random() < 0.3:
            self.clear(path)
            os.mkdir(path)

    def symlink(self) -> None:
        path = self.new()
        self.clear(path)
        target = self.chance.choice([b"a", b"../b", b"/etc/passwd", b"nowhere", b".", b"/tmp"])
        os.symlink(target, path)

    def touch(self) -> None:
        path = self.some("file")
        if path:
            time = self.chance.randrange(2**60)
            os.utime(path, ns=(time, time), follow_symlinks=False)

    def link(self) -> None:
        old, new = self.some("file"), self.new()
        if old and not old.startswith(new + b"/") and old != new and not os.path.islink(old):
            self.clear(new)
            os.link(old, new)


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("watch", [False, True], ids=["scanning", "watching"])
def test_every_tree_comes_back_as_it_was(watch: bool, tmp_path: Path) -> None:
    chance = random.Random(f"{OPERATIONS} {watch}")
    root = tmp_path / "repo"
    root.mkdir()
    scribbler = Scribbler(root, chance)
    kept: list[tuple[str, Picture]] = []
    forks = 0
    client = SyncClient.sqlite(tmp_path / "agent.db", durability="normal")
    workspace = Workspace(root, client, watch=watch)
    for number in range(OPERATIONS // 2):
        scribbler.step()
        if chance.random() < 0.1:
            before = picture(root)
            kept.append((workspace.snapshot().tree_id, before))
        if kept and chance.random() < 0.04:
            tree, wanted = chance.choice(kept[-20:])
            before = picture(root)
            done = workspace.restore(tree)
            assert picture(root) == wanted, number
            if chance.random() < 0.3:
                assert done.undo_tree is not None
                workspace.restore(done.undo_tree)
                assert picture(root) == before, number
        if kept and chance.random() < 0.01:
            tree, wanted = chance.choice(kept)
            forks += 1
            workspace.fork(tree, tmp_path / f"fork-{forks}").close()
            assert picture(tmp_path / f"fork-{forks}") == wanted
            shutil.rmtree(tmp_path / f"fork-{forks}")
        if chance.random() < 0.01:
            workspace.close()  # the index is read again from its file
            workspace = Workspace(root, client, watch=watch)
    assert len(kept) > 20
    for tree, wanted in kept[:: len(kept) // 10]:
        workspace.restore(tree)
        assert picture(root) == wanted
    workspace.close()
    client.close()
