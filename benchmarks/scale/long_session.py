"""A session that lives for weeks: ``python -m benchmarks.scale.long_session URL``.

It is made in this process, and looked at in another, which opens it as a program does that resumes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.scale.clock import Cost
from benchmarks.scale.memory import peak
from holdfast import SyncClient

_ROOT = Path(__file__).parents[2]
AGENT, SESSION = "builder", "weeks"
KINDS = ("calls", "checkpoints", "opens")
_CALLS_APART = 100
"""So many calls are made between two checkpoints, where calls are what is counted."""
_SAMPLES = 5


@dataclass(frozen=True)
class Opened:
    """What a session cost whoever went on with it: seconds, and bytes of memory."""

    opening: Cost
    call: Cost
    checkpoint: Cost
    rollback: Cost
    peak: int


def look(number: int) -> int:
    """Do what a tool would do."""
    return number


def make(url: str, kind: str, count: int) -> None:
    """Let a session have so many calls, checkpoints or earlier opens."""
    with SyncClient.open(url) as client:
        for _ in range(count if kind == "opens" else 0):
            with client.session(AGENT, SESSION):
                pass
        with client.session(AGENT, SESSION) as run:
            for number in range(count if kind == "calls" else 0):
                run.call(look, number)
                if number % _CALLS_APART == _CALLS_APART - 1:
                    run.checkpoint()
            for _ in range(count if kind == "checkpoints" else 0):
                run.checkpoint()
            run.checkpoint()


def measure(url: str) -> Opened:
    """Open it in another process, and go on."""
    command = [sys.executable, "-m", "benchmarks.scale.long_session", url]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"the session could not be opened: {done.stderr}")
    told = json.loads(done.stdout.splitlines()[-1])
    costs = {name: Cost(**cost) for name, cost in told.items() if name != "peak"}
    return Opened(**costs, peak=told["peak"])


def _sampled(operation: Callable[[], object], samples: int = _SAMPLES) -> Cost:
    return Cost.of([_once(operation) for _ in range(samples)])


def _once(operation: Callable[[], object]) -> Cost:
    cpu, wall = time.process_time(), time.perf_counter()
    operation()
    return Cost(time.process_time() - cpu, time.perf_counter() - wall)


def main(url: str) -> None:
    """Open the session, go on, and print what it cost as JSON."""
    with SyncClient.open(url) as client:
        client.stats()  # the store is open, and what it imports is imported
        with client.session(AGENT, "warm") as run:
            run.call(look, 0)
            run.checkpoint()
            run.checkpoint()
            run.rollback(steps=1)
        runs = []
        opening = _once(lambda: runs.append(client.session(AGENT, SESSION).__enter__()))
        taken = peak()
        (run,) = runs
        numbers = iter(range(10**9, 2 * 10**9))
        call = _sampled(lambda: run.call(look, next(numbers)))
        checkpoint = _sampled(run.checkpoint)
        rollback = _sampled(lambda: run.rollback(steps=1), samples=3)
        run.close()
    print(json.dumps(asdict(Opened(opening, call, checkpoint, rollback, taken))))


if __name__ == "__main__":
    main(*sys.argv[1:])
