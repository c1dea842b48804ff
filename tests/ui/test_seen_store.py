"""Sessions that are remembered are those that the store has, whoever writes."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import SyncClient
from holdfast.stores import MemoryStore, Store, WrappedStore
from holdfast.stores.base import SessionInfo
from holdfast.ui import seen_store
from holdfast.ui.seen_store import SeenStore
from tests.clients import url_of

WRITES = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz")), max_size=12)


class Counted(WrappedStore):
    """Counts how often all sessions were read."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.count = 0

    def heads(self, agent_id: str | None = None, **asked: Any) -> list[SessionInfo]:
        self.count += 1
        return super().heads(agent_id, **asked)


@pytest.fixture
def client() -> SyncClient:
    return SyncClient(Counted(MemoryStore()))


@pytest.fixture
def reads(client: SyncClient) -> Callable[[], int]:
    store = client.store
    assert isinstance(store, Counted)
    return lambda: store.count


@given(st.lists(WRITES, max_size=5))
def test_what_was_saved_since_is_added_in_the_order_of_the_store(rounds) -> None:
    client = SyncClient(Counted(MemoryStore()))
    seen = SeenStore(client.store)

    for writes in rounds:
        for agent, session in writes:
            client.save(agent, execution_state={}, session_id=session)
        assert seen.heads() == client.store.heads()


@pytest.mark.parametrize("kind", ["memory", "sqlite", "file", "redis", "postgres"])
def test_sessions_are_as_another_process_left_them(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    with SyncClient.open(url) as client:
        beside = client if kind == "memory" else SyncClient.open(url)
        seen = SeenStore(client.store)
        for name in "abcab":
            beside.save("agent", execution_state={}, session_id=name)
            assert seen.heads() == client.store.heads()
            assert seen.heads("nobody") == []
        beside.close()


def test_all_sessions_are_not_read_again_for_a_save(client: SyncClient, reads) -> None:
    seen = SeenStore(client.store)
    for number in range(20):
        client.save("agent", execution_state={}, session_id=str(number % 3))
        assert len(seen.heads()) == min(number + 1, 3)

    assert reads() == 1


def test_more_than_a_page_of_saves_is_no_reason_to_miss_one(client: SyncClient) -> None:
    seen = SeenStore(client.store)
    seen.heads()
    for number in range(250):
        client.save("agent", execution_state={}, session_id=str(number))

    assert len(seen.heads()) == 250


def test_what_the_page_removes_is_gone_at_once(client: SyncClient) -> None:
    ids = [client.save("agent", execution_state={}, session_id=name) for name in "ab"]
    seen = SeenStore(client.store)
    assert len(seen.heads()) == 2

    SyncClient(seen).expire(ids[0])

    assert [each.session_id for each in seen.heads()] == ["b"]


def test_what_somebody_else_removes_among_the_newest_is_gone_at_once(client: SyncClient) -> None:
    ids = [client.save("agent", execution_state={}, session_id=name) for name in "ab"]
    seen = SeenStore(client.store)
    seen.heads()

    client.expire(ids[1])

    assert [each.session_id for each in seen.heads()] == ["a"]


def test_what_is_removed_while_something_else_is_added_is_gone_at_once(client: SyncClient) -> None:
    ids = [client.save("agent", execution_state={}, session_id=name) for name in "abc"]
    seen = SeenStore(client.store)
    seen.heads()

    client.save("agent", execution_state={}, session_id="new")
    client.expire(ids[0])

    assert [each.session_id for each in seen.heads()] == ["new", "c", "b"]


def test_a_quiet_store_is_read_whole_before_it_is_trusted_for_long(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [client.save("agent", execution_state={}, session_id=f"old-{n}") for n in range(150)]
    seen = SeenStore(client.store)
    seen.heads()
    client.save("agent", execution_state={}, session_id="new")
    client.store.delete(ids[:1])
    seen.heads()  # the newest alone are looked at

    monkeypatch.setattr(seen_store, "_SECONDS", 0.0)
    monkeypatch.setattr(seen_store, "_WORTH", 0.0)

    assert len(seen.heads()) == 150


def test_what_came_far_behind_is_seen_after_a_while(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = SeenStore(client.store)
    ids = [client.save("agent", execution_state={}, session_id="old") for _ in range(150)]
    seen.heads()

    client.store.delete(ids[:10])
    monkeypatch.setattr(seen_store, "_SECONDS", 0.0)
    monkeypatch.setattr(seen_store, "_WORTH", 0.0)

    assert [each.checkpoints for each in seen.heads()] == [140]


def test_a_session_that_has_expired_is_not_shown(client: SyncClient) -> None:
    client.save("agent", execution_state={}, session_id="brief", ttl_seconds=1)
    client.save("agent", execution_state={}, session_id="kept")
    seen = SeenStore(client.store)
    head = seen.heads()[1].head
    assert head.expires_at is not None

    seen._end = datetime.now(UTC)  # as if it had come to that
    seen.heads()

    assert seen._end == head.expires_at  # they were read anew
