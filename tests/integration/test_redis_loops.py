"""Forks and event loops: each has connections of its own to the Redis server, and leaves none."""

import asyncio
import gc
import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from holdfast import Client, SyncClient
from holdfast.errors import StoreClosedError
from holdfast.stores.redis.store import RedisStore
from holdfast.testing.samples import (
    keep,
    large_state,
    make_commit,
    state_of,
)
from tests.integration.redis_kit import PLACES
from tests.redis_servers import shared_server

pytest_plugins = ["tests.integration.redis_fixtures"]


@pytest.mark.parametrize("place", PLACES)
def test_a_child_that_was_forked_uses_connections_of_its_own(place: str, prefix: str) -> None:
    with RedisStore(PLACES[place]().url, prefix=prefix) as store:
        (before,) = keep(store, make_commit(large_state()))
        children = [in_child(lambda: use(store)) for _ in range(3)]
        use(store)

        assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
        assert store.stats().checkpoints == 1 + 4 * 10
        assert state_of(store.load(before.info.checkpoint_id)) == large_state()


def use(store: RedisStore) -> None:
    for step in range(10):
        (commit,) = keep(store, make_commit({"step": step, "pid": os.getpid()}))
        assert state_of(store.load(commit.info.checkpoint_id))["pid"] == os.getpid()


def in_child(work: Callable[[], Any]) -> int:
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        asyncio._set_running_loop(None)  # that of the parent is not its own
        work()
        status = 0
    finally:
        os._exit(status)


def test_a_fork_leaves_the_loop_of_the_parent_alone(prefix: str) -> None:
    async def main() -> int:
        async with Client(RedisStore(shared_server().url, prefix=prefix)) as client:
            await client.save("parent", execution_state={"step": 1})
            before = await connection_of(client)
            child = in_child(lambda: asyncio.run(in_loop_of_child(client)))
            for step in range(10):
                await client.save("parent", execution_state={"step": step})
            assert (await asyncio.to_thread(os.waitpid, child, 0))[1] == 0
            assert await connection_of(client) == before
            await client.save("parent", execution_state={"step": 2})
            return len(await client.find())

    async def in_loop_of_child(client: Client) -> None:
        gc.collect()
        await client.save("child", execution_state={"step": 1})

    assert asyncio.run(main()) == 13


def test_one_store_serves_loops_one_after_another_and_leaves_no_connection(prefix: str) -> None:
    store = RedisStore(shared_server().url, prefix=prefix)
    client = Client(store)

    async def work(step: int) -> None:
        states = ({"step": step, "n": n} for n in range(5))
        await asyncio.gather(*(client.save("agent", execution_state=state) for state in states))

    before = connections()
    for step in range(3):
        asyncio.run(work(step))

    assert connections() == before
    assert store._link._clients.take_all() == []
    assert store.stats().checkpoints == 15
    asyncio.run(client.close())
    with pytest.raises(StoreClosedError):
        store.stats()


def test_one_store_serves_several_loops_at_once(prefix: str) -> None:
    client = Client(RedisStore(shared_server().url, prefix=prefix))

    async def work(number: int) -> None:
        for step in range(10):
            await client.save("agent", execution_state={"step": step}, session_id=str(number))

    threads = [threading.Thread(target=lambda n=n: asyncio.run(work(n))) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    with SyncClient(RedisStore(shared_server().url, prefix=prefix)) as reader:
        assert sorted(session.checkpoints for session in reader.sessions()) == [10] * 4
    asyncio.run(client.close())


async def connection_of(client: Client) -> int:
    """What the server calls the connection of the running loop."""
    store = client.store
    assert isinstance(store, RedisStore)
    ((number,)) = await store._link._answer_async([("CLIENT", "ID")])
    return int(number)


def connections() -> int:
    with shared_server().client() as client:
        return len(client.client_list())


async def test_a_cancelled_save_leaves_the_store_in_order(prefix: str) -> None:
    async with Client(RedisStore(shared_server().url, prefix=prefix)) as client:
        await client.save("agent", execution_state={"step": 0}, session_id="s")
        for step in range(20):
            task = asyncio.create_task(
                client.save("agent", execution_state={"step": step}, session_id="s")
            )
            for _ in range(step % 5):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        saved = await client.save("agent", execution_state={"step": "last"}, session_id="s")

        assert (await client.restore(saved)).execution_state == {"step": "last"}
        assert (await client.verify()).ok
