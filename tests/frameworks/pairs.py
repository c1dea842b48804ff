"""Journeys between frameworks: their interpreters, processes and stores."""

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any, Self

from tests.frameworks import kit

IN_B = ("crewai",)
"""Those that cannot be installed beside the others, so that they have an environment of theirs."""
SESSION = str(uuid.UUID(int=0xA1))
"""Some frameworks want ids of sessions to be UUIDs."""


def interpreter(framework: str) -> str:
    """Return the Python that has a framework."""
    name = "HOLDFAST_PYTHON_B" if framework in IN_B else "HOLDFAST_PYTHON_A"
    return os.environ.get(name) or sys.executable


def _environment(**more: str) -> dict[str, str]:
    path = os.pathsep.join([str(kit.ROOT / "src"), str(kit.ROOT)])
    return {**os.environ, "PYTHONPATH": path, "HOLDFAST_URL": "", **more}


class Worker:
    """A process with one framework, that goes on with sessions."""

    def __init__(self, framework: str, directory: Path, **environment: str) -> None:
        self.framework = framework
        self.errors = directory / f"{framework}.errors"
        with self.errors.open("w") as errors:
            self.process = subprocess.Popen(
                [
                    interpreter(framework),
                    "-W",
                    "ignore",
                    "-m",
                    "tests.frameworks.pair_worker",
                    framework,
                ],
                env=_environment(**environment),
                cwd=directory,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                encoding="utf-8",
            )

    def ask(self, *line: Any) -> str | None:
        """Have a leg carried out; returns what went wrong, or None."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(line) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            self.process.wait()
            return f"the process of {self.framework} ended: {self.errors.read_text()[-2000:]}"
        problem: str | None = json.loads(answer)
        return problem

    def close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()


class Workers:
    """Processes by their framework, started when they are first asked for."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.started: dict[str, Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        for worker in self.started.values():
            worker.close()

    def go_on(self, framework: str, url: str, session_id: str, prompt: str, reply: str) -> None:
        """Go on with a session in its framework."""
        if framework not in self.started:
            self.started[framework] = Worker(framework, self.directory)
        problem = self.started[framework].ask("go_on", url, session_id, prompt, reply)
        assert problem is None, problem


def begun(framework: str, directory: Path) -> Path:
    """Return the store of a conversation that was begun in a framework and killed."""
    directory.mkdir()
    store = directory / "store"
    store.mkdir()
    worker = Worker(
        framework,
        directory,
        **{kit.WORLD: str(directory / "world"), kit.KILL_AT: "model#2"},
    )
    problem = worker.ask("begin", f"sqlite:///{store / 'store.db'}", SESSION)
    worker.close()
    assert worker.process.returncode == -signal.SIGKILL, problem or "it was not killed"
    return store


def copied(store: Path, directory: Path) -> str:
    """Return the URL of a copy of a store."""
    shutil.copytree(store, directory / "copy")
    return f"sqlite:///{directory / 'copy' / 'store.db'}"
