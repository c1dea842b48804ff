"""Others may write to the same Redis server: what they wrote is read to its end, and named."""

import pytest

from holdfast import SyncClient
from holdfast.stores.redis.store import RedisStore
from tests.hostile.kit import Said, crashes, fill, judged
from tests.hostile.redis_values import VALUES
from tests.redis_servers import own_prefix, shared_server

pytestmark = pytest.mark.timeout(900)  # each case has limits of its own


@pytest.fixture(scope="module")
def said() -> dict[str, Said]:
    """What every verb says of each of the values."""
    url = shared_server().url
    cases = {}
    with shared_server().client() as server:
        for name, make in VALUES.items():
            prefix = own_prefix()
            with RedisStore(url, prefix=prefix) as store:
                client = SyncClient(store)
                fill(client, steps=1)
                client.save("brief", execution_state={}, ttl_seconds=0.0)
                client.save("tagged", execution_state={}, metadata={"x": 1})
                make(server, store._plans.keys)
            cases[name] = {"url": f"{url}?prefix={prefix}"}
    return judged(cases)


@pytest.mark.parametrize("name", VALUES)
def test_a_hostile_value_gives_an_answer_or_an_error(name: str, said: dict[str, Said]) -> None:
    problems = crashes({name: said[name]})

    assert not problems, problems


def test_records_that_are_gone_are_counted(said: dict[str, Said]) -> None:
    assert "its record is gone" in said["records that are gone"]["verify"]
