"""What the children do that the tests of the Redis store start, and kill."""

import asyncio
import os

from holdfast import Client, SyncClient
from holdfast.stores.redis.store import RedisStore
from holdfast.testing import crash_points
from tests.integration.crash_jobs import AGENT, state_at
from tests.integration.fork_server import tell


def save_until_killed(url: str, prefix: str, point: str | None = None, time: int = 1) -> None:
    """One session, goes on where the one before was killed; cleans up in between."""
    with SyncClient(RedisStore(url, prefix=prefix)) as client:
        head = client.latest(AGENT, "main")
        step = 0 if head is None else head.step_index + 1
        if point is not None:
            crash_points.kill_at(point, time)
        while True:
            saved = client.save(
                AGENT, execution_state=state_at("main", step), session_id="main", step_index=step
            )
            tell([saved, "main", step])
            if step % 5 == 4:
                client.expire(client.save("scratch", execution_state=state_at("scratch", step)))
                client.gc(grace_seconds=0)
            step += 1


def save_some(url: str, prefix: str, steps: int) -> None:
    """A session of its own, and things that are soon garbage."""
    session = f"of {os.getpid()}"
    with SyncClient(RedisStore(url, prefix=prefix)) as client:
        for step in range(steps):
            saved = client.save(
                AGENT, execution_state=state_at(session, step), session_id=session, step_index=step
            )
            tell([saved, session, step])
            client.expire(client.save("scratch", execution_state=state_at("scratch", step)))


def save_some_in_tasks(url: str, prefix: str, steps: int) -> None:
    """The same on an event loop, in eight tasks."""

    async def work(client: Client, session: str) -> None:
        for step in range(steps):
            saved = await client.save(
                AGENT, execution_state=state_at(session, step), session_id=session, step_index=step
            )
            tell([saved, session, step])

    async def main() -> None:
        async with Client(RedisStore(url, prefix=prefix)) as client:
            sessions = [f"of {os.getpid()} {n}" for n in range(8)]
            await asyncio.gather(*(work(client, session) for session in sessions))

    asyncio.run(main())


def collect_often(url: str, prefix: str, times: int) -> None:
    """Garbage collection that spares nothing for being new."""
    with SyncClient(RedisStore(url, prefix=prefix)) as client:
        for _ in range(times):
            client.gc(grace_seconds=0)


def open_until_killed(url: str, prefix: str, point: str, time: int) -> None:
    """Opens a store of an older format."""
    crash_points.kill_at(point, time)
    RedisStore(url, prefix=prefix).close()
