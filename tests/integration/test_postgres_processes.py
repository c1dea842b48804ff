"""Many threads, tasks and processes at one PostgreSQL database: nothing is lost, nobody waits long.

And what comes with processes: forks, event loops that end, kills.
"""

import asyncio
import random
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest

from holdfast import Client, SyncClient
from holdfast.errors import MissingParentError
from holdfast.stores.base import Note, NotesOnly, Query
from holdfast.stores.postgres.store import PostgresStore
from holdfast.system.drive import drive
from holdfast.testing import crash_points
from holdfast.testing.samples import keep, large_state, make_commit, state_of
from tests.integration.concurrency_jobs import AGENT, common
from tests.integration.fork_server import ForkServer
from tests.integration.kept import assert_all_kept
from tests.servers import PostgresServer

pytest_plugins = ["tests.integration.postgres_fixtures"]

JOBS = "tests.integration.concurrency_jobs:"
UNTIL_KILLED = "tests.integration.postgres_jobs:save_until_killed"
THREADS, TASKS, PROCESSES = 8, 32, 4


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    with ForkServer("tests.integration.postgres_jobs") as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer, schema: str) -> str:
    """With fewer connections than there are threads and tasks."""
    return f"{postgres.dsn}?schema={schema}&pool_size=4"


@pytest.fixture
def store(postgres: PostgresServer, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.dsn, schema=schema) as store:
        yield store


def test_threads_save_at_once(forks: ForkServer, url: str) -> None:
    (saved,) = forks.at_once((JOBS + "save_in_threads", url, "p", THREADS, 10))

    assert len(saved) == THREADS * 10
    assert_all_kept(url, saved)


def test_tasks_save_at_once(forks: ForkServer, url: str) -> None:
    (saved,) = forks.at_once((JOBS + "save_in_tasks", url, "p", TASKS, 4))

    assert len(saved) == TASKS * 4
    assert_all_kept(url, saved)


def test_processes_make_the_tables_at_once_and_save(forks: ForkServer, url: str) -> None:
    jobs = [(JOBS + "open_and_save", url, f"process-{i}", 5) for i in range(2 * PROCESSES)]

    told = forks.at_once(*jobs)

    assert [len(saved) for saved in told] == [5] * len(jobs)
    assert_all_kept(url, *told)


def test_nothing_that_is_saved_is_collected(forks: ForkServer, url: str, tmp_path: Path) -> None:
    done = str(tmp_path)
    *told, _, _ = forks.at_once(
        *((JOBS + "save_what_others_throw_away", url, f"p{i}", 12, done) for i in range(PROCESSES)),
        (JOBS + "throw_away", url, "thrown", 24, done),
        (JOBS + "tend", url, done, PROCESSES + 1),
    )

    assert [len(saved) for saved in told] == [24] * PROCESSES
    assert_all_kept(url, *told, state_of=lambda _, step: common(step))


@pytest.mark.parametrize("remove", ["delete", "sweep"])
def test_what_removes_records_waits_for_saves_that_have_begun(
    postgres: PostgresServer, store: PostgresStore, remove: str
) -> None:
    (base,) = keep(store, make_commit(large_state(), ttl_seconds=3600))
    child = make_commit(large_state(1), base=base)
    removals: dict[str, Callable[[], int]] = {
        "delete": lambda: store.delete([base.info.checkpoint_id]),
        "sweep": lambda: store.sweep(datetime.now(UTC) + timedelta(days=1)),
    }
    waiting = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"

    with psycopg.connect(postgres.dsn, autocommit=True) as saver, ThreadPoolExecutor(1) as pool:
        saver.execute("BEGIN")
        drive(store._plans.commit(child), partial(store._pool._execute, saver))
        removing = pool.submit(removals[remove])
        while postgres.execute(waiting) == [(0,)]:
            assert not removing.done()
        saver.execute("COMMIT")
        assert removing.result(30) == 1

    SyncClient(store).gc(grace_seconds=0)
    assert store.load(base.info.checkpoint_id) is None
    assert state_of(store.load(child.info.checkpoint_id)) == large_state(1)


@pytest.mark.parametrize("job", ["use_after_fork", "use_async_after_fork"])
def test_a_client_works_on_both_sides_of_a_fork(forks: ForkServer, url: str, job: str) -> None:
    (told,) = forks.at_once((JOBS + job, url, 5))

    assert len(told) == 15
    assert_all_kept(url, told)


def test_children_of_a_process_whose_threads_save_can_save(forks: ForkServer, url: str) -> None:
    (told,) = forks.at_once((JOBS + "fork_while_threads_save", url, 10))

    ended = [thing for thing in told if thing[0] == "status"]
    assert ended == [["status", number, 0] for number in range(10)]
    saved = [thing for thing in told if thing[0] != "status"]
    assert len([thing for thing in saved if thing[1].startswith("fork-")]) == 20
    assert_all_kept(url, saved)


COUNTED = "application_name=counted"
"""Tells these connections from those that other tests, and PgBouncer, hold on the server."""


def connections(server: PostgresServer) -> int:
    count = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'counted'"
    return int(server.execute(count)[0][0])


def wait_until_none_is_connected(server: PostgresServer) -> None:
    while connections(server):
        threading.Event().wait(0.01)  # the server sees the end of a connection a little later


def test_event_loops_that_end_leave_no_connections(postgres: PostgresServer, schema: str) -> None:
    store = PostgresStore(f"{postgres.dsn}?{COUNTED}", schema=schema, pool_size=2)
    client = Client(store)

    async def use() -> None:
        saves = (client.save("agent", execution_state={"step": i}) for i in range(6))
        await asyncio.gather(*saves)

    for _ in range(5):
        asyncio.run(use())

    assert len(store.query(Query())) == 30
    assert connections(postgres) <= 1 + 2 * 2
    asyncio.run(client.close())
    wait_until_none_is_connected(postgres)


def test_two_event_loops_share_a_store_at_once(store: PostgresStore) -> None:
    client = Client(store)
    met = threading.Barrier(2)

    def work(name: str) -> None:
        async def save() -> None:
            for step in range(10):
                await client.save("agent", execution_state={"step": step}, session_id=name)

        met.wait()
        asyncio.run(save())

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(work, ("one", "two")))

    assert [session.checkpoints for session in store.heads()] == [10, 10]


def test_a_closed_store_leaves_no_connections(postgres: PostgresServer, schema: str) -> None:
    store = PostgresStore(f"{postgres.dsn}?{COUNTED}", schema=schema)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: keep(store, make_commit()), range(12)))

    store.close()

    wait_until_none_is_connected(postgres)


def test_saves_of_the_same_chunks_in_any_order_never_wait_for_each_other_for_ever(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    chunks = {i.to_bytes(20, "big"): b"\x00%d" % i for i in range(200)}

    def work(seed: int) -> None:
        chance = random.Random(seed)
        for _ in range(10):
            names = chance.sample(sorted(chunks), 100)
            commit = make_commit({"seed": seed}, session_id=str(seed))
            mine = {name: chunks[name] for name in names}
            store.commit(type(commit)(commit.info, {**commit.chunks, **mine}))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))

    assert store.fetch(list(chunks)).keys() <= chunks.keys()
    assert store.stats().checkpoints == 10 * THREADS
    assert "deadlock detected" not in postgres.log


def test_a_reader_that_goes_on_from_the_last_note_misses_none(store: PostgresStore) -> None:
    writers, each = 6, 25
    seen: list[Note] = []

    def write(number: int) -> None:
        for i in range(each):
            note = Note.of("/events", f"{number} {i}", b"\x00body")
            store.commit(NotesOnly((note,), {}))

    def read() -> None:
        while len(seen) < writers * each:
            seen.extend(store.notes(["/events"], seen[-1].seq if seen else 0, 10))

    with ThreadPoolExecutor(writers + 1) as pool:
        done = [pool.submit(write, number) for number in range(writers)]
        done.append(pool.submit(read))
        for future in done:
            future.result(50)

    assert len({note.key for note in seen}) == writers * each
    assert [note.seq for note in seen] == sorted(note.seq for note in seen)
    for number in range(writers):
        mine = [note.key for note in seen if note.key.startswith(f"{number} ")]
        assert mine == [f"{number} {i}" for i in range(each)]


def test_a_state_too_large_for_one_statement_is_kept_whole(store: PostgresStore) -> None:
    chance = random.Random(7)
    state = {"blobs": [chance.randbytes(3_000_000) for _ in range(6)]}
    base = make_commit(large_state())

    (commit,) = keep(store, make_commit(state))
    refused = make_commit({"other": chance.randbytes(20_000_000)}, parent_id="no such parent")
    with pytest.raises(MissingParentError):
        store.commit(refused)

    assert state_of(store.load(commit.info.checkpoint_id)) == state
    assert not store.fetch(list(refused.chunks))
    assert keep(store, base)


@pytest.mark.crash
@pytest.mark.parametrize("point", [*crash_points.POINTS["postgres"], None])
def test_a_save_that_is_killed_is_whole_or_absent(
    forks: ForkServer, url: str, point: str | None
) -> None:
    chance = random.Random(point)
    acknowledged: set[str] = set()

    for _ in range(4):
        if point is None:
            job: tuple[Any, ...] = (UNTIL_KILLED, url)
            ended = forks.killed(*job, told=chance.randint(0, 8), spin=chance.randrange(100_000))
        else:
            ended = forks.killed(UNTIL_KILLED, url, point, chance.randint(1, 6))
        assert ended.signal == signal.SIGKILL, ended.error
        acknowledged |= {saved for saved, _, _ in ended.told}
        with SyncClient.open(url) as client:
            assert client.verify().ok
            listed = client.timeline(AGENT, "main", limit=None)
            assert [info.step_index for info in listed] == [*range(len(listed) - 1, -1, -1)]
            assert acknowledged <= {info.checkpoint_id for info in listed}
