"""An agent in a real process is killed with SIGKILL, at every named point and at random.

Started again it finishes: what was recorded does not run again, what cannot be undone is done once,
and state and files are as if it had never been killed. HOLDFAST_CRASHES says how many times.
"""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.testing import crash_points
from tests.clients import FACES, PERSISTENT, url_of
from tests.integration.fork_server import Ended, ForkServer
from tests.session.kill_jobs import RESULT, World
from tests.session.kit import AGENT, SESSION

pytestmark = pytest.mark.crash

CRASHES = int(os.environ.get("HOLDFAST_CRASHES", "60"))
TIMES = range(1, 2 + CRASHES // 120)
AT_RANDOM = max(3, CRASHES // 20)
IN_FORKS = {"write a", "write b"}
WORK = "tests.session.kill_jobs:work"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(
        *("tests.session.kill_jobs", "holdfast.stores.file.store", "holdfast.stores.sqlite.store"),
        *("holdfast.session.run", "holdfast.session.async_run", "holdfast.workspace"),
    ) as server:
        yield server


class Agent:
    """An agent that may be killed, its store and its world."""

    def __init__(self, server: ForkServer, face: str, store: str, directory: Path) -> None:
        self.server = server
        self.face = face
        self.url = url_of(store, directory)
        self.world = World(str(directory / "world"))
        self._recorded: set[str] = set()
        self._seen = 0

    def start(self, *kill: Any, **how: Any) -> bool:
        """Start it; True if it was killed before it was done."""
        ended = self.server.killed(WORK, self.face, self.url, str(self.world.path), *kill, **how)
        assert ended.signal in (0, signal.SIGKILL)
        assert not ended.error, ended.error
        self._check(ended)
        return ended.signal == signal.SIGKILL

    def _check(self, ended: Ended) -> None:
        """What had been recorded before it was started did not run in it."""
        new = self.world.lines()[self._seen :]
        assert len(new) >= len(ended.told) - 1
        for line in new:
            what, _, key = line.partition("|")
            assert key not in self._recorded
            assert what not in self._recorded
        self._seen += len(new)
        self._recorded |= self._done()

    def _done(self) -> set[str]:
        """The calls whose outputs are recorded, in checkpoints and after the last one.

        By their ids, and by what they do; forks are made anew, and so are calls in them.
        """
        with SyncClient.open(self.url) as client:
            found = set()
            for session in client.sessions(AGENT):
                for step in client.replay(session.session_id, agent_id=AGENT):
                    done = [call for call in step.calls if call.status == "done"]
                    found |= {call.id for call in done}
                    found |= {f"{call.tool} {call.args[0]}" for call in done} - IN_FORKS
            return found

    def check_result(self) -> None:
        """It is done as if it had never been killed."""
        assert self.world.times("send mail") == 1
        assert self.world.times("book hotel") == 1
        assert self.world.times("book car") == 1
        assert self.world.times("cancel car") >= 1  # it has to bear being run twice
        assert self.world.times("cancel hotel") == 0
        assert (self.world.repo / "file").read_text() == "a"
        with SyncClient.open(self.url) as client:
            assert client.verify().ok
            latest = client.latest(AGENT, SESSION)
            assert latest is not None
            assert latest.execution_state == RESULT
            tasks = {task["id"]: task["status"] for task in latest.tasks}
            assert tasks == dict.fromkeys(
                ["look", "look/deeper", "book", "try", "send"], "completed"
            )
            with client.session(AGENT, session_id=SESSION) as run:
                assert run.unknown_effects() == []
                standing = [str(each) for each in run.effects if each.stands()]
                assert standing == ["book('hotel')", "send('mail')"]


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize("point", crash_points.RUN_POINTS)
@pytest.mark.parametrize("store", PERSISTENT)
def test_an_agent_killed_at_a_named_point_finishes(
    server: ForkServer, store: str, point: str, time: int, tmp_path: Path
) -> None:
    chance = random.Random(f"{store}{point}{time}")
    agent = Agent(server, chance.choice([*FACES]), store, tmp_path)

    was_killed = agent.start(point, time if time == 1 else chance.randint(1, 8))
    assert was_killed or time > 1
    assert not agent.start()
    agent.check_result()


@pytest.mark.parametrize("store", PERSISTENT)
@pytest.mark.parametrize("face", FACES)
def test_an_agent_killed_again_and_again_finishes(
    server: ForkServer, store: str, face: str, tmp_path: Path
) -> None:
    chance = random.Random(f"{store}{face}")
    for number in range(AT_RANDOM):
        (tmp_path / str(number)).mkdir()
        agent = Agent(server, face, store, tmp_path / str(number))
        killed = True
        for _ in range(chance.randint(1, 4)):
            told = chance.randint(0, 3)
            spin = chance.randrange(200_000 if told else 2_000_000)
            killed = killed and agent.start(told=told, spin=spin)
        while killed:
            killed = agent.start(chance.choice(crash_points.RUN_POINTS), chance.randint(3, 9))
        agent.check_result()


def test_an_agent_that_is_not_killed_passes_every_point(server: ForkServer, tmp_path: Path) -> None:
    agent = Agent(server, "sync", "sqlite", tmp_path)

    assert not agent.start()
    agent.check_result()
    assert len(agent.world.lines()) == 9
