"""Jobs that are killed at every moment that matters, and started again with the same lines.

A job is a module of ``tests.frameworks.jobs`` with ``async def main(url, session_id)``. What
happens in its world (a model is asked, a tool runs) it says by ``point``; what Holdfast writes says
so by itself, at its crash points. A run to the end tells all points; then each is killed once.
"""

import asyncio
import importlib
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
WORLD, KILL_AT, PLACE = "HOLDFAST_WORLD", "HOLDFAST_KILL_AT", "HOLDFAST_PLACE"
SESSION = "job-1"

_passed: Counter[str] = Counter()


def point(name: str) -> None:
    """Say what happens: ``model``, ``model answered``, ``tool depth``, ``tool depth done``.

    It is written to a file that outlives every kill, and the process may be killed right there.
    """
    world = os.environ.get(WORLD)
    if world is None:
        return
    handle = os.open(world, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(handle, f"{name}\n".encode())
    os.close(handle)
    _killed_at(name)


def workspace() -> Path | None:
    """Return the directory in which a job's tools write files, for jobs that have such tools."""
    place = os.environ.get(PLACE)
    return None if place is None else Path(place)


def _killed_at(name: str) -> None:
    _passed[name] += 1
    if os.environ.get(KILL_AT) == f"{name}#{_passed[name]}":
        os.kill(os.getpid(), signal.SIGKILL)


_SAVES = ("sqlite:begun", "sqlite:chunks_written", "sqlite:committed")
"""Of the crash points of a store: before a write, in its middle, and when it is acknowledged."""
_RUNS = ("run:before_tool", "run:after_tool", "run:after_end")
_UNRECORDED = ("run:before_tool", "run:after_tool", "sqlite:begun", "sqlite:chunks_written")
"""Moments at which what was done last may not be recorded yet."""


def _saving(name: str) -> None:
    if name in _SAVES or name in _RUNS:
        world = os.environ.get(WORLD)
        if world is not None:
            with open(world, "a", encoding="utf-8") as file:
                file.write(f"{name}\n")
        _killed_at(name)


@dataclass(frozen=True)
class Told:
    """What came of one start of a job."""

    returncode: int
    output: Any
    """What ``main`` returned; None if it was killed."""
    errors: str

    @property
    def was_killed(self) -> bool:
        return self.returncode == -signal.SIGKILL


class Job:
    """A job with a store, a world and a directory of its own."""

    def __init__(self, name: str, directory: Path) -> None:
        self.name = name
        self.directory = directory
        self.url = f"sqlite:///{directory / 'store.db'}"
        self.world = directory / "world"
        self.place = directory / "place"
        self.place.mkdir(parents=True, exist_ok=True)

    def start(self, kill_at: str | None = None) -> Told:
        """Start the job in a process of its own; by default to its end."""
        environment = {
            **os.environ,
            WORLD: str(self.world),
            PLACE: str(self.place),
            KILL_AT: kill_at or "",
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
            "HOLDFAST_URL": "",
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-m", "tests.frameworks.kit", self.name, self.url],
            env=environment,
            cwd=self.directory,
            capture_output=True,
            text=True,
            timeout=100,
        )
        last = done.stdout.rstrip().rpartition("\n")[2]
        output = json.loads(last) if done.returncode == 0 else None
        return Told(done.returncode, output, done.stderr)

    def happened(self) -> Counter[str]:
        """Return how often each thing happened in its world, over all its starts."""
        lines = self.world.read_text("utf-8").splitlines() if self.world.exists() else []
        return Counter(lines)

    def points(self) -> list[str]:
        """Return all points passed so far, each with its number, as ``start`` takes them."""
        seen: Counter[str] = Counter()
        numbered = []
        for line in self.world.read_text("utf-8").splitlines():
            seen[line] += 1
            numbered.append(f"{line}#{seen[line]}")
        return numbered


def whole_run(name: str, directory: Path) -> Job:
    """Return a job that ran to its end without a kill: what others are compared with."""
    job = Job(name, directory)
    told = job.start()
    assert told.returncode == 0, told.errors
    return job


def points_of(job: Job, *, saves: int = 12) -> list[str]:
    """Return where a job is to be killed: all of its world, and some of the moments of its saves.

    Of those at most ``saves``, spread evenly over the run.
    """
    every = job.points()
    of_saves = [each for each in every if each.partition("#")[0] in (*_SAVES, *_RUNS)]
    step = max(1, len(of_saves) // saves)
    return [each for each in every if each not in of_saves] + of_saves[::step]


def check_resumed(
    whole: Job, output: Any, killed: Job, kill_at: str, *, again: frozenset[str] = frozenset()
) -> None:
    """Start a killed job again, and compare all that happened with the run that was not killed.

    Whoever was killed while asking a model or in a tool has to ask or run again, that one only.
    ``again`` are things that a framework cannot but do again, as its page says.
    """
    first = killed.start(kill_at)
    assert first.was_killed, f"it was not killed at {kill_at}: {first.errors}"
    second = killed.start()
    assert second.returncode == 0, second.errors
    assert second.output == output
    name = kill_at.partition("#")[0]
    expected, found = _world(whole.happened()), _world(killed.happened())
    begun = name.removesuffix(" done").removesuffix(" answered")
    allowed = {name, f"{name} done", f"{name} answered", begun, *again}
    if name in _UNRECORDED:
        more = [each for each in found if found[each] > expected[each]]
        assert len([e for e in more if not e.endswith((" done", " answered"))]) <= 1, more
        allowed.update(more)
    for what in expected | found:
        times = found[what] - expected[what]
        assert times == 0 or (what in allowed and times == 1), f"{what}: {times:+} at {kill_at}"


def _world(happened: Counter[str]) -> Counter[str]:
    """Return what happened but for what Holdfast wrote, which may differ."""
    return Counter({k: n for k, n in happened.items() if not k.startswith(("sqlite:", "run:"))})


def main() -> None:
    """Carry out a job in this process: ``python -m tests.frameworks.kit NAME URL``."""
    from holdfast.testing import crash_points

    crash_points.install(_saving)
    name, url = sys.argv[1:]
    # ``python -m`` runs this file as __main__, and the job imports it by its own name.
    job = importlib.import_module(f"tests.frameworks.jobs.{name}")
    output = asyncio.run(job.main(url, SESSION))
    print(json.dumps(output), flush=True)


if __name__ == "__main__":
    from tests.frameworks import kit

    kit.main()
