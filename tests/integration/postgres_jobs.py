"""What the processes of test_postgres_processes do, each with clients of its own."""

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

from holdfast import Client, SyncClient
from holdfast.stores.postgres import PostgresStore
from holdfast.testing.crash_points import kill_at
from tests.integration.concurrency_jobs import AGENT, common, save_chain, save_chain_async
from tests.integration.fork_server import tell


def opened(dsn: str, schema: str) -> SyncClient:
    return SyncClient(PostgresStore(dsn, schema=schema, pool_size=4))


def open_and_save(dsn: str, schema: str, name: str, steps: int) -> None:
    with opened(dsn, schema) as client:
        save_chain(client, name, steps)


def save_in_threads(dsn: str, schema: str, name: str, threads: int, steps: int) -> None:
    """More threads than connections."""
    with opened(dsn, schema) as client, ThreadPoolExecutor(threads) as pool:
        names = [f"{name}-thread-{i}" for i in range(threads)]
        list(pool.map(lambda name: save_chain(client, name, steps), names))


def save_in_tasks(dsn: str, schema: str, name: str, tasks: int, steps: int) -> None:
    async def main() -> None:
        store = PostgresStore(dsn, schema=schema, pool_size=4)
        async with Client(store) as client, asyncio.TaskGroup() as group:
            for i in range(tasks):
                group.create_task(save_chain_async(client, f"{name}-task-{i}", steps))

    asyncio.run(main())


def save_what_others_throw_away(dsn: str, schema: str, name: str, steps: int) -> None:
    """Save new content that `throw_away` saves and removes too."""
    with opened(dsn, schema) as client:
        for step in range(steps):
            saved = client.save(
                AGENT, execution_state=common(step), session_id=name, step_index=step
            )
            tell([saved, name, step])
            forked = client.fork(saved, session_id=f"{name}-fork-{step}")
            tell([forked, f"{name}-fork-{step}", step])
        client.save("done", execution_state=None, session_id=name)


def throw_away(dsn: str, schema: str, name: str, steps: int) -> None:
    """Save the same content as others do, and remove it at once."""
    with opened(dsn, schema) as client:
        for step in range(steps):
            client.expire(client.save("thrown away", execution_state=common(step)))
        client.save("done", execution_state=None, session_id=name)


def tend(dsn: str, schema: str, others: int) -> None:
    """Collect all that may be collected, over and over, until the others are done."""
    rounds = 0
    with opened(dsn, schema) as client:
        while rounds < 3 or len(client.sessions("done")) < others:
            client.gc(grace_seconds=0)
            rounds += 1
    tell(rounds)


def use_after_fork(dsn: str, schema: str, steps: int) -> None:
    """Save in a forked child and in its parent at once, through one client opened before."""
    with opened(dsn, schema) as client:
        save_chain(client, "before", steps)
        pid = os.fork()
        save_chain(client, "parent" if pid else "child", steps)
        assert len(client.timeline(AGENT, "before")) == steps
        if not pid:
            client.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(client.timeline(AGENT, "child")) == steps


def use_async_after_fork(dsn: str, schema: str, steps: int) -> None:
    """The same with an async client, whose loop stays with the parent."""
    client = Client(PostgresStore(dsn, schema=schema))
    asyncio.run(save_chain_async(client, "before", steps))
    pid = os.fork()
    asyncio.run(save_chain_async(client, "parent" if pid else "child", steps))
    asyncio.run(client.close())
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def fork_while_threads_save(dsn: str, schema: str, forks: int) -> None:
    """Fork again and again while threads are in the middle of saves; every child saves as well."""
    stop = threading.Event()

    def save(number: int) -> None:
        step = 0
        while not stop.is_set():
            save_chain(client, f"thread-{number}-{step}", 2)
            step += 1

    with opened(dsn, schema) as client:
        save_chain(client, "first", 1)  # a fork while Python imports a module is beyond us
        threads = [threading.Thread(target=save, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for number in range(forks):
            pid = os.fork()
            if not pid:
                signal.alarm(30)  # a lock left locked would wait for ever
                save_chain(client, f"fork-{number}", 2)
                os._exit(0)
            tell(["status", number, os.waitpid(pid, 0)[1]])
        stop.set()
        for thread in threads:
            thread.join()


def save_until_killed(dsn: str, schema: str, point: str | None = None, time: int = 1) -> None:
    """One session that goes on where the one before was killed."""
    if point is not None:
        kill_at(point, time)
    with opened(dsn, schema) as client:
        head = client.latest(AGENT, "main")
        step = 0 if head is None else head.step_index + 1
        while True:
            state = {"step": step, "words": [f"{step} {i} " * 40 for i in range(30)]}
            saved = client.save(AGENT, execution_state=state, session_id="main", step_index=step)
            tell([saved, "main", step])
            step += 1
