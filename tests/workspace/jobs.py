"""What tests run in processes of their own: `python -m tests.workspace.jobs NAME ARGUMENTS`."""

import hashlib
import os
import random
import sys
from pathlib import Path

import pytest

from holdfast.workspace import Workspace, WorkspaceError
from tests.workspace.kit import picture, put


def another_file_system(disk: str, home: str) -> None:
    """The workspace on a disk of its own, the store elsewhere."""
    root = Path(disk) / "repo"
    root.mkdir()
    put(root / "a" / "file", "one")
    (root / "link").symlink_to("a")
    with Workspace(root, f"sqlite:///{home}/agent.db") as workspace:
        before, was = workspace.snapshot(), picture(root)
        put(root / "a" / "file", "two")
        put(root / "b" / "file", "new")
        workspace.restore(before)
        assert picture(root) == was
        workspace.fork(before, Path(home) / "fork").close()
        assert picture(Path(home) / "fork") == was
        workspace.fork(before, Path(disk) / "fork").close()
        assert picture(Path(disk) / "fork") == was


def full_disk(disk: str, home: str) -> None:
    """A restore for which there is no room leaves everything as it was."""
    root = Path(disk) / "repo"
    root.mkdir()
    put(root / "large", os.urandom(8 * 2**20))
    put(root / "d" / "small", "small")
    with Workspace(root, f"sqlite:///{home}/agent.db") as workspace:
        before = workspace.snapshot()
        put(root / "large", "now it is small")
        put(root / "d" / "small", "edited")
        put(root / "new", "new")
        free = os.statvfs(disk)
        put(Path(disk) / "filler", bytes(free.f_bavail * free.f_frsize - 3 * 2**20))
        was = picture(root)
        with pytest.raises(WorkspaceError, match="nothing was changed"):
            workspace.restore(before)
        assert picture(root) == was
        os.statvfs = lambda path: free  # as if others took it meanwhile
        with pytest.raises(WorkspaceError, match="the disk is full; nothing was changed"):
            workspace.restore(before)
        assert picture(root) == was
        (Path(disk) / "filler").unlink()
        workspace.restore(before)
        assert (root / "d" / "small").read_text() == "small"


def huge_file(home: str, megabytes: str) -> None:
    """One huge file, changed in the middle and put back, within 300 MB of memory."""
    root = Path(home) / "repo"
    root.mkdir()
    size = int(megabytes) * 2**20
    chance = random.Random(7)
    with (root / "huge").open("wb") as file:
        for _ in range(int(megabytes) // 4):
            file.write(chance.randbytes(4 * 2**20))
        file.truncate(size)
    with Workspace(root, f"sqlite:///{home}/agent.db?durability=normal") as workspace:
        first, digest = workspace.snapshot(), _digest(root / "huge")
        with (root / "huge").open("r+b") as file:
            file.seek(size // 2)
            file.write(b"edited")
        second = workspace.snapshot()
        assert second.new_bytes < 2**20, second.new_bytes
        assert workspace.diff(first, second).modified == ("huge",)
        workspace.restore(first)
        assert _digest(root / "huge") == digest
    peak = _peak()
    assert peak < 300 * 1024, f"{peak} KB"
    print(f"peak {peak // 1024} MB, new bytes {second.new_bytes}")


def _peak() -> int:
    """The most memory this program has had, in KB; getrusage counts that of its parent, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0])


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
