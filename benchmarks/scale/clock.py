"""What an operation costs: medians of CPU (of this process and of the server) and of wall time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.measure import quiet_collector

_LEAST, _MOST = 5, 30
_ENOUGH = 2.0
"""Seconds after which no more samples are taken than the least."""


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


def by_turns(timed: Mapping[int, Timed]) -> dict[int, Cost]:
    """Return what operations cost that are done in turn: a busy machine is so for all of them."""
    for each in timed.values():
        each.operation()  # to warm up
    samples: dict[int, list[Cost]] = {size: [] for size in timed}
    began, turns = time.perf_counter(), 0
    with quiet_collector():
        while turns < _LEAST or (turns < _MOST and time.perf_counter() - began < _ENOUGH):
            for size, each in timed.items():
                samples[size].append(each.once())
            turns += 1
    return {size: Cost.of(costs) for size, costs in samples.items()}
