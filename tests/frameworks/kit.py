"""Jobs that are killed at every moment that matters, and started again with the same lines.

A job is a module of ``tests.frameworks.jobs`` with ``async def main(url, session_id)``. What
happens in its world (a model is asked, a tool runs) it says by ``point``; what Holdfast writes says
so by itself, at its crash points. A run to the end tells all points; then each is killed once.
"""

import asyncio
import atexit
import importlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

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
_UNRECORDED = ("run:before_tool", "run:after_tool", *_SAVES)
"""Moments at which what was done last may not be recorded yet: files are written first."""


def saving(name: str) -> None:
    """Say what Holdfast writes, as ``point`` does what happens."""
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
            WORLD: str(self.world),
            PLACE: str(self.place),
            KILL_AT: kill_at or "",
            "HOLDFAST_URL": "",
        }
        said, errors = self.directory / "said", self.directory / "errors"
        code = Starter.of(self.name).start(environment, self.directory, self.url, said, errors)
        last = said.read_text("utf-8").rstrip().rpartition("\n")[2]
        output = json.loads(last) if code == 0 else None
        return Told(code, output, errors.read_text("utf-8", "replace"))

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


class Starter:
    """A process that has imported a job, and forks one for each start: frameworks import slowly."""

    def __init__(self, name: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-m", "tests.frameworks.kit", name],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        atexit.register(self._process.communicate)

    @classmethod
    @cache
    def of(cls, name: str) -> "Starter":
        """Return the one of a job."""
        return cls(name)

    def start(
        self, environment: Mapping[str, str], cwd: Path, url: str, said: Path, errors: Path
    ) -> int:
        """Start the job and wait for its end; returns its code, or which signal killed it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = [dict(environment), str(cwd), url, str(said), str(errors)]
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


def main() -> None:
    """Fork for each start that is asked for: ``python -m tests.frameworks.kit NAME``."""
    job = importlib.import_module(f"tests.frameworks.jobs.{sys.argv[1]}")
    started = [each.name for each in threading.enumerate()[1:]]
    assert not started, f"importing the job starts threads, which a fork has not: {started}"
    for line in sys.stdin:
        environment, cwd, url, said, errors = json.loads(line)
        child = os.fork()
        if not child:
            _carry_out(job, environment, cwd, url, said, errors)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _carry_out(
    job: Any, environment: dict[str, str], cwd: str, url: str, said: str, errors: str
) -> NoReturn:
    """Carry out a job in a fork, which ends with it."""
    from holdfast.testing import crash_points

    code = 1
    try:
        os.environ.update(environment)
        os.chdir(cwd)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        for path, handle in ((said, 1), (errors, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), handle)
        random.seed()
        crash_points.install(saving)
        print(json.dumps(asyncio.run(job.main(url, SESSION))), flush=True)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    from tests.frameworks import kit  # the job imports it by its own name

    kit.main()
