"""Makes a store of some size, through the public client: no row is written in another way.

Many sessions are saved at once, as a fleet does. SQLite then commits together who waits, servers
answer side by side, and only the flush to disk is left out while loading. So what is there is what
real saves leave; the benchmark also has ``verify`` read all of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from benchmarks.scale.shape import (
    FORKED,
    FORKS,
    OPEN_OFFERS,
    PROBE,
    PROBER,
    QUIET,
    REVIEWER,
    Planned,
    Shape,
    States,
)
from holdfast import Client

_AT_ONCE = 64


def load(url: str, shape: Shape) -> None:
    """Fill an empty store."""
    asyncio.run(_load(url, shape))


def load_expiring(url: str, count: int, seconds: float) -> None:
    """Add checkpoints that expire soon, in a session for each hundred."""
    asyncio.run(_load_expiring(url, count, seconds))


async def _load(url: str, shape: Shape) -> None:
    sessions = shape.ordinary
    half = len(sessions) // 2
    async with Client.open(url) as client:
        loader = _Loader(client)
        for number in range(10):
            await client.publish(QUIET, number=number)
        long = asyncio.create_task(loader.session(shape.long))
        await loader.all(sessions[:half])
        await loader.session(shape.probe)
        await loader.forks()
        await loader.all(sessions[half:])
        await long
        await loader.offers()


async def _load_expiring(url: str, count: int, seconds: float) -> None:
    sessions = [Planned(n, "passing", f"passing-{n}", 100) for n in range(max(1, count // 100))]
    async with Client.open(url) as client:
        await _Loader(client, seconds).all(sessions)


class _Loader:
    def __init__(self, client: Client, ttl_seconds: float | None = None) -> None:
        self._client = client
        self._ttl = ttl_seconds
        self._states = States()

    async def all(self, sessions: Iterable[Planned]) -> None:
        """Save sessions, many at once."""
        left = iter(sessions)

        async def work() -> None:
            for session in left:
                await self.session(session)

        async with asyncio.TaskGroup() as group:
            for _ in range(_AT_ONCE):
                group.create_task(work())

    async def session(self, session: Planned) -> None:
        """Save a session, step by step; every other step is announced."""
        last = ""
        for step, state in enumerate(self._states.of(session)):
            last = await self._client.save(
                session.agent,
                execution_state=state,
                session_id=session.name,
                step_index=step,
                step_name=f"step {step % 7}",
                ttl_seconds=self._ttl,
                events=step % 2 == 0 and self._ttl is None,
                **session.tags(step),
            )
        if session.is_offered:
            await self._settle(last)

    async def _settle(self, checkpoint_id: str) -> None:
        offer = await self._client.handoff(checkpoint_id, REVIEWER)
        await self._client.accept(offer)
        await self._client.complete(offer)

    async def forks(self) -> None:
        """Fork the probe a few times, and go on from there."""
        kept = await self._client.timeline(PROBER, PROBE, limit=FORKS)
        for number, info in enumerate(kept):
            name = f"{PROBE}-fork-{number}"
            await self._client.fork(info.checkpoint_id, session_id=name)
            for step in range(FORKED - 1):
                state = {"fork": number, "step": step}
                await self._client.save(PROBER, execution_state=state, session_id=name)

    async def offers(self) -> None:
        """Leave some offers open."""
        (info,) = await self._client.timeline(PROBER, PROBE, limit=1)
        for _ in range(OPEN_OFFERS):
            await self._client.handoff(info.checkpoint_id, REVIEWER)
