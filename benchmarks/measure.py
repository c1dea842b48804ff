"""Taking turns and keeping what was measured."""

from __future__ import annotations

import atexit
import gc
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from benchmarks.contenders.base import MAIN, Contender, State

C = TypeVar("C", bound=Contender)

SECONDS = "s"
BYTES = "B"
PER_SECOND = "/s"
RATIO = "×"


@dataclass
class Figure:
    """All samples of one quantity for one contender."""

    unit: str
    samples: list[float] = field(default_factory=list)

    @property
    def value(self) -> float:
        return statistics.median(self.samples)


@dataclass
class Results:
    """Figures by part, quantity and contender, and what went wrong on the way."""

    figures: dict[tuple[str, str, str], Figure] = field(default_factory=dict)
    durability: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, part: str, quantity: str, contender: str, sample: float, unit: str) -> None:
        figure = self.figures.setdefault((part, quantity, contender), Figure(unit))
        figure.samples.append(sample)

    def add_turn(self, part: str, quantity: str, took: dict[str, float]) -> None:
        for contender, seconds in took.items():
            self.add(part, quantity, contender, seconds, SECONDS)

    def get(self, part: str, quantity: str, contender: str) -> Figure | None:
        return self.figures.get((part, quantity, contender))

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)


class Field(Generic[C]):
    """The contenders of one run: each does the same in turn, in an order shuffled every turn.

    One that is not installed never starts and one that raises is retired; both are noted.
    """

    def __init__(self, part: str, contenders: Iterable[C], results: Results, home: Path) -> None:
        self._part = part
        self._results = results
        self._home = home
        self._shuffle = random.Random(part)
        self.standing: list[C] = []
        for contender in contenders:
            if contender.missing():
                results.note(f"{contender.name}: `{contender.requires}` is not installed")
            else:
                results.durability[contender.name] = contender.durability
                self.standing.append(contender)

    async def open(self) -> None:
        async def open_one(contender: C) -> None:
            directory = self._home / contender.name.replace(" ", "-").replace(",", "")
            directory.mkdir(exist_ok=True)
            await contender.open(directory)

        await self.turn(open_one)

    async def close(self) -> None:
        await self.turn(lambda contender: contender.close())

    async def save(self, step: int, state: State, session: str = MAIN) -> dict[str, float]:
        return await self.turn(lambda contender: contender.save(step, state, session))

    async def restore_newest(self, session: str = MAIN) -> dict[str, float]:
        return await self.turn(lambda contender: contender.restore_newest(session))

    async def turn(self, operation: Callable[[C], Awaitable[Any]]) -> dict[str, float]:
        """Let every contender do `operation` once; the seconds each one took."""
        took = {}
        for contender in self._shuffle.sample(self.standing, len(self.standing)):
            start = time.perf_counter()
            try:
                await operation(contender)
            except Exception as error:
                self.standing.remove(contender)
                self._results.note(
                    f"{contender.name} retired from {self._part}: {type(error).__name__}: {error}"
                )
                continue
            took[contender.name] = time.perf_counter() - start
        return took

    def measure_bytes(self, quantity: str) -> None:
        for contender in self.standing:
            self._results.add(self._part, quantity, contender.name, contender.bytes(), BYTES)


@contextmanager
def quiet_collector() -> Iterator[None]:
    """No garbage collection inside, so that no contender pays for what another left."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


@contextmanager
def scratch(parent: Path | None, until_exit: bool = False) -> Iterator[Path]:
    """An empty directory that is gone afterwards, or when the program ends.

    The latter is for many files: ext4 passes over inodes that were deleted in the last minutes one
    by one, so whoever makes files next would take up to ten times as long.
    """
    directory = Path(tempfile.mkdtemp(prefix="bench-", dir=parent))
    if chattr := shutil.which("chattr"):  # what is made in it lies apart from what was deleted
        subprocess.run([chattr, "+T", directory], check=False, capture_output=True)
    if until_exit:
        atexit.register(shutil.rmtree, directory, ignore_errors=True)
    try:
        yield directory
    finally:
        if not until_exit:
            shutil.rmtree(directory, ignore_errors=True)
