"""Save after every step, close, weigh, then restore and go on: what S1, S2 and S3 share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.contenders import ALL, Contender
from benchmarks.measure import Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings
from benchmarks.workloads.states import State, Steps

_WARM = "warm-up"


@dataclass(frozen=True)
class Course:
    part: str
    states: Callable[[], Steps]
    steps: int
    windows: Mapping[str, range]
    """For each quantity reported, the steps whose saves are its samples."""
    resumes: int = 0
    """How often to reopen, restore the newest checkpoint and save the next step."""
    keep_bytes: str = ""
    """The name to report the size under, if at all."""


async def run(
    course: Course, groups: Sequence[Sequence[str]], settings: Settings, results: Results
) -> None:
    """Run the course once for every group; only those within a group meet on the disk."""
    for _ in range(settings.repeat):
        for names in groups:
            contenders = [ALL[name]() for name in names]
            with scratch(settings.directory) as home, quiet_collector():
                await _run_once(course, contenders, results, home)


async def _run_once(
    course: Course, contenders: list[Contender], results: Results, home: Path
) -> None:
    field = Field(course.part, contenders, results, home)
    states = course.states()
    state: State = {}
    await field.open()
    await field.save(0, {"warm": True}, _WARM)
    for _ in range(course.steps):
        step, state = next(states)
        took = await field.save(step, state)
        for quantity, window in course.windows.items():
            if step in window:
                results.add_turn(course.part, quantity, took)
    await field.close()
    if course.keep_bytes:
        field.measure_bytes(course.keep_bytes)
    for _ in range(course.resumes):
        await field.open()
        await field.restore_newest(_WARM)
        took = await _restore(field, course.part, state, results)
        results.add_turn(course.part, "restore newest", took)
        step, state = next(states)
        took = await field.save(step, state)
        results.add_turn(course.part, "first save after a resume", took)
        await field.close()


async def _restore(
    field: Field[Contender], part: str, state: State, results: Results
) -> dict[str, float]:
    restored: dict[str, Any] = {}

    async def restore(contender: Contender) -> None:
        restored[contender.name] = await contender.restore_newest()

    took = await field.turn(restore)
    for name in took:
        if restored[name] != state:
            results.note(f"{name} did not restore in {part} what was saved")
    return took
