"""The newest record of a session with all it needs, asked for at once: as by query and load."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from holdfast import CheckpointIntegrityError, Client
from holdfast.stores.base import Query, Record, Store
from holdfast.stores.capabilities import FindsNewest
from holdfast.stores.urls import open_store
from holdfast.testing.samples import keep, large_state, make_commit, state_of
from tests.clients import SERVERS, url_of


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with open_store(url) as store:
        yield store


def newest_of(store: Store) -> Callable[[str, str], Record | None]:
    able = store.capability(FindsNewest)
    assert able is not None
    return able.newest


def test_it_is_what_query_and_load_give(store: Store) -> None:
    keep(store, make_commit(large_state(1), session_id="s"))
    (newest,) = keep(store, make_commit(large_state(2), session_id="s"))
    keep(store, make_commit(large_state(3), session_id="another"))

    found = newest_of(store)(newest.info.agent_id, "s")

    assert found is not None
    assert found == store.load(newest.info.checkpoint_id)
    assert state_of(found) == large_state(2)


@pytest.mark.parametrize("session", ["no such session", "\x00", "\ud800"])
def test_a_session_that_is_not_there_has_none(store: Store, session: str) -> None:
    (kept,) = keep(store, make_commit(session_id="s"))

    assert newest_of(store)(kept.info.agent_id, session) is None


def test_one_that_has_expired_is_passed_over(store: Store) -> None:
    (kept,) = keep(store, make_commit({"step": 1}, session_id="s"))
    hour_ago = datetime.now(UTC) - timedelta(hours=1)
    keep(store, make_commit(session_id="s", created_at=hour_ago, ttl_seconds=60))

    found = newest_of(store)(kept.info.agent_id, "s")

    assert found is not None
    assert found.info == kept.info


def test_one_whose_chunks_are_lost_is_named(store: Store) -> None:
    (kept,) = keep(store, make_commit(large_state(), session_id="s"))
    store.collect([], datetime.now(UTC) + timedelta(days=1), False)

    with pytest.raises(CheckpointIntegrityError, match=kept.info.checkpoint_id):
        newest_of(store)(kept.info.agent_id, "s")
    assert store.query(Query(session_id="s")) == [kept.info]


async def test_the_async_client_asks_so_too(url: str) -> None:
    async with Client.open(url) as client:
        assert await client.latest("coder", "s") is None
        saved = await client.save("coder", execution_state=large_state(), session_id="s")
        newest = await client.latest("coder", "s")

    assert newest is not None
    assert (newest.checkpoint_id, newest.execution_state) == (saved, large_state())
