"""When the memory of a Redis server ends: nothing vanishes unnoticed, and what frees it works."""

import asyncio
import logging
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Client,
    HoldfastError,
    InvalidArgumentError,
    Keep,
    StoreConnectionError,
    StoreFullError,
    SyncClient,
)
from holdfast.stores.capabilities import concerns_of
from holdfast.stores.redis import eviction
from holdfast.stores.redis.store import RedisStore
from tests.redis_servers import RedisCluster, RedisServer, shared_server

pytest_plugins = ["tests.integration.redis_fixtures"]

LARGE = 200_000


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    """One whose settings these tests change."""
    with RedisServer("--appendonly", "no") as server:
        yield server


@pytest.fixture(scope="module")
def cluster() -> Iterator[RedisCluster]:
    with RedisCluster() as cluster:
        yield cluster


@pytest.mark.parametrize(
    "policy", ["allkeys-lru", "allkeys-random", "volatile-lru", "volatile-ttl"]
)
def test_a_server_that_evicts_is_refused_when_it_is_opened(
    policy: str, server: RedisServer
) -> None:
    with (
        server.configured(**{"maxmemory-policy": policy}),
        pytest.raises(StoreConnectionError, match=rf"{policy}.*noeviction.*allow_eviction=True"),
    ):
        SyncClient.redis(server.url)


def test_a_server_that_evicts_is_opened_where_that_is_said(
    server: RedisServer, prefix: str, caplog: pytest.LogCaptureFixture
) -> None:
    with server.configured(**{"maxmemory-policy": "allkeys-lru"}), caplog.at_level(logging.WARNING):
        with SyncClient.redis(server.url, prefix=prefix, allow_eviction=True) as client:
            saved = client.save("a", execution_state={"n": 1})
            assert "allkeys-lru" in concerns_of(client.store)[0]
        with SyncClient.open(f"{server.url}?prefix={prefix}&allow_eviction=true") as client:
            assert client.restore(saved).execution_state == {"n": 1}

    assert "drops checkpoints" in caplog.text


def test_one_node_of_a_cluster_that_evicts_is_enough_to_refuse_it(cluster: RedisCluster) -> None:
    with (
        cluster.nodes[2].configured(**{"maxmemory-policy": "allkeys-lfu"}),
        pytest.raises(StoreConnectionError, match="allkeys-lfu"),
    ):
        SyncClient.redis(cluster.url)


@pytest.mark.parametrize("option", ["maybe", ""])
def test_an_option_that_is_neither_yes_nor_no_is_refused(option: str) -> None:
    with pytest.raises(InvalidArgumentError, match="allow_eviction is true or false"):
        SyncClient.open(f"{shared_server().url}?allow_eviction={option}")


def limited_url(server: RedisServer, *rules: str) -> str:
    """The URL of a user who may not do everything."""
    name, password = f"user{secrets.token_hex(4)}", secrets.token_hex(8)
    with server.client() as client:
        rights = ("~*", "&*", "+@all", *rules)
        client.execute_command("ACL", "SETUSER", name, "on", f">{password}", *rights)
    return f"redis://{name}:{password}@127.0.0.1:{server.port}/0"


def test_where_settings_may_not_be_read_the_policy_is_found_elsewhere(server: RedisServer) -> None:
    url = limited_url(server, "-config")

    with (
        server.configured(**{"maxmemory-policy": "volatile-lfu"}),
        pytest.raises(StoreConnectionError, match="volatile-lfu"),
    ):
        SyncClient.redis(url)


def test_where_nothing_tells_the_policy_that_is_said(
    server: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = limited_url(server, "-config", "-info")

    with caplog.at_level(logging.WARNING), SyncClient.redis(url) as client:
        (concern,) = concerns_of(client.store)

    assert "does not say whether it evicts" in concern
    assert concern in caplog.text


@pytest.mark.parametrize(
    "gone", ["records", "ids", "all", "session", "everything but records", "all but one listing"]
)
def test_verify_names_each_checkpoint_that_is_listed_and_gone(gone: str, store: RedisStore) -> None:
    client = SyncClient(store)
    keys = store._plans.keys
    saved = [client.save("a", execution_state={"n": n}, session_id="s") for n in range(1200)]
    whole = client.save("a", execution_state={}, session_id="t")
    dropped = {
        "records": [keys.record(i) for i in saved],
        "ids": [keys.ids],
        "all": [keys.all],
        "session": [keys.session("a", "s")],
        "everything but records": [keys.ids, keys.all],
        "all but one listing": [
            *[keys.record(i) for i in saved],
            *[keys.ids, keys.all, keys.sessions, keys.session("a", "s")],
        ],
    }[gone]
    with shared_server().client() as server:
        server.delete(*dropped)
    again = client.save("a", execution_state={}, session_id="t")  # some listings begin anew

    found = client.verify()

    named = [each.checkpoint_id for each in found.damaged]
    assert {*saved} <= {*named}
    assert again not in named
    assert (whole in named) is (gone not in ("records", "session"))
    assert len(named) == len({*named})


def test_what_is_listed_and_gone_is_taken_off_the_lists_by_expire(store: RedisStore) -> None:
    client = SyncClient(store)
    saved = [client.save("a", execution_state={"n": n}, session_id="s") for n in range(3)]
    with shared_server().client() as server:
        server.delete(store._plans.keys.record(saved[1]))

    client.expire(saved[1])

    assert client.verify().ok
    assert client.stats().checkpoints == 2


def test_verify_names_notes_that_are_listed_and_gone(store: RedisStore) -> None:
    client = SyncClient(store)
    with client.session("a", session_id="s") as run:
        run.call(str, 1)
        head = run.checkpoint("one")
    noted = store.notes([client.ancestors(head)[0].checkpoint_id])[0]
    with shared_server().client() as server:
        server.delete(store._plans.keys.note(noted.scope, noted.key))

    found = client.verify()

    assert any(
        d.checkpoint_id == noted.scope and "listed and gone" in d.reason for d in found.damaged
    )


def test_verify_does_not_name_what_has_expired(store: RedisStore, prefix: str) -> None:
    client = SyncClient(store)
    over = client.save("a", execution_state={"n": 1}, ttl_seconds=0.0)
    with shared_server().client() as server:
        server.delete(store._plans.keys.record(over))  # as Redis does a day later

    assert client.verify().ok


def test_verify_does_not_name_what_is_saved_meanwhile(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = SyncClient(store)
    client.save("a", execution_state={"n": 0}, session_id="s")
    looking = eviction._lost_in

    def saving(*args: Any) -> Any:
        client.save("a", execution_state={"n": 1}, session_id="s")
        return (yield from looking(*args))

    monkeypatch.setattr(eviction, "_lost_in", saving)

    assert client.verify().ok


def test_the_async_client_counts_what_is_gone_as_well(store: RedisStore, prefix: str) -> None:
    client = SyncClient(store)
    saved = client.save("a", execution_state={"n": 1})
    with shared_server().client() as server:
        server.delete(store._plans.keys.record(saved))

    async def verify() -> list[str]:
        async with Client.redis(shared_server().url, prefix=prefix) as client:
            return [each.checkpoint_id for each in (await client.verify()).damaged]

    assert asyncio.run(verify()) == [saved]


def fill(client: SyncClient) -> list[str]:
    """Save until there is no memory left."""
    saved: list[str] = []

    def save_on() -> None:
        while len(saved) < 2000:
            state = {"n": len(saved), "data": secrets.token_bytes(LARGE)}
            saved.append(client.save("a", execution_state=state, session_id="s"))

    with pytest.raises(StoreFullError, match="run gc"):
        save_on()
    return saved


def leave_room(server: RedisServer, megabytes: int) -> None:
    with server.client() as client:
        used = int(client.info("memory")["used_memory"])
        client.config_set("maxmemory", used + megabytes * 2**20)


def set_free(server: RedisServer) -> None:
    with server.client() as client:
        client.config_set("maxmemory", 0)


@pytest.mark.parametrize("place", ["server", "cluster"])
def test_what_frees_memory_works_when_there_is_none(
    place: str, server: RedisServer, cluster: RedisCluster, prefix: str, tmp_path: Path
) -> None:
    url, nodes = {"server": (server.url, [server]), "cluster": (cluster.url, cluster.nodes)}[place]
    with SyncClient.redis(url, prefix=prefix) as client:
        over = client.save("a", execution_state={"over": 1}, session_id="t", ttl_seconds=0.0)
        for node in nodes:
            leave_room(node, 8)
        try:
            saved = fill(client)
            for node in nodes:
                with node.client() as plain:  # not a byte more than there is
                    plain.config_set("maxmemory", int(plain.info("memory")["used_memory"]) // 2)
            assert_all_that_reads_works(client, saved, tmp_path)

            assert client.expire(saved[0])
            removed = client.prune(Keep(last=1))
            collected = client.gc(grace_seconds=0)

            assert len(removed) == len(saved) - 2
            assert collected.bytes > (len(saved) - 2) * LARGE
            with pytest.raises(HoldfastError):
                client.restore(over)
            for node in nodes:
                leave_room(node, 4)
            client.save("a", execution_state={"data": secrets.token_bytes(LARGE)}, session_id="s")
            assert client.verify().ok
        finally:
            for node in nodes:
                set_free(node)


def assert_all_that_reads_works(client: SyncClient, saved: list[str], directory: Path) -> None:
    assert client.restore(saved[0]).execution_state["n"] == 0
    assert client.latest("a", "s") is not None
    assert len(client.timeline("a", "s", limit=None)) == len(saved)
    assert client.stats().checkpoints == len(saved)
    assert len(client.tree("a", "s")) == len(saved)
    assert client.verify().ok
    assert client.gc(dry_run=True).chunks == 0
    assert client.export(directory / "all.bundle").checkpoints == len(saved)


def test_many_chunks_of_one_moment_are_listed_in_pages(store: RedisStore) -> None:
    client = SyncClient(store)
    keys = store._plans.keys
    with shared_server().client() as server:
        names = [secrets.token_bytes(20) for _ in range(12_345)]
        for start in range(0, len(names), 1000):
            some = names[start : start + 1000]
            server.zadd(keys.chunks, dict.fromkeys(some, 1000000 + (start > 7000)))
            server.mset({keys.chunk(name): (1_000_000).to_bytes(8, "big") + b"x" for name in some})

    assert client.stats().chunks == len(names)
    assert client.gc(grace_seconds=0).chunks == len(names)
    assert client.stats().chunks == 0
