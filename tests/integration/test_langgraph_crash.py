"""Graphs that are killed with SIGKILL go on in a new process: what was kept is not done twice.

The children write down every run of a node, and every write of a task once it is acknowledged.
HOLDFAST_CRASHES says how many times they are killed.
"""

import os
import random
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import PERSISTENT, url_of
from tests.graphs import thread
from tests.integration.fork_server import ForkServer
from tests.integration.langgraph_jobs import ROUNDS, WORKERS

pytestmark = pytest.mark.crash

CRASHES = int(os.environ.get("HOLDFAST_CRASHES", "60"))
JOBS = "tests.integration.langgraph_jobs"
KILLS = max(4, CRASHES // 10)
"""Of each store and face, at random moments and again inside nodes."""

NODES = [
    name
    for number in range(1, ROUNDS + 1)
    for name in (
        f"plan {number}",
        *(f"work {number} {worker}" for worker in WORKERS),
        f"join {number}",
    )
]


def wanted() -> list[str]:
    """The state of a run that was never killed."""
    done = ["begin"]
    for name in NODES:
        done.append(f"{name} of {len(done)}" if name.startswith("join") else name)
    return done


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS, "holdfast.stores.file.store", "holdfast.stores.sqlite.store") as server:
        yield server


class Victim:
    """A thread that is killed again and again until it ends."""

    def __init__(self, server: ForkServer, url: str, directory: Path, face: str) -> None:
        self.server, self.url, self.face = server, url, face
        self.name = f"thread {len([*directory.iterdir()])}"
        self.journal = directory / f"{self.name}.txt"
        self.journal.touch()
        self.kills = 0

    def run(
        self,
        die_in: str | None = None,
        after: Sequence[str] = (),
        told: int | None = None,
        spin: int = 0,
    ) -> bool:
        """Let it run until it is killed, or ends; says whether it ended."""
        ended = self.server.killed(
            f"{JOBS}:work_until_killed",
            self.url,
            str(self.journal),
            self.name,
            self.face,
            die_in,
            after,
            told=told,
            spin=spin,
        )
        assert not ended.error, ended.error
        assert ended.signal in (0, signal.SIGKILL)
        self.kills += ended.signal == signal.SIGKILL
        return "ended" in ended.told

    def left(self) -> list[str]:
        """Nodes that did not run yet."""
        return [name for name in NODES if f"ran {name}" not in self.journal.read_text().split("\n")]

    def check(self) -> None:
        """All is as if it had never been killed, and nothing ran again once it was kept."""
        with HoldfastSaver.open(self.url) as saver:
            found = saver.get_tuple(thread(self.name))
            assert found is not None
            assert found.checkpoint["channel_values"]["done"] == wanted()
            assert saver.client.verify().ok
            steps = [f.metadata["step"] for f in saver.list(thread(self.name))]
            assert steps == [*range(len(steps) - 2, -2, -1)]
        kept: set[str] = set()
        for line in self.journal.read_text().splitlines():
            what, _, name = line.partition(" ")
            assert what == "kept" or name not in kept, f"{name} was kept, and ran again"
            if what == "kept":
                kept.add(name)
        assert kept
        assert not self.left()


def victims(server: ForkServer, store: str, face: str, directory: Path) -> Iterator[Victim]:
    """Threads to kill, until there were enough kills; each is checked when it has ended."""
    kills = 0
    (directory / "journals").mkdir()
    while kills < KILLS:
        victim = Victim(server, url_of(store, directory), directory / "journals", face)
        yield victim
        while not victim.run():
            pass
        victim.check()
        assert victim.kills
        kills += victim.kills


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("store", PERSISTENT)
def test_a_graph_killed_at_any_moment_goes_on_as_if_it_had_not_been(
    store: str, face: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(f"{store} {face}")

    for victim in victims(server, store, face, tmp_path):
        while victim.left():
            told = chance.randint(1, 8)
            if victim.run(told=told, spin=chance.randrange(60_000)):
                break


@pytest.mark.parametrize("face", ["sync", "async"])
@pytest.mark.parametrize("store", PERSISTENT)
def test_a_graph_killed_inside_its_nodes_goes_on_as_if_it_had_not_been(
    store: str, face: str, server: ForkServer, tmp_path: Path
) -> None:
    chance = random.Random(f"{store} {face}")

    for victim in victims(server, store, face, tmp_path):
        while left := victim.left():
            victim.run(die_in=chance.choice(left[:10]))


def test_tasks_that_had_finished_beside_the_killed_one_do_not_run_again(
    server: ForkServer, tmp_path: Path
) -> None:
    (tmp_path / "journals").mkdir()
    victim = Victim(server, url_of("sqlite", tmp_path), tmp_path / "journals", "sync")
    victim.run(die_in="work 2 c", after=[f"kept work 2 {worker}" for worker in "abd"])
    before = victim.journal.read_text().splitlines()

    assert victim.run()

    after = victim.journal.read_text().splitlines()[len(before) :]
    assert [line for line in after if line.startswith("ran work 2")] == ["ran work 2 c"]
    assert after[0] == "ran work 2 c"
    victim.check()
