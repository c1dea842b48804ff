"""Processes on one session, stopped, woken, killed and overtaken at random, with clocks that jump.

Nothing is sent twice, and nothing that was acknowledged is not resumed. HOLDFAST_CRASHES says how
many times.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import pytest

from holdfast import SyncClient
from tests.clients import FACES, url_of
from tests.integration.fork_server import PATH, ROOT
from tests.programs import library
from tests.session.chaos_jobs import STEPS, Ledger
from tests.session.kit import AGENT, SESSION

pytestmark = pytest.mark.crash

RUNS = max(5, int(os.environ.get("HOLDFAST_CRASHES", "60")) // 6)
_PATIENCE = 120.0
"""Seconds without any news after which a process counts as hanging."""


class Forker:
    """A process that forks workers, and whose clock can be set."""

    def __init__(self) -> None:
        faketime = library("*/faketime/libfaketime.so.1", package="faketime")
        clock = {
            "LD_PRELOAD": str(faketime),
            "FAKETIME": "+0",
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.session.chaos_jobs"],
            cwd=ROOT,
            env=os.environ | clock | {"PYTHONPATH": PATH},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate(timeout=60)

    def start(self, *job: Any) -> int:
        """Start a worker."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(job) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


@pytest.fixture(scope="module")
def forker() -> Iterator[Forker]:
    with Forker() as forker:
        yield forker


class Chaos:
    """One session, and processes that work on it."""

    def __init__(self, forker: Forker, url: str, ledger: Ledger, chance: random.Random) -> None:
        self.forker, self.url, self.ledger, self.chance = forker, url, ledger, chance
        self.running: set[int] = set()
        self.stopped: set[int] = set()
        self.stops = 0

    def start(self) -> None:
        face, seed = self.chance.choice([*FACES]), str(self.chance.random())
        self.running.add(self.forker.start(face, self.url, str(self.ledger.path), seed, True))

    def send(self, pid: int, number: signal.Signals) -> None:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            self.running.discard(pid)
            self.stopped.discard(pid)

    def act(self) -> None:
        """Do something to somebody."""
        self.reap()
        running, stopped = sorted(self.running), sorted(self.stopped)
        what = self.chance.choice(
            ["start", "start", "stop", "stop", "stop", "wake", "kill", "rest"]
        )
        if what == "start" and len(running) + len(stopped) < 4:
            self.start()
        elif what == "stop" and running:
            pid = self.chance.choice(running)
            self.send(pid, signal.SIGSTOP)
            self.running.discard(pid)
            self.stopped.add(pid)
            self.stops += 1
        elif what == "wake" and stopped:
            self.wake(self.chance.choice(stopped))
        elif what == "kill" and running + stopped and self.chance.random() < 0.3:
            self.send(self.chance.choice(running + stopped), signal.SIGKILL)
        time.sleep(self.chance.choice([0, 0.005, 0.02, 0.05]))

    def wake(self, pid: int) -> None:
        self.stopped.discard(pid)
        self.running.add(pid)
        self.send(pid, signal.SIGCONT)

    def reap(self) -> None:
        for pid in [*self.running, *self.stopped]:
            self.send(pid, _NOTHING)

    def finish(self) -> None:
        """Wake all, let them come to their end, and then have the work done."""
        for pid in sorted(self.stopped):
            self.wake(pid)
        told, since = 0, time.monotonic()
        while True:
            self.reap()
            lines = self.ledger.lines()
            if not self.running:
                if any(line["what"] == "finished" for line in lines):
                    return
                self.start()
            if len(lines) > told:
                told, since = len(lines), time.monotonic()
            assert time.monotonic() < since + _PATIENCE, f"{self.running} hang: {lines[-5:]}"
            time.sleep(0.01)

    def end(self) -> None:
        """Leave nobody behind."""
        for pid in [*self.running, *self.stopped]:
            self.send(pid, signal.SIGKILL)


_NOTHING: Any = 0


def check(client: SyncClient, ledger: Ledger) -> None:
    """Nothing was sent twice, and nothing that was acknowledged is missing."""
    lines = ledger.lines()
    assert [line for line in lines if line["what"] == "failed"] == []
    tries = Counter(line["key"] for line in lines if line["what"] == "try again")
    for tool in ("pay", "book"):
        done = [line for line in lines if line["what"] == tool]
        for key, times in Counter(line["key"] for line in done).items():
            assert times <= 1 + tries[key], [line for line in lines if line.get("key") == key]
        assert sorted({(line["step"], line["key"]) for line in done}) == sorted(
            {line["step"]: (line["step"], line["key"]) for line in done}.values()
        ), done
    receipts = {
        (line["what"], line["step"]): line["receipt"] for line in lines if "receipt" in line
    }
    paid, booked = ([receipts[tool, step] for step in range(STEPS)] for tool in ("pay", "book"))
    latest = client.latest(AGENT, SESSION)
    assert latest is not None
    assert latest.execution_state == {"step": STEPS, "paid": paid, "booked": booked}
    for line in lines:
        if line["what"] == "called":
            assert (line["paid"], line["booked"]) == (paid[line["step"]], booked[line["step"]])
    chain = [latest.checkpoint_id]
    chain += [info.checkpoint_id for info in client.ancestors(latest.checkpoint_id)]
    acknowledged = {line["id"] for line in lines if line["what"] in ("saved", "opened")}
    assert acknowledged <= set(chain)
    listed = [info.checkpoint_id for info in client.timeline(AGENT, SESSION, limit=1000)]
    assert listed == chain  # one line, in the order of writing: nobody else's write stands
    assert client.verify().ok


@pytest.mark.timeout(0)
@pytest.mark.parametrize("store", ["sqlite", "redis", "postgres", "file"])
def test_whatever_happens_to_processes_nothing_is_sent_twice_and_nothing_is_lost(
    forker: Forker, store: str, tmp_path: Path
) -> None:
    became: Counter[str] = Counter()
    for number in range(RUNS):
        directory = tmp_path / str(number)
        directory.mkdir()
        ledger = Ledger(directory / "ledger")
        chance = random.Random(f"{store}{number}")
        url = url_of(store, directory)
        with SyncClient.open(url) as client:
            chaos = Chaos(forker, url, ledger, chance)
            try:
                chaos.start()
                for _ in range(chance.randint(10, 40)):
                    chaos.act()
                chaos.finish()
            finally:
                chaos.end()
            check(client, ledger)
        became += Counter(line["what"] for line in ledger.lines())
        became["stopped"] += chaos.stops
    print(f"{store}: {RUNS} runs: {dict(became)}")
    assert became["lost"]  # else it was too tame to prove anything
