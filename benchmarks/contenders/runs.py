"""Programs whose tool calls are journaled: a run of Holdfast, a workflow of DBOS."""

from __future__ import annotations

from abc import abstractmethod
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.contenders.base import Contender
from benchmarks.workloads.text import Writer

_OUTPUT = 1_000


def tool(text: str) -> str:
    """Does nothing, so that what is measured is the journal."""
    return text


class RunContender(Contender):
    """A program that calls a tool, and does tasks, so many times in a row."""

    async def open(self, directory: Path) -> None:
        self.directory = directory
        self.text = Writer(3).text(_OUTPUT)
        self.open_run()

    async def close(self) -> None:
        self.close_run()

    @abstractmethod
    def open_run(self) -> None: ...

    @abstractmethod
    def close_run(self) -> None: ...

    @abstractmethod
    def calls(self, number: int) -> list[float]:
        """Call a tool so many times; the seconds each call took."""

    @abstractmethod
    def checkpoints(self, number: int) -> list[float]:
        """Mark progress so many times; the seconds each mark took."""

    async def save(self, step: int, state: Any, session: str = "main") -> None:
        raise NotImplementedError("a program is run")

    async def restore_newest(self, session: str = "main") -> Any:
        raise NotImplementedError("a program is run")


class HoldfastRun(RunContender):
    """``run.call``, and ``with task:``, which makes two checkpoints."""

    requires = "holdfast"

    def __init__(self, name: str, durability: Any = "full") -> None:
        self.name = name
        self.durability = durability
        self._tasks = 0

    def open_run(self) -> None:
        client = import_module("holdfast").SyncClient
        self._client = client.sqlite(self.directory / "run.db", durability=self.durability)
        self._run = self._client.session("bench", session_id="main").__enter__()

    def close_run(self) -> None:
        self._run.close()
        self._client.close()

    def calls(self, number: int) -> list[float]:
        took = []
        for _ in range(number):
            start = perf_counter()
            self._run.call(tool, self.text)
            took.append(perf_counter() - start)
        self._run.checkpoint()
        return took

    def checkpoints(self, number: int) -> list[float]:
        took = []
        for _ in range(number // 2):
            self._tasks += 1
            task = self._run.tasks.plan(f"task {self._tasks}")[f"task {self._tasks}"]
            self._run.state["last"] = self.text
            start = perf_counter()
            with task:
                pass
            took.append((perf_counter() - start) / 2)
        return took


class DbosWorkflow(RunContender):
    """``@DBOS.step`` in a ``@DBOS.workflow``, on SQLite; a step is both its call and its mark."""

    requires = "dbos"
    durability = "full"

    def __init__(self, name: str) -> None:
        self.name = name

    def open_run(self) -> None:
        self._dbos = import_module("dbos").DBOS
        self._dbos(
            config={
                "name": "bench",
                "system_database_url": f"sqlite:///{self.directory / 'dbos.sqlite'}",
                "log_level": "ERROR",
                "run_admin_server": False,
            }
        )
        step = self._dbos.step()(tool)

        def workflow(number: int) -> list[float]:
            took = []
            for _ in range(number):
                start = perf_counter()
                step(self.text)
                took.append(perf_counter() - start)
            return took

        self._workflow = self._dbos.workflow()(workflow)
        self._dbos.launch()

    def close_run(self) -> None:
        self._dbos.destroy(destroy_registry=True)

    def calls(self, number: int) -> list[float]:
        return list(self._workflow(number))

    def checkpoints(self, number: int) -> list[float]:
        return list(self._workflow(number))
