"""Stores on the Redis server and cluster of a test session, each with a prefix of its own."""

from collections.abc import Iterator

import pytest

from holdfast.stores.redis.store import RedisStore
from tests.integration.fork_server import ForkServer
from tests.integration.redis_kit import JOBS
from tests.redis_servers import own_prefix, shared_cluster, shared_server


@pytest.fixture
def prefix() -> str:
    return own_prefix()


@pytest.fixture
def store(prefix: str) -> Iterator[RedisStore]:
    with RedisStore(shared_server().url, prefix=prefix) as store:
        yield store


@pytest.fixture
def cluster_store(prefix: str) -> Iterator[RedisStore]:
    with RedisStore(shared_cluster().url, prefix=prefix) as store:
        yield store


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with ForkServer(JOBS) as forks:
        yield forks
