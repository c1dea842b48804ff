"""Whatever happens at once or is cut short: what the Redis store acknowledged is there, whole."""

import os
import signal
import threading

import pytest

from holdfast import SyncClient
from holdfast.stores.base import Query
from holdfast.stores.redis.store import RedisStore
from holdfast.testing import crash_points
from holdfast.testing.commits import failing_at, is_absent
from holdfast.testing.samples import (
    ids,
    keep,
    large_state,
    make_commit,
    state_of,
)
from tests.integration.crash_jobs import AGENT, state_at
from tests.integration.fork_server import Ended, ForkServer
from tests.integration.redis_kit import (
    JOBS,
    LATER,
    PLACES,
    POINTS,
    ByHand,
    now,
)
from tests.redis_servers import RedisServer, shared_server

pytest_plugins = ["tests.integration.redis_fixtures"]

KILLS = max(2, int(os.environ.get("HOLDFAST_CRASHES", "60")) // 40)


def test_a_save_whose_chunks_are_collected_before_its_record_writes_them_again(
    cluster_store: RedisStore,
) -> None:
    collected: list[int] = []

    def collect(point: str) -> None:
        if point == "redis:chunks_written" and not collected:
            collected.append(cluster_store.collect([], now() + LATER, False).chunks)

    commit = make_commit(large_state())
    with crash_points.listening(collect):
        cluster_store.commit(commit)

    assert collected == [len(commit.chunks)]
    assert state_of(cluster_store.load(commit.info.checkpoint_id)) == large_state()


@pytest.mark.parametrize("point", crash_points.POINTS["redis+cluster"][:-1])
def test_chunks_of_a_save_that_was_cut_short_are_collected(
    cluster_store: RedisStore, point: str
) -> None:
    commit = make_commit(large_state())
    with crash_points.listening(failing_at(point)), pytest.raises(RuntimeError):
        cluster_store.commit(commit)

    cluster_store.collect([], now() + LATER, False)

    assert is_absent(cluster_store, commit.info)
    assert not cluster_store.fetch(commit.chunks)
    assert cluster_store.stats().chunks == 0


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("steps", range(1, 6))
def test_a_chunk_that_is_saved_again_while_it_is_collected_stays(
    place: str, steps: int, prefix: str
) -> None:
    with RedisStore(PLACES[place]().url, prefix=prefix) as store:
        (old,) = keep(store, make_commit(large_state()))
        store.delete(ids([old]))
        collecting = ByHand(store, store._plans.collect([], now(), False))
        collecting.go_on(steps)

        (again,) = keep(store, make_commit(large_state()))
        collecting.finish()

        assert state_of(store.load(again.info.checkpoint_id)) == large_state()
        assert store.stats().chunks == len(again.chunks)


def test_a_collection_that_was_cut_short_is_finished_by_the_next(store: RedisStore) -> None:
    (old,) = keep(store, make_commit(large_state()))
    store.delete(ids([old]))
    for steps in (3, 4):
        ByHand(store, store._plans.collect([], now(), False)).go_on(steps)

    store.collect([], now(), False)

    assert not store.fetch(old.chunks)
    assert store.stats().chunks == 0
    with shared_server().client() as client:
        assert not client.exists(store._plans.keys.chunks)


def test_a_listing_of_all_sees_what_was_based_on_a_record_removed_meanwhile(
    store: RedisStore,
) -> None:
    (base,) = keep(store, make_commit(large_state()))
    listing = ByHand(store, store._plans.query(Query(include_expired=True)))
    listing.go_on()
    (derived,) = keep(store, make_commit(large_state(1), base=base))
    store.delete(ids([base]))

    found = listing.finish()

    assert derived.info in found


@pytest.mark.crash
@pytest.mark.parametrize(("place", "point"), POINTS)
def test_a_save_killed_at_a_named_point_is_whole_or_absent(
    place: str, point: str, forks: ForkServer, prefix: str
) -> None:
    url = PLACES[place]().url
    for kill in range(KILLS):
        check_survived(
            url, prefix, forks.killed(f"{JOBS}:save_until_killed", url, prefix, point, 1 + kill * 3)
        )


@pytest.mark.crash
@pytest.mark.parametrize("place", PLACES)
def test_a_save_killed_at_any_moment_is_whole_or_absent(
    place: str, forks: ForkServer, prefix: str
) -> None:
    url = PLACES[place]().url
    for kill in range(3 * KILLS):
        job = (f"{JOBS}:save_until_killed", url, prefix)
        check_survived(url, prefix, forks.killed(*job, told=kill % 7, spin=kill * 7919 % 30_000))


@pytest.mark.crash
def test_a_server_killed_while_saves_come_in_has_kept_all_it_acknowledged(
    forks: ForkServer, prefix: str
) -> None:
    with RedisServer() as server:
        for _ in range(KILLS):
            with SyncClient(RedisStore(server.url, prefix=prefix, timeout=20)) as client:
                saved: list[str] = []
                started = threading.Event()
                ended = threading.Event()
                saver = threading.Thread(target=save_on, args=(client, saved, started, ended))
                saver.start()
                started.wait()
                server.kill()
                server.start()
                ended.set()
                saver.join()
                assert {*saved} <= {info.checkpoint_id for info in client.find(limit=None)}
                assert client.verify().ok


def save_on(
    client: SyncClient, saved: list[str], started: threading.Event, ended: threading.Event
) -> None:
    while not ended.is_set() or len(saved) < 20:
        step = len(saved)
        saved.append(client.save(AGENT, execution_state=state_at("main", step), session_id="main"))
        if step == 10:
            started.set()


def check_survived(url: str, prefix: str, ended: Ended) -> None:
    assert ended.signal == signal.SIGKILL, ended.error
    with SyncClient(RedisStore(url, prefix=prefix)) as client:
        assert client.verify().ok
        chain = client.timeline(AGENT, "main", limit=None)
        assert [info.step_index for info in chain] == [*range(len(chain) - 1, -1, -1)]
        assert {saved for saved, _, _ in ended.told} <= {info.checkpoint_id for info in chain}
        for info in chain[:3]:
            state = client.restore(info.checkpoint_id).execution_state
            assert state == state_at("main", info.step_index)


@pytest.mark.parametrize("place", PLACES)
def test_processes_save_while_gc_spares_nothing_and_nothing_is_lost(
    place: str, forks: ForkServer, prefix: str
) -> None:
    url = PLACES[place]().url

    told = forks.at_once(
        *[(f"{JOBS}:save_some", url, prefix, 12)] * 3,
        (f"{JOBS}:save_some_in_tasks", url, prefix, 4),
        (f"{JOBS}:collect_often", url, prefix, 12),
    )

    with SyncClient(RedisStore(url, prefix=prefix)) as client:
        client.gc(grace_seconds=0)
        assert client.verify().ok
        all_told = [each for some in told for each in some]
        assert len(all_told) == 3 * 12 + 8 * 4
        for saved, session, step in all_told:
            assert client.restore(saved).execution_state == state_at(session, step)


def test_threads_save_while_gc_spares_nothing_and_nothing_is_lost(prefix: str) -> None:
    with SyncClient(RedisStore(shared_server().url, prefix=prefix)) as client:
        done = threading.Event()

        def collect() -> None:
            while not done.is_set():
                client.gc(grace_seconds=0)

        def save(session: str) -> None:
            for step in range(8):
                state = state_at(session, step)
                client.save(AGENT, execution_state=state, session_id=session, step_index=step)

        collector = threading.Thread(target=collect)
        savers = [threading.Thread(target=save, args=(f"thread {n}",)) for n in range(8)]
        for thread in (collector, *savers):
            thread.start()
        for thread in savers:
            thread.join()
        done.set()
        collector.join()

        assert client.verify().ok
        for n in range(8):
            chain = client.timeline(AGENT, f"thread {n}", with_state=True)
            assert [checkpoint.step_index for checkpoint in chain] == [*range(7, -1, -1)]
            for checkpoint in chain:
                assert checkpoint.execution_state == state_at(f"thread {n}", checkpoint.step_index)


@pytest.mark.parametrize("place", PLACES)
def test_every_save_passes_the_points_of_its_store_in_order(place: str, prefix: str) -> None:
    reached: list[str] = []

    with RedisStore(PLACES[place]().url, prefix=prefix) as store:
        keep(store, make_commit())
        with crash_points.listening(reached.append):
            keep(store, make_commit())

    assert tuple(reached) == crash_points.POINTS[place]
