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
from tests.workspace.kit import left_behind, picture

pytestmark = pytest.mark.crash

CRASHES = int(os.environ.get("HOLDFAST_CRASHES", "60"))
AT_EACH_POINT = max(2, CRASHES // 30)
AT_RANDOM = max(10, CRASHES - AT_EACH_POINT * len(POINTS))
KILLS_OF_ONE = 10

WORK = "tests.workspace.crash_jobs:work_until_killed"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(
        "tests.workspace.crash_jobs", "holdfast.stores.sqlite", "concurrent.futures.thread"
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
