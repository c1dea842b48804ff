"""An agent that is killed: it looks, books and cancels, tries two ways, and sends, in tasks.

What its tools do is written to a file, the world, which outlives every kill.
"""

import os
from pathlib import Path
from typing import Any

from holdfast.testing import crash_points
from tests.clients import FACES, end
from tests.integration.fork_server import tell
from tests.session.kit import AGENT, SESSION, plainly

RESULT = {
    "config": "read config",
    "look": ["write notes", "read notes"],
    "booked": "book hotel",
    "way": "write a",
    "sent": "send mail",
}
"""The state at the end, however often it was killed."""


class World:
    """What was done, one line each; never forgotten."""

    def __init__(self, path: str) -> None:
        self.path = Path(path)
        self.repo = self.path.with_name("repo")

    def lines(self) -> list[str]:
        """What was done so far."""
        return self.path.read_text().splitlines() if self.path.exists() else []

    def times(self, what: str) -> int:
        """How often something was done."""
        return sum(line.split("|")[0] == what for line in self.lines())

    def did(self, key: str) -> bool:
        """Whether the call of that idempotency key took place."""
        return any(line.split("|")[1] == key for line in self.lines())

    def _do(self, what: str, key: str) -> str:
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, f"{what}|{key}\n".encode())
        os.close(handle)
        tell(what)
        return what

    def read(self, what: str, idempotency_key: str) -> str:
        return self._do(f"read {what}", idempotency_key)

    def write(self, what: str, idempotency_key: str, repo: Path | None = None) -> str:
        """Changes a file half, does it, and then wholly."""
        for text in ("half", what):
            ((repo or self.repo) / "file").write_text(text)
            if text == "half":
                self._do(f"write {what}", idempotency_key)
        return f"write {what}"

    def book(self, what: str, idempotency_key: str) -> str:
        return self._do(f"book {what}", idempotency_key)

    def cancel(self, output: str, what: str) -> None:
        self._do(f"cancel {what}", "")

    def send(self, what: str, idempotency_key: str) -> str:
        return self._do(f"send {what}", idempotency_key)


def program(run: Any, world: World) -> None:
    """The agent; it decides by its state and by the world alone."""
    config = run.call(world.read, "config", effect="read")
    for task in run.tasks.plan("look", "book", "try", "send").remaining():
        with task:
            run.state["config"] = config
            globals()[f"_{task.name}"](run, world, task)


def _look(run: Any, world: World, task: Any) -> None:
    found = run.call(world.write, "notes")
    for part in task.plan("deeper").remaining():
        with part:
            run.state["look"] = [found, run.call(world.read, "notes", effect="read")]


def _book(run: Any, world: World, _: Any) -> None:
    assert (world.repo / "file").read_text() == "notes"  # as the recorded calls left it
    if not world.times("cancel car"):
        how = {"effect": "reversible", "compensate": world.cancel}
        run.state["booked"] = run.call(world.book, "car", **how)
        run.rollback(to="look: completed")
    how = {"effect": "reversible", "compensate": world.cancel}
    run.state["booked"] = run.call(world.book, "hotel", **how)


def _try(run: Any, world: World, _: Any) -> None:
    forks = run.fork(names=["a", "b"])
    for fork, name in zip(forks, "ab", strict=True):
        fork.state["way"] = fork.call(world.write, name, repo=Path(fork.workspace.path))
    run.adopt(forks[0])


def _send(run: Any, world: World, _: Any) -> None:
    run.state["sent"] = run.call(world.send, "mail", effect="irreversible")


def decide(run: Any, world: World) -> None:
    """What a user does about unknown ends: look, then say."""
    for effect in run.unknown_effects():
        if effect.kind in ("read", "local"):
            continue
        if world.did(effect.idempotency_key):
            effect.mark_done(f"{effect.tool} {effect.args[0]}")
        else:
            effect.retry()


def work(face: str, url: str, path: str, point: str = "", time: int = 1) -> None:
    """Run the agent; it is killed at that point, or from outside."""
    if point:
        crash_points.kill_at(point, time)
    world = World(path)
    opened = FACES[face].open(url)
    client = plainly(opened)
    world.repo.mkdir(exist_ok=True)
    with client.session(
        AGENT, session_id=SESSION, tools=[world.cancel], workspace=world.repo
    ) as run:
        decide(run, world)
        program(run, world)
    end(opened)
