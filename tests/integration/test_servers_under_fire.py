"""Redis and PostgreSQL under fire: clients and servers are killed at random while others save.

Some processes save through one client each to the end; others are killed with SIGKILL, at named
points of a commit and at any moment, as is one that collects garbage. Meanwhile the server is
killed, restarted, paused, and its connections are cut. All that was acknowledged is there and
whole afterwards, and nothing is half there. HOLDFAST_CRASHES says how many such events there are.
Each event that was lived through gives the test as much time again: its limit follows progress.
"""

import os
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from holdfast import StoreConnectionError, SyncClient
from holdfast.testing import crash_points
from holdfast.verbs import notes
from tests.clients import EVERYWHERE, SERVERS, url_of
from tests.integration.concurrency_jobs import AGENT as SAVER
from tests.integration.concurrency_jobs import state_at as saved_state
from tests.integration.crash_jobs import noted_at, state_at
from tests.integration.fire_jobs import COLLECTED, FAILED, NOTED, SAVED, Saver, log_of
from tests.integration.fork_server import ForkServer
from tests.redis_servers import RedisServer
from tests.servers import PostgresServer, shared_postgres
from tests.waiting import achieved

JOBS = "tests.integration.fire_jobs"
SURVIVORS = ("survivor 0", "survivor 1")
VICTIMS = ("victim 0", "victim 1")
EVENTS = max(24, int(os.environ.get("HOLDFAST_CRASHES", "60")) // len(SERVERS))
EVENTS_OF_ONE_STORE = 50
TIMEOUT = 2
LONG_TIMEOUT = 600
"""Of a client that sees a short silence through, however busy the machine is."""
PROCESSES = 10

Server = RedisServer | PostgresServer


@contextmanager
def redis_server() -> Iterator[RedisServer]:
    with RedisServer() as server:
        yield server


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    server = shared_postgres()
    try:
        yield server
    finally:
        server.recover()


START: dict[str, Callable[[], Any]] = {"redis": redis_server, "postgres": postgres_server}


def place_in(server: Server, name: str, timeout: int = TIMEOUT) -> str:
    """The URL of a store of that name."""
    if isinstance(server, RedisServer):
        return f"{server.url}?prefix={name}&timeout={timeout}"
    return f"{server.dsn}?schema={name}&timeout={timeout}&pool_size=2"


def cut_all(server: Server) -> None:
    """End every connection, whatever is under way on it."""
    if isinstance(server, RedisServer):
        with server.client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    else:
        server.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'holdfast'"
        )


class Faults:
    """What is done to a server while it is used."""

    def __init__(
        self, server: Server, client: SyncClient, patient: SyncClient, chance: random.Random
    ) -> None:
        self._server = server
        self._client = client
        self._patient = patient
        self._chance = chance

    def kill(self) -> None:
        """It is gone and comes back at once."""
        self._server.kill()
        self._server.start()

    def kill_for_a_while(self) -> None:
        """It comes back after somebody was told that it is gone."""
        self._server.kill()
        self._fail()
        self._server.start()

    def restart(self) -> None:
        self._server.restart()

    def stall(self) -> None:
        """It is silent for less time than a client waits, so that a save just takes longer."""
        self._server.pause()
        end = threading.Timer(self._chance.uniform(0.01, 0.3), self._server.resume)
        end.start()
        _save(self._patient)
        end.join()

    def fall_silent(self) -> None:
        """It is silent until somebody has given up."""
        self._server.pause()
        self._fail()
        self._server.resume()

    def cut(self) -> None:
        cut_all(self._server)

    def _fail(self) -> None:
        with pytest.raises(StoreConnectionError):
            _save(self._client)


def _save(client: SyncClient) -> None:
    client.save("trial", execution_state=state_at("trial", 3))


QUICK = (Faults.kill, Faults.restart, Faults.stall, Faults.cut)
SLOW = (Faults.kill_for_a_while, Faults.fall_silent)


@dataclass
class Told:
    """What savers were told by the store, and how often they failed."""

    saved: dict[str, tuple[str, int]] = field(default_factory=dict)
    noted: set[tuple[str, str]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)

    def add(self, agent: str, things: list[Any]) -> None:
        for kind, name, what in things:
            self.counts[kind] += 1
            if kind == SAVED:
                self.saved[name] = (agent, what)
            elif kind == NOTED:
                self.noted |= {(name, what), (log_of(agent), f"{what} {name}")}


class Siege:
    """One store of a server under fire, and what has to be in it afterwards."""

    def __init__(self, kind: str, server: Server, number: int, forks: list[ForkServer]) -> None:
        self.told = Told()
        self._points = crash_points.POINTS[kind]
        self._server = server
        name = f"under_fire_{number}"
        self._url = place_in(server, name)
        self._patient_url = place_in(server, name, LONG_TIMEOUT)
        self._forks = forks
        self._number = number
        self._chance = random.Random(f"{kind} {number}")

    def endure(self, events: int, over: Path) -> None:
        """Have clients and server killed so many times in all."""
        faults: list[Callable[[Faults], None]] = [*QUICK, self._chance.choice(SLOW)]
        faults += self._chance.choices(QUICK, k=events // 5)
        kills = events - len(faults)
        survivors, collector, *victims = self._forks
        with ThreadPoolExecutor() as pool, SyncClient.open(self._url) as client:
            living = pool.submit(
                survivors.at_once,
                *((f"{JOBS}:save_until_over", self._url, name, str(over)) for name in SURVIVORS),
            )
            dying: list[Future[None]] = [pool.submit(self._kill_collector, collector, kills // 8)]
            kills -= kills // 8
            for number, (name, fork) in enumerate(zip(VICTIMS, victims, strict=True)):
                share = kills // len(VICTIMS) + (number < kills % len(VICTIMS))
                dying.append(pool.submit(self._kill_savers, fork, name, share))
            try:
                self._fight(client, faults)
                for each in dying:
                    each.result()
            finally:
                over.touch()
            for name, told in zip(SURVIVORS, living.result(), strict=True):
                assert told
                self.told.add(name, told)

    def _fight(self, client: SyncClient, faults: list[Callable[[Faults], None]]) -> None:
        """The faults of the server, one after another, and a client that works on after each."""
        told: list[Any] = []
        saver = Saver(client, "fighter", told.append)
        self._chance.shuffle(faults)
        with SyncClient.open(self._patient_url) as patient:
            doing = Faults(self._server, client, patient, self._chance)
            for fault in faults:
                fault(doing)
                for _ in range(3):
                    saver.step()
                self._lived_through(fault.__name__)
        self.told.add("fighter", told)

    def _lived_through(self, event: str) -> None:
        self.told.counts[event] += 1
        achieved()

    def _kill_savers(self, fork: ForkServer, name: str, kills: int) -> None:
        chance = random.Random(f"{name} {self._number}")
        job = (f"{JOBS}:save_until_killed", self._url, name)
        for _ in range(kills):
            if chance.random() < 0.5:
                ended = fork.killed(*job, chance.choice(self._points), chance.randint(1, 9))
            else:
                told, spin = chance.randint(0, 9), chance.randrange(30_000)
                ended = fork.killed(*job, told=told, spin=spin if told else 20 * spin)
            assert ended.signal == signal.SIGKILL, ended.error
            self.told.add(name, ended.told)
            self._lived_through("client killed")

    def _kill_collector(self, fork: ForkServer, kills: int) -> None:
        chance = random.Random(f"collector {self._number}")
        for _ in range(kills):
            job = f"{JOBS}:collect_until_killed"
            ended = fork.killed(
                job, self._url, told=chance.randint(1, 4), spin=chance.randrange(300_000)
            )
            assert ended.signal == signal.SIGKILL, ended.error
            self.told.add("collector", ended.told)
            self._lived_through("client killed")

    def check(self) -> None:
        """All that was acknowledged is there; all that is there is whole."""
        with SyncClient.open(self._url) as client:
            client.gc(grace_seconds=0)
            verified = client.verify()
            assert verified.ok, verified.damaged
            self._check_checkpoints(client)
            self._check_notes(client)

    def _check_checkpoints(self, client: SyncClient) -> None:
        found = {info.checkpoint_id: info for info in client.find(limit=None)}
        there = {name: (info.agent_id, info.step_index) for name, info in found.items()}
        assert self.told.saved.items() <= there.items()
        savers = {*SURVIVORS, *VICTIMS, "fighter"}
        assert {agent for agent, _ in there.values()} <= savers | {"trial", "scratch"}
        for name, info in found.items():
            if info.agent_id in savers:
                state = client.restore(name).execution_state
                assert state == state_at(info.agent_id, info.step_index)
                before = found.get(info.parent_id or "")
                if before is None:
                    assert (info.step_index, info.parent_id) == (0, None)
                else:
                    assert before.step_index == info.step_index - 1
                    assert before.session_id == info.session_id
        # What is there without having been acknowledged was cut short by one of the events.
        mine = sum(agent in savers for agent, _ in there.values())
        cut_short = self.told.counts[FAILED] + self.told.counts["client killed"]
        assert mine - len(self.told.saved) <= cut_short

    def _check_notes(self, client: SyncClient) -> None:
        found = client.runtime.run(notes.read(client.runtime.engine, None))
        there = {(note.scope, note.key) for note, _ in found}
        assert len(there) == len(found)
        assert self.told.noted <= there
        agents = {info.checkpoint_id: info.agent_id for info in client.find(limit=None)}
        for note, value in found:
            assert value == noted_at(value["of"], value["step"])
            when = note.key.partition(" ")[0]
            pair = {(value["of"], when), (log_of(agents[value["of"]]), f"{when} {value['of']}")}
            assert pair <= there


@pytest.fixture(scope="module")
def forks() -> Iterator[list[ForkServer]]:
    """Each does one thing at a time: the survivors', the collector's and those of the victims."""
    modules = (JOBS, "holdfast.stores.postgres.store", "redis.cluster", "redis.sentinel")
    with ExitStack() as stack:
        yield [stack.enter_context(ForkServer(*modules)) for _ in range(2 + len(VICTIMS))]


@pytest.mark.crash
@pytest.mark.parametrize("kind", SERVERS)
def test_whatever_dies_all_that_was_acknowledged_is_there_and_clients_work_on(
    kind: str, forks: list[ForkServer], tmp_path: Path
) -> None:
    total: Counter[str] = Counter()
    with START[kind]() as server:
        for number in range(-(-EVENTS // EVENTS_OF_ONE_STORE)):
            siege = Siege(kind, server, number, forks)
            left = EVENTS - number * EVENTS_OF_ONE_STORE
            siege.endure(min(EVENTS_OF_ONE_STORE, left), tmp_path / f"over {number}")
            siege.check()
            total += siege.told.counts
    print(kind, dict(total))
    assert total[SAVED] > EVENTS
    assert total[COLLECTED]


@pytest.mark.parametrize("store", [store for store in EVERYWHERE if store != "memory"])
def test_ten_processes_save_at_once_and_nothing_is_lost(
    store: str, forks: list[ForkServer], tmp_path: Path
) -> None:
    url = url_of(store, tmp_path)
    job = "tests.integration.concurrency_jobs:open_and_save"

    told = forks[0].at_once(*((job, url, f"process-{i}", 12) for i in range(PROCESSES)))

    with SyncClient.open(url) as client:
        assert client.verify().ok
        for number, saved in enumerate(told):
            name = f"process-{number}"
            chain = client.timeline(SAVER, name, limit=None)
            ids = [checkpoint_id for checkpoint_id, _, _ in saved]
            assert len(ids) == 12
            assert [info.checkpoint_id for info in chain] == ids[::-1]
            assert [info.parent_id for info in chain] == [*ids[-2::-1], None]
            for checkpoint_id, _, step in saved:
                state = client.restore(checkpoint_id).execution_state
                assert state == saved_state(name, step)
