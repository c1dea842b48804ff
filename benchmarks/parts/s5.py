"""S5: saves per second on one SQLite file from 64 tasks, 8 threads and 4 processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path

from benchmarks.contenders import (
    ALL,
    CHECKPNT,
    HOLDFAST,
    HOLDFAST_ASYNC,
    HOLDFAST_NORMAL,
    SAVER,
    SAVER_ASYNC,
    SAVER_NORMAL,
    SYNC,
    Contender,
    SyncContender,
)
from benchmarks.measure import PER_SECOND, C, Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings
from benchmarks.workers import Workers
from benchmarks.workloads.states import small

TASKS, THREADS, PROCESSES = 64, 8, 4


async def run(settings: Settings, results: Results) -> None:
    with scratch(settings.directory) as home, quiet_collector():
        await _tasks(settings, results, home / "tasks")
        await _threads(settings, results, home / "threads")
        await _processes(settings, results, home / "processes")


async def _tasks(settings: Settings, results: Results, home: Path) -> None:
    saves = settings.pick(quick=5, full=20)

    async def task(contender: Contender, number: int) -> None:
        for step, state in islice(small(seed=number), saves):
            await contender.save(step, state, f"task-{number}")

    async def burst(contender: Contender) -> None:
        await asyncio.gather(*(task(contender, number) for number in range(TASKS)))

    field = _field([ALL[name]() for name in (HOLDFAST_ASYNC, SAVER_ASYNC, CHECKPNT)], results, home)
    await field.open()
    await _bursts(field, f"{TASKS} tasks", TASKS * saves, burst, settings, results)
    await field.close()


async def _threads(settings: Settings, results: Results, home: Path) -> None:
    saves = settings.pick(quick=25, full=100)

    def thread(contender: SyncContender, number: int) -> None:
        for step, state in islice(small(seed=number), saves):
            contender.save_now(step, state, f"thread-{number}")

    with ThreadPoolExecutor(THREADS) as pool:

        async def burst(contender: SyncContender) -> None:
            list(pool.map(thread, [contender] * THREADS, range(THREADS)))

        names = (HOLDFAST, HOLDFAST_NORMAL, SAVER, SAVER_NORMAL)
        field = _field([SYNC[name]() for name in names], results, home)
        await field.open()
        await _bursts(field, f"{THREADS} threads", THREADS * saves, burst, settings, results)
        await field.close()


async def _processes(settings: Settings, results: Results, home: Path) -> None:
    saves = settings.pick(quick=50, full=200)
    names = (HOLDFAST, HOLDFAST_NORMAL, SAVER, SAVER_NORMAL)
    field = _field([SYNC[name]() for name in names], results, home)
    # The parent makes the tables and leaves; the workers then meet on an existing file.
    await field.open()
    await field.close()
    with Workers(PROCESSES) as workers:

        async def start(contender: SyncContender) -> None:
            workers.start(contender.name, contender.directory)

        async def burst(contender: SyncContender) -> None:
            workers.burst(contender.name, saves)

        await field.turn(start)
        quantity = f"{PROCESSES} processes"
        await _bursts(field, quantity, PROCESSES * saves, burst, settings, results)


def _field(contenders: Sequence[C], results: Results, home: Path) -> Field[C]:
    home.mkdir()
    return Field("S5", contenders, results, home)


async def _bursts(
    field: Field[C],
    quantity: str,
    saves: int,
    burst: Callable[[C], Awaitable[None]],
    settings: Settings,
    results: Results,
) -> None:
    await field.turn(burst)  # a first one to warm up
    for _ in range(settings.pick(quick=3, full=9)):
        for name, seconds in (await field.turn(burst)).items():
            results.add("S5", quantity, name, saves / seconds, PER_SECOND)
