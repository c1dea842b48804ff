"""Sessions of the Redis store, by when they were touched and by their tags; older stores too."""

import random
from datetime import timedelta
from typing import Any

import pytest
from redis.exceptions import ResponseError

from holdfast.errors import CheckpointIntegrityError, StoreFormatError
from holdfast.stores.base import Commit, Query, SessionInfo, Store
from holdfast.stores.memory import MemoryStore
from holdfast.stores.redis import reads
from holdfast.stores.redis.keys import FORMAT
from holdfast.stores.redis.store import RedisStore
from holdfast.testing.samples import expired, ids, keep, make_commit
from tests.integration.fork_server import ForkServer
from tests.integration.redis_kit import JOBS, ByHand, Weighed, keep_all, now
from tests.redis_servers import own_prefix, shared_server

pytest_plugins = ["tests.integration.redis_fixtures"]

AGENTS = ("one", "two")
ODD = (1, True, "1", 1.0, None, b"1", ("1",), 1.5)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have what is done for many sessions be done for a few."""
    monkeypatch.setattr(reads, "_FEW", 1)
    monkeypatch.setattr(reads, "_SOME", 3)


def some_commit(chance: random.Random, clock: int, **fields: Any) -> Commit:
    """A record of one of some sessions, with tags."""
    tags = {"step": clock, "odd": chance.choice(ODD), chance.choice("abc"): chance.randrange(2)}
    return make_commit(
        {"n": clock},
        agent_id=chance.choice(AGENTS),
        session_id=f"s{chance.randrange(9)}",
        metadata={name: value for name, value in tags.items() if chance.random() < 0.7},
        **fields,
    )


@pytest.mark.parametrize("seed", range(6))
def test_whatever_happens_sessions_are_listed_and_found_as_in_memory(
    store: RedisStore, few: None, seed: int
) -> None:
    chance, model = random.Random(seed), MemoryStore()
    kept: list[str] = []
    for clock in range(60):
        if kept and chance.random() < 0.3:
            gone = {chance.choice(kept) for _ in range(chance.randrange(1, 4))}
            assert store.delete(gone) == model.delete(gone)
            kept = [each for each in kept if each not in gone]
        elif chance.random() < 0.1:
            assert store.sweep(now()) == model.sweep(now())
        else:
            over = expired() if chance.random() < 0.1 else {}
            commit = some_commit(chance, clock, **over)
            for each in (store, model):
                each.commit(commit)
            kept.append(commit.info.checkpoint_id)
        if clock % 4 == 3:
            same_answers(store, model, chance)
    with shared_server().client() as client:
        store.delete(kept)
        store.sweep(now())
        keys = store._plans.keys
        assert not client.exists(keys.touched, keys.tags, keys.filed)


def listed(
    store: Store, limit: int, agent: str | None = None, before: str | None = None
) -> list[SessionInfo]:
    return store.heads(agent, limit=limit, before=before)


def same_answers(store: RedisStore, model: MemoryStore, chance: random.Random) -> None:
    """Ask both the same."""
    every = model.heads()
    before = chance.choice(every).head.checkpoint_id if every else None
    for agent in (None, *AGENTS):
        for limit in (1, 2, 5, 100):
            assert listed(store, limit, agent) == listed(model, limit, agent)
            assert listed(store, limit, agent, before) == listed(model, limit, agent, before)
        for odd in ODD:
            for most in (1, 3, None):
                tags = {"odd": odd} if chance.random() < 0.5 else {"odd": odd, "a": 1}
                query = Query(tags=tags, agent_id=agent, limit=most)
                assert store.query(query) == model.query(query)
    step = Query(tags={"step": chance.randrange(60)}, oldest_first=True)
    assert store.query(step) == model.query(step)


def test_a_name_with_ever_new_values_is_filed_by_itself(store: RedisStore) -> None:
    commits = [make_commit(metadata={"step": n, "of": "all"}) for n in range(50)]
    keep(store, *commits)

    keys = store._plans.keys
    with shared_server().client() as client:
        assert client.zcard(keys.tags) < 12
    for n in (0, 7, 8, 49):
        assert ids(store.query(Query(tags={"step": n}))) == ids([commits[n]])


def test_a_rare_tag_is_found_without_the_sessions_that_lack_it(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_all(store, (make_commit(session_id=f"s{n % 40}") for n in range(1200)))
    (rare,) = keep(store, make_commit(session_id="s7", metadata={"bug": 1}))
    weighed = Weighed(store, monkeypatch)

    assert ids(store.query(Query(tags={"bug": 1}, limit=5))) == ids([rare])
    assert store.query(Query(tags={"bug": 2}, limit=5)) == []

    assert weighed.largest < 200


def test_a_page_of_sessions_is_read_without_the_others(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_all(store, (make_commit(session_id=f"s{n}") for n in range(1200)))
    newest = store.heads()
    weighed = Weighed(store, monkeypatch)

    first = listed(store, 20)
    second = listed(store, 20, None, first[-1].head.checkpoint_id)

    assert first + second == newest[:40]
    assert weighed.largest < 200


# Stores of before


def as_before(prefix: str) -> None:
    """Make a store what format 2 left: nothing is filed."""
    with shared_server().client() as client:
        client.set(f"{{{prefix}}}:format", "2")
        client.delete(*(f"{{{prefix}}}:{name}" for name in ("touched", "tags", "filed", "filing")))


@pytest.fixture
def old(prefix: str, few: None) -> tuple[MemoryStore, list[Commit]]:
    """What is in a store of the format before."""
    chance, model = random.Random(1), MemoryStore()
    commits = [some_commit(chance, n) for n in range(3 * reads.BATCH + 10)]
    with RedisStore(shared_server().url, prefix=prefix) as store:
        keep_all(store, commits)
    keep(model, *commits)
    as_before(prefix)
    return model, commits


def test_a_store_of_before_is_brought_up_to_date_and_says_so(
    prefix: str, old: tuple[MemoryStore, list[Commit]], caplog: pytest.LogCaptureFixture
) -> None:
    model, _ = old
    with caplog.at_level("INFO", "holdfast"), RedisStore(shared_server().url, prefix=prefix) as it:
        same_answers(it, model, random.Random(2))
        assert it.lost() == []

    assert "is brought from format" in caplog.text


@pytest.mark.parametrize("time", [1, 3, 4])
def test_who_is_killed_meanwhile_goes_on_the_next_time(
    prefix: str, old: tuple[MemoryStore, list[Commit]], forks: ForkServer, time: int
) -> None:
    model, _ = old
    url = shared_server().url

    ended = forks.killed(f"{JOBS}:open_until_killed", url, prefix, "upkeep:part", time)

    assert ended.signal == 9
    with shared_server().client() as client:
        assert client.get(f"{{{prefix}}}:format") == FORMAT
        assert client.exists(f"{{{prefix}}}:filing")
    with RedisStore(url, prefix=prefix) as store:
        same_answers(store, model, random.Random(3))
        assert store.lost() == []
        with shared_server().client() as client:
            assert not client.exists(f"{{{prefix}}}:filing")


def test_others_save_and_remove_while_it_is_brought_up_to_date(
    prefix: str, old: tuple[MemoryStore, list[Commit]]
) -> None:
    model, commits = old
    chance = random.Random(4)
    with (
        shared_server().client() as client,
        RedisStore(shared_server().url, prefix=own_prefix()) as store,
    ):
        store._plans.keys = type(store._plans.keys)(prefix)  # opened, and not brought up yet
        filing = ByHand(store, store._plans.file_sessions(lambda _: None))
        filing.go_on()
        while client.exists(f"{{{prefix}}}:filing"):
            fresh = some_commit(chance, 0)
            gone = {chance.choice(commits).info.checkpoint_id}
            for each in (store, model):
                each.commit(fresh)
                each.delete(gone)
            filing.go_on()

        same_answers(store, model, chance)
        assert store.lost() == []


def test_a_program_of_before_cannot_write_any_more(prefix: str, store: RedisStore) -> None:
    """What it asked for before it wrote, word for word."""
    (kept,) = keep(store, make_commit())
    asked = "if tonumber(redis.call('GET', KEYS[1]) or 0) < 2 then return 1 end return 0"

    with (
        shared_server().client() as client,
        pytest.raises(ResponseError, match="compare nil with number"),
    ):
        client.eval(asked, 1, f"{{{prefix}}}:format")
    assert ids(store.query(Query())) == ids([kept])


def test_what_another_version_writes_meanwhile_is_told(prefix: str, store: RedisStore) -> None:
    keep(store, make_commit())
    as_before(prefix)

    with pytest.raises(StoreFormatError, match="open it again"):
        store.commit(make_commit())

    with RedisStore(shared_server().url, prefix=prefix) as again:
        keep(again, make_commit())
        assert again.lost() == []


def test_a_record_that_cannot_be_read_hides_nothing(prefix: str, store: RedisStore) -> None:
    first, second = keep(store, make_commit(), make_commit(session_id="other"))
    with shared_server().client() as client:
        client.set(f"{{{prefix}}}:r:{first.info.checkpoint_id}", b"nonsense")
    as_before(prefix)

    with RedisStore(shared_server().url, prefix=prefix) as again:
        with pytest.raises(CheckpointIntegrityError):
            listed(again, 10)
        again.delete(ids([first]))
        assert [each.head for each in listed(again, 10)] == [second.info]


@pytest.mark.parametrize("name", ["touched", "tags"])
def test_what_is_not_filed_any_more_is_told(prefix: str, store: RedisStore, name: str) -> None:
    (kept,) = keep(store, make_commit(metadata={"a": 1}, created_at=now() - timedelta(hours=1)))
    assert store.lost() == []
    with shared_server().client() as client:
        client.delete(f"{{{prefix}}}:{name}")

    ((which, how),) = store.lost()

    assert which == kept.info.checkpoint_id
    assert "listing of it is gone" in how
