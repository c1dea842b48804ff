"""S1, S2 and S3: the cost of a save and of a restore, step by step."""

from __future__ import annotations

from functools import partial

from benchmarks.contenders import (
    CHECKPNT,
    DISKCACHE,
    HOLDFAST,
    HOLDFAST_APPEND,
    HOLDFAST_ASYNC,
    HOLDFAST_NORMAL,
    JSON,
    PICKLE,
    SAVER,
    SAVER_ASYNC,
    SAVER_NORMAL,
)
from benchmarks.measure import Results
from benchmarks.parts import course
from benchmarks.parts.course import Course
from benchmarks.settings import Settings
from benchmarks.workloads import conversation, states, typed

DURABLE = [
    HOLDFAST,
    HOLDFAST_NORMAL,
    HOLDFAST_ASYNC,
    SAVER,
    SAVER_NORMAL,
    SAVER_ASYNC,
    CHECKPNT,
]
# Apart, because an fsync also writes out what neighbours left in the page cache.
UNSYNCED = [PICKLE, JSON, DISKCACHE]
BYTES_KEPT = "bytes kept"


async def s1(settings: Settings, results: Results) -> None:
    steps = settings.pick(quick=100, full=400)
    plan = Course("S1", states.small, steps, {"save": range(11, steps + 1)})
    await course.run(plan, [DURABLE, UNSYNCED], settings, results)


async def s2(settings: Settings, results: Results) -> None:
    plan = Course(
        "S2",
        conversation.growing,
        steps=500,
        windows={
            "save at 10": range(6, 11),
            "save at 100": range(91, 101),
            "save at 500": range(481, 501),
        },
        resumes=settings.pick(quick=5, full=10),
        keep_bytes=BYTES_KEPT,
    )
    await course.run(plan, [[*DURABLE, HOLDFAST_APPEND], UNSYNCED], settings, results)


async def s2_long(settings: Settings, results: Results) -> None:
    saves = settings.pick(quick=10, full=20)
    start = 5_000 - saves
    plan = Course(
        "S2-long",
        partial(conversation.growing, start=start),
        steps=saves + 1,
        windows={"save at 5,000": range(start + 1, 5_001)},
    )
    await course.run(plan, [[HOLDFAST, HOLDFAST_APPEND, SAVER]], settings, results)


async def s2_typed(settings: Settings, results: Results) -> None:
    saves = settings.pick(quick=10, full=20)
    start = 500 - saves
    for kind, load in typed.KINDS.items():
        try:
            convert = load()
        except ImportError as error:
            results.note(f"S2-typed without {kind} messages: {error}")
            continue
        plan = Course(
            "S2-typed",
            partial(conversation.growing, start=start, convert=convert),
            steps=saves + 1,
            windows={f"save at 500, {kind}": range(start + 1, 501)},
        )
        await course.run(plan, [[HOLDFAST, HOLDFAST_APPEND, SAVER]], settings, results)


async def s3(settings: Settings, results: Results) -> None:
    plan = Course(
        "S3",
        states.large,
        steps=24,
        windows={"save": range(3, 25)},
        resumes=settings.pick(quick=2, full=5),
        keep_bytes=BYTES_KEPT,
    )
    await course.run(plan, [[HOLDFAST, SAVER, SAVER_ASYNC, CHECKPNT], UNSYNCED], settings, results)
