"""LG: a whole step of a LangGraph graph, as its user waits for it, on each saver."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.contenders import GRAPHS, POSTGRES_GRAPHS
from benchmarks.contenders.graphs import GraphContender
from benchmarks.measure import Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings

Graphs = Mapping[str, Callable[[], GraphContender]]

PART = "LG"
STEPS = 500
WINDOWS = {
    "step at 10": range(6, 11),
    "step at 100": range(91, 101),
    "step at 500": range(471, 501),
}
BYTES_KEPT = "bytes kept"


async def run(settings: Settings, results: Results) -> None:
    await _run(PART, GRAPHS, settings, results)


async def run_postgres(settings: Settings, results: Results) -> None:
    await _run(f"{PART}-postgres", POSTGRES_GRAPHS, settings, results)


async def _run(part: str, graphs: Graphs, settings: Settings, results: Results) -> None:
    for _ in range(settings.repeat):
        with scratch(settings.directory) as home, quiet_collector():
            contenders = (make() for make in graphs.values())
            field: Field[GraphContender] = Field(part, contenders, results, home)
            await field.open()
            for number in range(1, STEPS + 1):
                took = await field.turn(lambda contender: contender.step())
                for quantity, window in WINDOWS.items():
                    if number in window:
                        results.add_turn(part, quantity, took)
            await field.close()
            field.measure_bytes(BYTES_KEPT)
