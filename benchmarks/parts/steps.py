"""S1, S2 and S3: the cost of a save and of a restore, step by step."""

from __future__ import annotations

from functools import partial

from benchmarks.contenders import (
    CHECKPNT,
    CHECKPNT_REDIS,
    CHECKPNT_REDIS_ALWAYS,
    DISKCACHE,
    HOLDFAST,
    HOLDFAST_APPEND,
    HOLDFAST_ASYNC,
    HOLDFAST_NORMAL,
    HOLDFAST_POSTGRES,
    HOLDFAST_POSTGRES_ASYNC,
    HOLDFAST_REDIS,
    HOLDFAST_REDIS_ALWAYS,
    HOLDFAST_REDIS_ASYNC,
    JSON,
    PICKLE,
    SAVER,
    SAVER_ASYNC,
    SAVER_NORMAL,
    SAVER_POSTGRES,
    SAVER_REDIS,
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
REDIS = [HOLDFAST_REDIS, HOLDFAST_REDIS_ASYNC, SAVER_REDIS, CHECKPNT_REDIS]
REDIS_ALWAYS = [HOLDFAST_REDIS_ALWAYS, CHECKPNT_REDIS_ALWAYS]
POSTGRES = [HOLDFAST_POSTGRES, HOLDFAST_POSTGRES_ASYNC, SAVER_POSTGRES]
BYTES_KEPT = "bytes kept"


async def s1(settings: Settings, results: Results) -> None:
    steps = settings.pick(quick=100, full=400)
    plan = Course("S1", states.small, steps, {"save": range(11, steps + 1)})
    await course.run(plan, [DURABLE, UNSYNCED], settings, results)


async def s2(settings: Settings, results: Results) -> None:
    groups = [[*DURABLE, HOLDFAST_APPEND], UNSYNCED]
    await course.run(_conversation("S2", settings), groups, settings, results)


async def s2_redis(settings: Settings, results: Results) -> None:
    plan = _conversation("S2-redis", settings)
    await course.run(plan, [REDIS, REDIS_ALWAYS], settings, results)


async def s2_postgres(settings: Settings, results: Results) -> None:
    await course.run(_conversation("S2-postgres", settings), [POSTGRES], settings, results)


def _conversation(part: str, settings: Settings) -> Course:
    return Course(
        part,
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
    groups = [[HOLDFAST, SAVER, SAVER_ASYNC, CHECKPNT], UNSYNCED]
    await course.run(_large("S3", settings), groups, settings, results)


async def s3_redis(settings: Settings, results: Results) -> None:
    await course.run(_large("S3-redis", settings), [REDIS], settings, results)


async def s3_postgres(settings: Settings, results: Results) -> None:
    await course.run(_large("S3-postgres", settings), [POSTGRES], settings, results)


def _large(part: str, settings: Settings) -> Course:
    return Course(
        part,
        states.large,
        steps=24,
        windows={"save": range(3, 25)},
        resumes=settings.pick(quick=2, full=5),
        keep_bytes=BYTES_KEPT,
    )
