"""Killed at any point, a snapshot is whole or absent, and a restore is completed by the next open.

HOLDFAST_CRASHES says how many times; nothing that was acknowledged is ever lost, and neither is
what was there before a restore began.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import SyncClient
from holdfast.workspace import Workspace
from tests.integration.fork_server import Ended, ForkServer
from tests.workspace.crash_jobs import POINTS, digest
from tests.workspace.kit import left_behind, picture, put

pytestmark = pytest.mark.crash

CRASHES = int(os.environ.get("HOLDFAST_CRASHES", "60"))
AT_EACH_POINT = max(2, CRASHES // 30)
AT_RANDOM = max(10, CRASHES - AT_EACH_POINT * len(POINTS))
KILLS_OF_ONE = 10

WORK = "tests.workspace.crash_jobs:work_until_killed"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(
        "tests.workspace.crash_jobs", "holdfast.stores.sqlite.store", "concurrent.futures.thread"
    ) as server:
        yield server


class Survivor:
    """A workspace whose users are killed, and what they were told is kept of it."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._kept: dict[str, str] = {}
        self.root = home / "repo"
        self.root.mkdir(parents=True)

    def check(self, ended: Ended) -> None:
        """After a kill: the workspace is whole, and everything that was acknowledged is there."""
        assert ended.signal == signal.SIGKILL, ended.error
        self._kept |= {told[1]: told[2] for told in ended.told if told[0] == "kept"}
        with SyncClient.open(f"sqlite:///{self.home}/agent.db") as client:
            with Workspace(self.root, client) as workspace:
                now = digest(picture(self.root))
                assert not left_behind(self.root)
                self._check_state(workspace, now, ended.told)
                kept = {s.tree_id for s in workspace.snapshots()}
                assert self._kept.keys() <= kept
            assert client.verify().ok

    def _check_state(self, workspace: Workspace, now: str, told: list[list[str]]) -> None:
        if not told or told[-1][0] != "restoring":
            assert workspace.recovered is None
            return
        _, _, wanted, before = told[-1]
        if workspace.recovered is None:
            # It was not begun, or it was ended.
            assert now in (before, wanted)
        else:
            assert now == wanted
            workspace.restore(workspace.recovered.undo_tree or "")
            assert digest(picture(self.root)) == before
            return
        if now == wanted != before:
            # What was there before is still to be had.
            for snapshot in workspace.snapshots()[:4]:
                workspace.restore(snapshot)
                if digest(picture(self.root)) == before:
                    break
            else:
                raise AssertionError("what was there before the restore is lost")

    def check_all_again(self) -> None:
        """At the end: every tree that was acknowledged comes back."""
        with Workspace(self.root, f"sqlite:///{self.home}/agent.db") as workspace:
            for tree, wanted in list(self._kept.items())[:: max(1, len(self._kept) // 5)]:
                workspace.restore(tree)
                assert digest(picture(self.root)) == wanted


def survivors(directory: Path, kills: int) -> Iterator[Survivor]:
    survivor: Survivor | None = None
    for kill in range(kills):
        if survivor is None or kill % KILLS_OF_ONE == 0:
            if survivor is not None:
                survivor.check_all_again()
            survivor = Survivor(directory / str(kill))
        yield survivor
    assert survivor is not None
    survivor.check_all_again()


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_a_named_point_loses_nothing(
    point: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(point)

    for kill, survivor in enumerate(survivors(tmp_path, AT_EACH_POINT)):
        time = chance.randint(1, 12)
        survivor.check(server.killed(WORK, str(survivor.home), kill, point, time))


@pytest.mark.timeout(3600)
def test_a_kill_at_any_moment_loses_nothing(server: ForkServer, tmp_path: Path) -> None:
    chance = random.Random(7)

    for kill, survivor in enumerate(survivors(tmp_path, AT_RANDOM)):
        told = chance.randint(1, 30)
        spin = chance.randrange(400_000)
        survivor.check(server.killed(WORK, str(survivor.home), kill, told=told, spin=spin))


def two_versions(home: Path) -> None:
    """A workspace whose five files were "one" when they were snapshot, and are "two" now."""
    root = home / "repo"
    for number in range(5):
        put(root / f"d{number}" / "file", "one")
    with Workspace(root, f"sqlite:///{home}/agent.db") as workspace:
        workspace.snapshot()
    for number in range(5):
        put(root / f"d{number}" / "file", "two")


@pytest.mark.parametrize(
    ("point", "time"),
    [
        ("workspace:journal_written", 1),
        ("workspace:journaled", 1),
        ("workspace:taken_back", 1),
        ("workspace:taken_back", 3),
    ],
)
def test_a_restore_that_failed_and_was_killed_while_it_was_taken_back_leaves_no_mixture(
    point: str, time: int, server: ForkServer, tmp_path: Path
) -> None:
    two_versions(tmp_path)
    was = picture(tmp_path / "repo")

    ended = server.killed(
        "tests.workspace.crash_jobs:fail_half_way_and_be_killed", str(tmp_path), point, time
    )

    assert ended.signal == signal.SIGKILL, ended.error
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        texts = {file.read_text() for file in (tmp_path / "repo").rglob("file")}
        assert texts in ({"one"}, {"two"})
        assert workspace.recovered is not None
        assert not left_behind(tmp_path / "repo")
        workspace.restore(workspace.recovered.undo_tree or "")
        if texts == {"one"}:
            assert picture(tmp_path / "repo") == was


@pytest.mark.parametrize(
    ("point", "time"),
    [
        ("workspace:making", 1),
        ("workspace:staged", 1),
        ("workspace:moved", 1),
        ("workspace:moved", 2),
        ("workspace:swapped", 1),
        ("workspace:looked", 2),
    ],
)
def test_a_killed_restore_whose_completion_is_killed_too_leads_back_to_where_it_began(
    point: str, time: int, server: ForkServer, tmp_path: Path
) -> None:
    two_versions(tmp_path)
    jobs = "tests.workspace.crash_jobs"
    restoring = f"{jobs}:restore_and_be_killed"
    assert server.killed(restoring, str(tmp_path), "workspace:moved", 2).signal == signal.SIGKILL
    put(tmp_path / "repo" / "d4" / "file", "written between the two")

    ended = server.killed(f"{jobs}:open_and_be_killed", str(tmp_path), point, time)

    assert ended.signal == signal.SIGKILL, ended.error
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        assert {file.read_text() for file in (tmp_path / "repo").rglob("file")} == {"one"}
        assert workspace.recovered is not None
        assert not left_behind(tmp_path / "repo")
        workspace.restore(workspace.recovered.undo_tree or "")
    texts = [file.read_text() for file in sorted((tmp_path / "repo").rglob("file"))]
    assert texts == ["two"] * 4 + ["written between the two"]


def test_a_file_that_a_killed_restore_gave_its_mode_alone_gets_its_own_one_back(
    server: ForkServer, tmp_path: Path
) -> None:
    file = put(tmp_path / "repo" / "file", "the same", 0o644)
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        workspace.snapshot()
    file.chmod(0o700)
    os.utime(file, ns=(1_000_000_001, 1_000_000_001))
    was = picture(tmp_path / "repo")

    ended = server.killed(
        "tests.workspace.crash_jobs:restore_and_be_killed", str(tmp_path), "workspace:touching"
    )

    assert ended.signal == signal.SIGKILL, ended.error
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        assert workspace.recovered is not None
        workspace.restore(workspace.recovered.undo_tree or "")
        assert picture(tmp_path / "repo") == was


@pytest.mark.parametrize("time", [1, 3])
def test_a_file_that_a_killed_restore_had_half_made_is_not_in_the_way_back(
    time: int, server: ForkServer, tmp_path: Path
) -> None:
    two_versions(tmp_path)
    for file in (tmp_path / "repo").rglob("file"):
        file.unlink()
    was = picture(tmp_path / "repo")

    ended = server.killed(
        "tests.workspace.crash_jobs:restore_and_be_killed", str(tmp_path), "workspace:making", time
    )

    assert ended.signal == signal.SIGKILL, ended.error
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        assert {file.read_text() for file in (tmp_path / "repo").rglob("file")} == {"one"}
        assert workspace.recovered is not None
        assert workspace.recovered.late == ()
        assert not left_behind(tmp_path / "repo")
        workspace.restore(workspace.recovered.undo_tree or "")
        assert picture(tmp_path / "repo") == was


@pytest.mark.parametrize(
    "point", ["workspace:moved", "workspace:swapped", "workspace:looked", "workspace:amended"]
)
def test_what_was_edited_at_the_last_moment_of_a_killed_restore_is_in_the_way_back(
    point: str, server: ForkServer, tmp_path: Path
) -> None:
    two_versions(tmp_path)

    ended = server.killed(
        "tests.workspace.crash_jobs:edit_late_and_be_killed", str(tmp_path), point
    )

    assert ended.signal == signal.SIGKILL, ended.error
    with Workspace(tmp_path / "repo", f"sqlite:///{tmp_path}/agent.db") as workspace:
        assert {file.read_text() for file in (tmp_path / "repo").rglob("file")} == {"one"}
        assert workspace.recovered is not None
        assert workspace.recovered.undo_tree is not None
        assert not left_behind(tmp_path / "repo")
        undo = workspace.recovered.undo_tree
        assert workspace.read(undo, "d0/file") == workspace.read(undo, "d4/file") == b"two"
        assert workspace.read(undo, "d1/file") == b"written at the last moment"
        assert workspace.read(undo, "d2/file") == b"elsewhere"
