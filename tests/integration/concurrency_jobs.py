"""What the processes of test_concurrency do."""

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from holdfast import Client, SyncClient
from tests.integration.fork_server import tell

AGENT = "agent"


def state_at(name: str, step: int) -> dict[str, Any]:
    """The state of a saver at a step; neighbours share most of it."""
    return {
        "name": name,
        "step": step,
        "messages": [f"message {i} " + "of many words " * 10 for i in range(40 + step)],
    }


def save_chain(client: SyncClient, name: str, steps: int) -> None:
    """Save a session step by step, and tell of each."""
    for step in range(steps):
        saved = client.save(
            AGENT, execution_state=state_at(name, step), session_id=name, step_index=step
        )
        tell([saved, name, step])


async def save_chain_async(client: Client, name: str, steps: int) -> None:
    for step in range(steps):
        saved = await client.save(
            AGENT, execution_state=state_at(name, step), session_id=name, step_index=step
        )
        tell([saved, name, step])


def open_and_save(url: str, name: str, steps: int) -> None:
    with SyncClient.open(url) as client:
        save_chain(client, name, steps)


def save_in_threads(url: str, name: str, threads: int, steps: int) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(threads) as pool:
        names = [f"{name}-thread-{i}" for i in range(threads)]
        list(pool.map(lambda name: save_chain(client, name, steps), names))


def save_in_tasks(url: str, name: str, tasks: int, steps: int) -> None:
    async def main() -> None:
        async with Client.open(url) as client, asyncio.TaskGroup() as group:
            for i in range(tasks):
                group.create_task(save_chain_async(client, f"{name}-task-{i}", steps))

    asyncio.run(main())


def save_in_threads_and_tasks(url: str, name: str, threads: int, tasks: int, steps: int) -> None:
    in_threads = threading.Thread(target=save_in_threads, args=(url, name, threads, steps))
    in_threads.start()
    save_in_tasks(url, name, tasks, steps)
    in_threads.join()


def save_what_others_throw_away(url: str, name: str, steps: int, done: str) -> None:
    """Save new content that `throw_away` saves and removes too, and sessions that are pruned."""
    with SyncClient.open(url) as client:
        for step in range(steps):
            saved = client.save(
                AGENT, execution_state=common(step), session_id=name, step_index=step
            )
            tell([saved, name, step])
            for agent in ("pruned", "emptied"):
                client.save(agent, execution_state=common(step), session_id=name, step_index=step)
            forked = client.fork(saved, session_id=f"{name}-fork-{step}")
            tell([forked, f"{name}-fork-{step}", step])
    Path(done, name).touch()


def common(step: int) -> dict[str, Any]:
    """The same for all who save it, and new at each step."""
    return {"step": step, "parts": [f"{step} {i} " * 30 for i in range(60)]}


def throw_away(url: str, name: str, steps: int, done: str) -> None:
    """Save the same content as others do, and remove it at once."""
    with SyncClient.open(url) as client:
        for step in range(steps):
            client.expire(client.save("thrown away", execution_state=common(step)))
    Path(done, name).touch()


def tend(url: str, done: str, others: int) -> None:
    """Remove all that may be removed, over and over, until the others are done."""
    rounds = 0
    with SyncClient.open(url) as client:
        while rounds < 3 or len(os.listdir(done)) < others:
            client.gc(grace_seconds=0)
            client.prune(last=1, agent_id="pruned")
            client.prune(last=0, agent_id="emptied")
            rounds += 1
    tell(rounds)


def import_and_remove(url: str, bundle: str, done: str, times: int) -> None:
    """Bring a bundle in and remove what it brought, so that parts of it vanish while it comes."""
    with SyncClient.open(url) as client:
        for _ in range(times):
            client.import_(bundle)
            for info in client.find(agent_id="imported", limit=None)[::2]:
                client.expire(info.checkpoint_id)
    Path(done, "import").touch()


def use_after_fork(url: str, steps: int) -> None:
    """Save in a forked child and in its parent, through one client opened before."""
    with SyncClient.open(url) as client:
        save_chain(client, "before", steps)
        pid = os.fork()
        name = "parent" if pid else "child"
        save_chain(client, name, steps)
        assert len(client.timeline(AGENT, "before")) == steps
        if not pid:
            client.close()
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(client.timeline(AGENT, "child")) == steps


def use_async_after_fork(url: str, steps: int) -> None:
    """The same with an async client, which has threads of its own."""
    client = Client.open(url)
    asyncio.run(save_chain_async(client, "before", steps))
    pid = os.fork()
    asyncio.run(save_chain_async(client, "parent" if pid else "child", steps))
    asyncio.run(client.close())
    if not pid:
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0


def outlive_the_parent(url: str, steps: int) -> None:
    """Save in a forked child after its parent has closed the client and is gone."""
    client = SyncClient.open(url)
    save_chain(client, "parent", steps)
    reads, writes = os.pipe()
    if os.fork():
        os.read(reads, 1)
        client.close()
        return
    save_chain(client, "child", steps)
    parent = os.getppid()
    os.write(writes, b"go")
    while os.getppid() == parent:
        os.sched_yield()
    save_chain(client, "orphan", steps)
    with SyncClient.open(url) as another:
        save_chain(another, "anew", steps)


def fork_while_threads_save(url: str, forks: int) -> None:
    """Fork again and again while threads are in the middle of saves; every child saves as well."""
    stop = threading.Event()

    def save(number: int) -> None:
        step = 0
        while not stop.is_set():
            save_chain(client, f"thread-{number}-{step}", 2)
            step += 1

    with SyncClient.open(url) as client:
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
