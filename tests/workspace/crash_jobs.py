"""What the children do that test_crash kills: edit, snapshot, restore, and tell of each."""

import hashlib
import os
import random
import shutil
import signal
from pathlib import Path

from holdfast import SyncClient
from holdfast.testing import crash_points
from holdfast.workspace import Workspace
from tests.integration.fork_server import tell
from tests.workspace.kit import Picture, picture

POINTS = (
    *("workspace:scanned", "workspace:kept", "workspace:staging", "workspace:making"),
    *("workspace:staged", "workspace:journal_written", "workspace:journaled"),
    *("workspace:removed", "workspace:moved", "workspace:touching"),
    *("workspace:touched", "workspace:swapped", "workspace:looked"),
    *("sqlite:begun", "sqlite:chunks_written", "sqlite:committed"),
)


def digest(pictured: Picture) -> str:
    """A short name for what a directory holds."""
    return hashlib.sha256(repr(sorted(pictured.items())).encode()).hexdigest()


def scribble(root: Path, chance: random.Random) -> None:
    """Change some files, modes and kinds."""
    for _ in range(chance.randint(1, 6)):
        path = root / f"d{chance.randrange(4)}" / f"f{chance.randrange(6)}"
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)
        path.parent.mkdir(exist_ok=True)
        kind = chance.randrange(8)
        if kind == 0:
            path.symlink_to("nowhere")
        elif kind == 1:
            (path / "inner").mkdir(parents=True)
            (path / "inner" / "file").write_bytes(chance.randbytes(50))
        elif kind > 2:
            path.write_bytes(chance.randbytes(chance.choice([0, 10, 5000, 300_000])))
            path.chmod(chance.choice([0o644, 0o755, 0o600]))
    if chance.random() < 0.2:
        shutil.rmtree(root / f"d{chance.randrange(4)}", ignore_errors=True)


def work_until_killed(home: str, seed: int, point: str | None = None, time: int = 1) -> None:
    """Edits, snapshots, restores without end; tells before and after each what holds then."""
    chance = random.Random(seed)
    root = Path(home) / "repo"
    known: list[tuple[str, str]] = []
    if point is not None:
        crash_points.kill_at(point, time)
    with Workspace(root, f"sqlite:///{home}/agent.db?durability=normal") as workspace:
        while True:
            if chance.random() < 0.6 or not known:
                scribble(root, chance)
                now = digest(picture(root))
                tell(["edited", now])
                tree = workspace.snapshot().tree_id
                known.append((tree, now))
                tell(["kept", tree, now])
            else:
                scribble(root, chance)
                tree, wanted = chance.choice(known[-10:])
                tell(["restoring", tree, wanted, digest(picture(root))])
                done = workspace.restore(tree)
                tell(["restored", tree, wanted, done.undo_tree])


def fail_half_way_and_be_killed(home: str, point: str, time: int) -> None:
    """A restore that fails at its third file, killed at a point while it is taken back."""
    root = Path(home) / "repo"
    with Workspace(root, f"sqlite:///{home}/agent.db") as workspace:
        first = workspace.snapshots()[-1]
        passed: list[str] = []
        failed = False

        def on_reached(name: str) -> None:
            nonlocal failed
            passed.append(name)
            if not failed and passed.count("workspace:moved") == 3:
                failed = True
                passed.clear()
                raise OSError(5, "Input/output error")
            if failed and passed.count(point) == time:
                os.kill(os.getpid(), signal.SIGKILL)

        with crash_points.listening(on_reached):
            workspace.restore(first)


def edit_late_and_be_killed(home: str, point: str) -> None:
    """Somebody edits at the last moment, and the restore is killed before that is captured."""
    root = Path(home) / "repo"
    with Workspace(root, f"sqlite:///{home}/agent.db") as workspace:
        first = workspace.snapshots()[-1]

        def on_reached(name: str) -> None:
            if name == "workspace:staged":
                (root / "d1" / "file").write_text("written at the last moment")
                (root / "d2" / "file").unlink()
                (root / "d2" / "file").symlink_to("elsewhere")
            if name == point:
                os.kill(os.getpid(), signal.SIGKILL)

        with crash_points.listening(on_reached):
            workspace.restore(first)


def fork_and_be_killed(home: str, point: str) -> None:
    """A fork that is killed before it is whole."""
    crash_points.kill_at(point, 1)
    with Workspace(f"{home}/repo", f"sqlite:///{home}/agent.db") as workspace:
        workspace.fork(workspace.snapshots()[0], f"{home}/forks/new")


def export_and_be_killed(home: str) -> None:
    """An export that is killed before it is whole."""
    with SyncClient.open(f"sqlite:///{home}/agent.db") as client:
        client.export(
            f"{home}/backups/all.holdfast", progress=lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        )


def open_and_be_killed(home: str, point: str, time: int) -> None:
    """An open that completes a restore and is killed at a point, at the nth time."""
    crash_points.kill_at(point, time)
    Workspace(f"{home}/repo", f"sqlite:///{home}/agent.db")


def restore_and_be_killed(home: str, point: str, time: int = 1) -> None:
    """A restore to the first snapshot that is killed at a point, at the nth time."""
    crash_points.kill_at(point, time)
    with Workspace(f"{home}/repo", f"sqlite:///{home}/agent.db") as workspace:
        workspace.restore(workspace.snapshots()[-1])
