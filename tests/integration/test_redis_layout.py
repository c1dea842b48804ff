"""What only the Redis store has: the order and the place of its keys, and native expiry."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from holdfast import SyncClient
from holdfast.errors import CheckpointIntegrityError
from holdfast.stores.base import Query
from holdfast.stores.redis.store import RedisStore
from holdfast.testing.commits import is_absent
from holdfast.testing.samples import (
    expired,
    ids,
    keep,
    keep_notes,
    large_state,
    make_commit,
    make_note,
    state_of,
)
from tests.integration.redis_kit import LATER, PLACES, now
from tests.redis_servers import RedisServer, shared_cluster, shared_server

pytest_plugins = ["tests.integration.redis_fixtures"]


def keys_of(server: RedisServer, prefix: str) -> set[str]:
    with server.client() as client:
        found = [key.decode() for key in client.scan_iter(count=10_000)]
    return {key for key in found if prefix in key}


@pytest.mark.parametrize("forwards", [True, False])
def test_records_one_microsecond_apart_are_in_order(store: RedisStore, forwards: bool) -> None:
    start = datetime(2026, 11, 16, 12, tzinfo=UTC)
    times = [start + timedelta(microseconds=n) for n in range(50)]
    commits = [make_commit(created_at=time) for time in times]
    # As an import brings them, whose place is that of their time.
    brought = [replace(commit, behind=()) for commit in commits]
    keep(store, *(brought if forwards else reversed(brought)))

    newest_first = ids(reversed(commits))
    assert ids(store.query(Query())) == newest_first
    assert ids(store.query(Query(limit=3))) == newest_first[:3]
    assert ids(store.query(Query(session_id="session", agent_id="agent", limit=1))) == ids(
        commits[-1:]
    )
    assert ids(store.query(Query(since=times[10], until=times[12]))) == newest_first[-12:-10]
    assert store.heads()[0].head == commits[-1].info


def test_times_far_away_are_in_order(store: RedisStore) -> None:
    times = [datetime(year, 1, 1, 0, 0, 0, 1, tzinfo=UTC) for year in (1, 1969, 1970, 2300, 9999)]
    commits = keep(store, *(make_commit(created_at=time) for time in times))

    assert ids(store.query(Query())) == ids(reversed(commits))


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_left_when_everything_was_removed(place: str, prefix: str) -> None:
    with RedisStore(PLACES[place]().url, prefix=prefix) as store:
        (first,) = keep(store, make_commit(large_state(), handoff_target="a", ttl_seconds=9))
        (second,) = keep(store, make_commit(parent_id=first.info.checkpoint_id, **expired()))
        keep_notes(store, make_note(first.info.checkpoint_id), make_note("/x", expires_at=now()))

        assert store.sweep(now()) == 1
        assert store.delete(ids([first, second])) == 1
        store.collect([], now() + LATER, False)

    servers = PLACES[place]().nodes if place == "redis+cluster" else [shared_server()]
    left = set().union(*(keys_of(server, prefix) for server in servers))
    assert left == {f"{{{prefix}}}:{name}" for name in ("format", "totals", "last", "wake")}


def test_chunks_lie_on_all_nodes_and_everything_else_on_one(cluster_store: RedisStore) -> None:
    keep(cluster_store, make_commit([f"{n} " * 500 for n in range(400)], handoff_target="t"))
    keep_notes(cluster_store, make_note("/log"))
    prefix = cluster_store._plans.keys.prefix

    found = [keys_of(node, prefix) for node in shared_cluster().nodes]

    assert all(any(key.startswith(f"{prefix}:c:") for key in keys) for keys in found)
    assert sum(any(key.startswith("{") for key in keys) for keys in found) == 1


def test_two_prefixes_are_two_stores(store: RedisStore) -> None:
    with RedisStore(shared_server().url, prefix=f"{store._plans.keys.prefix}:c") as other:
        (mine,) = keep(store, make_commit(large_state()))
        (theirs,) = keep(other, make_commit(large_state()))

        store.delete(ids([mine]))
        store.collect([], now() + LATER, False)

        assert state_of(other.load(theirs.info.checkpoint_id)) == large_state()
        assert store.stats().chunks == 0


def test_redis_removes_an_expired_record_by_itself_in_the_end(
    store: RedisStore, prefix: str
) -> None:
    (commit,) = keep(store, make_commit(ttl_seconds=60))
    with shared_server().client() as client:
        left = client.pttl(f"{{{prefix}}}:r:{commit.info.checkpoint_id}")

    day = 24 * 3600 * 1000
    assert day < left <= day + 60_000


def test_what_redis_removed_by_itself_is_nowhere_to_be_seen_and_swept(
    store: RedisStore, prefix: str
) -> None:
    (stays,) = keep(store, make_commit(created_at=now() - LATER))
    (gone,) = keep(store, make_commit(large_state(), session_id="short", **expired()))
    keep_notes(store, make_note("/x", expires_at=now()))
    with shared_server().client() as client:  # as if a day had passed
        client.delete(f"{{{prefix}}}:r:{gone.info.checkpoint_id}", f"{{{prefix}}}:n:/x\0note")

    assert is_absent(store, gone.info)
    assert ids(store.query(Query(include_expired=True))) == ids([stays])
    assert [head.session_id for head in store.heads()] == ["session"]
    assert store.match("", 10) == ids([stays])
    assert store.notes(None) == []
    assert (store.stats().checkpoints, store.stats().sessions) == (1, 1)

    assert store.sweep(now()) == 1

    assert store.stats().logical_bytes == stays.info.size
    left = keys_of(shared_server(), prefix)
    assert not [key for key in left if gone.info.checkpoint_id in key or "short" in key]
    with shared_server().client() as client:
        assert client.zcard(f"{{{prefix}}}:all") == 1
        assert client.zcard(f"{{{prefix}}}:notes") == 0
        assert client.zcard(f"{{{prefix}}}:expiry") == 0


def test_the_key_of_a_note_that_expired_may_be_used_again(store: RedisStore, prefix: str) -> None:
    keep_notes(store, make_note("/x", value=1, expires_at=now()))
    with shared_server().client() as client:  # as if a day had passed
        client.delete(f"{{{prefix}}}:n:/x\0note")
    (again,) = keep_notes(store, make_note("/x", value=2))

    store.sweep(now())

    assert [note.body for note in store.notes(["/x"])] == [again.body]


def test_very_many_sessions_are_found_by_how_their_names_begin(store: RedisStore) -> None:
    names = [f"main/{n}" for n in range(70)]
    commits = keep(store, *(make_commit(session_id=name) for name in names))
    keep(store, make_commit(session_id="other"), make_commit(session_id="main", agent_id="else"))

    newest_first = ids(reversed(commits))
    assert ids(store.query(Query(session_prefix="main/"))) == newest_first
    assert ids(store.query(Query(session_prefix="main/", limit=9))) == newest_first[:9]
    assert ids(store.query(Query(session_prefix="main/", agent_id="agent"))) == newest_first
    assert ids(store.query(Query(session_prefix="main/1", limit=99))) == [
        commit.info.checkpoint_id
        for commit in reversed(commits)
        if commit.info.session_id.startswith("main/1")
    ]


def test_any_altered_byte_of_a_record_is_noticed_or_does_not_matter(prefix: str) -> None:
    with SyncClient(RedisStore(shared_server().url, prefix=prefix)) as client:
        saved = client.save("agent", execution_state={"step": 1}, ttl_seconds=1e9, tag="a")
        key = f"{{{prefix}}}:r:{saved}"
        with shared_server().client() as redis:
            whole = redis.get(key)
            noticed = 0
            for place in range(len(whole)):
                altered = bytearray(whole)
                altered[place] ^= 1 << place % 8
                redis.set(key, bytes(altered))
                try:
                    found = client.restore(saved)
                except CheckpointIntegrityError:
                    noticed += 1
                else:
                    assert (found.execution_state, found.metadata) == ({"step": 1}, {"tag": "a"})

        assert noticed >= len(whole) - 12  # its first bytes are the token of the call


def test_a_record_that_cannot_be_read_is_named_and_may_be_removed(prefix: str) -> None:
    with SyncClient(RedisStore(shared_server().url, prefix=prefix)) as client:
        damaged, sound = (client.save("agent", execution_state={"n": n}) for n in range(2))
        with shared_server().client() as redis:
            redis.set(f"{{{prefix}}}:r:{damaged}", b"\xc1")

        assert [each.checkpoint_id for each in client.verify().damaged] == [damaged]
        assert client.expire(damaged)

        assert client.verify().ok
        assert [info.checkpoint_id for info in client.find()] == [sound]


def test_an_altered_chunk_is_noticed(store: RedisStore, prefix: str) -> None:
    (commit,) = keep(store, make_commit(large_state()))
    with shared_server().client() as redis:
        for name in commit.chunks:
            key = f"{prefix}:c:{name.hex()}"
            whole = redis.get(key)
            redis.set(key, whole[:-1] + bytes([whole[-1] ^ 1]))

            with pytest.raises(CheckpointIntegrityError):
                store.load(commit.info.checkpoint_id)

            redis.set(key, whole)
    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
