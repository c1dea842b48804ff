"""The Redis store keeps the contract: on one server, on a cluster, and asked on an event loop."""

from collections.abc import Iterator

import pytest

from holdfast.stores.redis.store import RedisStore
from holdfast.testing import OpenStore, StoreContract
from tests.integration.async_face import AsyncFace, LoopThread
from tests.redis_servers import own_prefix, shared_cluster, shared_server


@pytest.fixture(scope="module")
def loop() -> Iterator[LoopThread]:
    loop = LoopThread()
    yield loop
    loop.close()


class TestRedisStore(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        prefix = own_prefix()
        return lambda: RedisStore(shared_server().url, prefix=prefix)


class TestRedisStoreOnACluster(StoreContract):
    @pytest.fixture
    def open_store(self) -> OpenStore:
        prefix = own_prefix()
        return lambda: RedisStore(shared_cluster().url, prefix=prefix)


class TestRedisStoreOnALoop(StoreContract):
    @pytest.fixture
    def open_store(self, loop: LoopThread) -> OpenStore:
        prefix = own_prefix()
        return lambda: AsyncFace(RedisStore(shared_server().url, prefix=prefix), loop)


class TestRedisStoreOnAClusterAndALoop(StoreContract):
    @pytest.fixture
    def open_store(self, loop: LoopThread) -> OpenStore:
        prefix = own_prefix()
        return lambda: AsyncFace(RedisStore(shared_cluster().url, prefix=prefix), loop)
