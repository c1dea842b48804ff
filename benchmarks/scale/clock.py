"""What an operation costs: medians of CPU (of this process and of the server) and of wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.measure import quiet_collector


@dataclass(frozen=True)
class Effort:
    """How much work a run does."""

    least: int = 5
    most: int = 30
    """Samples of each question."""
    enough: float = 2.0
    """Seconds after which no more samples are taken than the least."""
    rest: float = 2.0
    """Seconds for which saves are watched that nothing goes on beside."""


QUICK = Effort(1, 1, 0.0, 0.1)


@dataclass(frozen=True)
class Cost:
    """Seconds."""

    cpu: float
    wall: float

    @classmethod
    def of(cls, samples: list[Cost]) -> Cost:
        """Return the medians."""
        cpu = statistics.median(each.cpu for each in samples)
        return cls(cpu, statistics.median(each.wall for each in samples))


@dataclass(frozen=True)
class Timed:
    """An operation, and how much CPU its server has used."""

    operation: Callable[[], object]
    server_cpu: Callable[[], float]

    def once(self) -> Cost:
        """Do it, and return what it cost."""
        cpu, wall = time.process_time() + self.server_cpu(), time.perf_counter()
        self.operation()
        took = time.perf_counter() - wall
        return Cost(time.process_time() + self.server_cpu() - cpu, took)


def by_turns(timed: Mapping[int, Timed], effort: Effort) -> dict[int, Cost]:
    """Return what operations cost that are done in turn: a busy machine is so for all of them."""
    for each in timed.values():
        each.operation()  # to warm up
    samples: dict[int, list[Cost]] = {size: [] for size in timed}
    began, turns = time.perf_counter(), 0
    with quiet_collector():
        while turns < effort.least or (
            turns < effort.most and time.perf_counter() - began < effort.enough
        ):
            for size, each in timed.items():
                samples[size].append(each.once())
            turns += 1
    return {size: Cost.of(costs) for size, costs in samples.items()}
