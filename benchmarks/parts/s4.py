"""S4: a store of many short sessions; its size and the cost of finding things in it."""

from __future__ import annotations

import random
from itertools import islice
from pathlib import Path

from benchmarks.contenders import HOLDFAST, HOLDFAST_NORMAL, SAVER, SAVER_UNSAFE, SYNC, Lister
from benchmarks.measure import BYTES, Field, Results, quiet_collector, scratch
from benchmarks.settings import Settings
from benchmarks.workloads.conversation import SHORT_MESSAGE, growing

CHECKPOINTS = 20
_ACTIVE = 50
"""Sessions that take their steps in turns while the store is filled."""
_LONG_SESSION = "long"
_LONG = 60
# Filling asks for no durability, which changes neither the bytes nor the reading.
_FILLED_BY = {HOLDFAST: HOLDFAST_NORMAL, SAVER: SAVER_UNSAFE}


async def run(settings: Settings, results: Results) -> None:
    sessions = settings.pick(quick=500, full=5_000)
    results.note(f"S4 was run on {sessions * CHECKPOINTS:,} checkpoints")
    with scratch(settings.directory) as home, quiet_collector():
        filled = Field("S4", [SYNC[name]() for name in _FILLED_BY.values()], results, home)
        await filled.open()
        await _fill(filled, sessions)
        await filled.close()
        readers = []
        for name, filler in _FILLED_BY.items():
            for contender in filled.standing:
                if contender.name == filler:
                    results.add("S4", "bytes kept", name, contender.bytes(), BYTES)
                    readers.append((SYNC[name](), contender.directory))
        await _read(readers, sessions, settings, results)


async def _fill(field: Field[Lister], sessions: int) -> None:
    for first in range(0, sessions, _ACTIVE):
        batch = [
            (_session(number), growing(seed=number, content=SHORT_MESSAGE))
            for number in range(first, min(first + _ACTIVE, sessions))
        ]
        for _ in range(CHECKPOINTS):
            for session, states in batch:
                step, state = next(states)
                await field.save(step, state, session)
    for step, state in islice(growing(content=SHORT_MESSAGE), _LONG):
        await field.save(step, state, _LONG_SESSION)


async def _read(
    readers: list[tuple[Lister, Path]], sessions: int, settings: Settings, results: Results
) -> None:
    choose = random.Random(4)
    total = sessions * CHECKPOINTS
    for contender, directory in readers:
        contender.open_now(directory)
    field = Field("S4", [contender for contender, _ in readers], results, Path())
    for _ in range(settings.pick(quick=50, full=300)):
        session = _session(choose.randrange(sessions))
        results.add_turn("S4", "latest of a session", await field.restore_newest(session))
    await _list(field, results, "timeline of 50", 50, settings.pick(10, 50), _LONG_SESSION)
    await _list(field, results, "recent 50", 50, settings.pick(3, 5))
    await _list(field, results, "recent 10,000", min(10_000, total), settings.pick(2, 3))
    await field.close()


async def _list(
    field: Field[Lister],
    results: Results,
    quantity: str,
    limit: int,
    times: int,
    session: str | None = None,
) -> None:
    async def listing(contender: Lister) -> None:
        found = contender.timeline(session, limit) if session else contender.recent(limit)
        if found != limit:
            raise LookupError(f"{quantity}: asked for {limit} checkpoints, got {found}")

    for _ in range(times):
        results.add_turn("S4", quantity, await field.turn(listing))


def _session(number: int) -> str:
    return f"session-{number:05d}"
