"""run: what a journaled tool call and a task checkpoint cost, against steps of DBOS."""

from __future__ import annotations

from benchmarks.contenders import RUNS
from benchmarks.contenders.runs import RunContender
from benchmarks.measure import SECONDS, Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings

PART = "run"
CALL, CHECKPOINT = "call", "task checkpoint"
TURNS = 20
IN_A_ROW = 10
BYTES_KEPT = "bytes kept"


async def run(settings: Settings, results: Results) -> None:
    for _ in range(settings.repeat):
        with scratch(settings.directory) as home, quiet_collector():
            contenders = (make() for make in RUNS.values())
            field: Field[RunContender] = Field(PART, contenders, results, home)
            await field.open()
            for _ in range(settings.pick(TURNS // 4, TURNS)):
                await field.turn(lambda contender: _measure(contender, results))
            await field.close()
            field.measure_bytes(BYTES_KEPT)


async def _measure(contender: RunContender, results: Results) -> None:
    for seconds in contender.calls(IN_A_ROW):
        results.add(PART, CALL, contender.name, seconds, SECONDS)
    for seconds in contender.checkpoints(IN_A_ROW):
        results.add(PART, CHECKPOINT, contender.name, seconds, SECONDS)
