"""What writers of a PostgreSQL store wait for: the disk, and hardly ever one another.

A standby that never answers stands for a disk that is never done: who has come so far as to wait
for it has got all locks that a save needs, and has given back those that others want.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest

from holdfast import Client, SyncClient
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.listen import LONGEST
from holdfast.stores.postgres.rows import note_columns
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.postgres.writes import record_values
from holdfast.system.drive import drive
from holdfast.testing.samples import ids, keep, large_state, make_commit, make_note, state_of
from tests.servers import PostgresServer
from tests.waiting import wait_until

pytest_plugins = ["tests.integration.postgres_fixtures"]

WRITERS = 6
COUNTED = "application_name=counted"


@pytest.fixture
def store(postgres: PostgresServer, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(f"{postgres.dsn}?{COUNTED}", schema=schema) as store:
        yield store


@contextmanager
def standing_still(server: PostgresServer) -> Iterator[None]:
    """Nothing that is committed is acknowledged meanwhile."""

    def have(standby: str) -> None:
        server.execute(f"ALTER SYSTEM SET synchronous_standby_names = '{standby}'")
        server.execute("SELECT pg_reload_conf()")
        shown = "SHOW synchronous_standby_names"
        wait_until(lambda: server.execute(shown) == [(standby,)], "that the server is told")

    have("nobody")
    try:
        yield
    finally:
        have("")


def waits(server: PostgresServer) -> list[str]:
    """What the connections of the store wait for."""
    found = server.execute(
        "SELECT wait_event_type, wait_event FROM pg_stat_activity "
        "WHERE application_name = 'counted' AND state = 'active'"
    )
    return ["disk" if event == "SyncRep" else str(kind) for kind, event in found]


def all_wait_for_the_disk(server: PostgresServer, work: Sequence[Callable[[], object]]) -> None:
    """Do it all at once, and see that in the end each waits for nothing but the disk."""
    with ThreadPoolExecutor(len(work)) as threads:
        with standing_still(server):
            done: list[Future[object]] = [threads.submit(each) for each in work]
            wait_until(lambda: waits(server) == ["disk"] * len(work), "that all wait for the disk")
            assert not any(each.done() for each in done)
        for each in done:
            each.result(50)


def test_sessions_that_begin_with_an_equal_state_do_not_wait_for_each_other(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    keep(store, make_commit(large_state(), session_id="first"))
    commits = [make_commit(large_state(), session_id=f"s{n}") for n in range(WRITERS)]

    all_wait_for_the_disk(postgres, [partial(store.commit, commit) for commit in commits])

    assert {*ids(commits)} <= {*store.match("", 100)}


def test_those_who_publish_on_one_channel_do_not_wait_for_each_others_disk(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    def publish(number: int) -> None:
        store.commit(NotesOnly((make_note("/events/all", f"{number}"),), {}))

    def save(number: int) -> None:
        note = make_note("/events/all", f"beside {number}")
        commit = make_commit({"n": number}, session_id=f"s{number}")
        store.commit(Commit(commit.info, commit.chunks, notes=(note,)))

    numbers = range(WRITERS // 2)
    work = [partial(each, number) for each in (publish, save) for number in numbers]
    all_wait_for_the_disk(postgres, work)

    found = store.notes(["/events/all"])
    assert len(found) == WRITERS
    assert [note.seq for note in found] == sorted({note.seq for note in found})


def test_leases_are_renewed_side_by_side(postgres: PostgresServer, store: PostgresStore) -> None:
    def renew(number: int) -> None:
        scope = f"/sessions/agent/{number}"
        note = make_note(scope, "lease/1/renewed")
        store.commit(NotesOnly((note,), {}, unless=(scope, "lease/2"), is_quiet=True))

    all_wait_for_the_disk(postgres, [partial(renew, number) for number in range(WRITERS)])


def test_nobody_is_woken_by_leases(
    postgres: PostgresServer, store: PostgresStore, schema: str
) -> None:
    with psycopg.connect(postgres.dsn, autocommit=True) as ear:
        ear.execute("LISTEN holdfast_notes")
        with SyncClient(store) as client:
            with client.session("agent", session_id="s", lease_seconds=0.0001) as run:
                run.checkpoint("renewed with it")
            client.publish("end", data={})
        woken = list(ear.notifies(timeout=10, stop_after=1))
        woken += ear.notifies(timeout=0)

    assert len(woken) == 1


class Saver:
    """Has saved, and has not committed yet."""

    def __init__(self, server: PostgresServer, store: PostgresStore) -> None:
        self._connection = psycopg.connect(server.dsn, autocommit=True)
        self._store = store
        self._connection.execute("BEGIN")

    def save(self, commit: Commit) -> None:
        carry_out = partial(self._store._pool._execute, self._connection)
        drive(self._store._plans.commit(commit), carry_out)

    def end(self, word: str) -> None:
        self._connection.execute(word.encode())
        self._connection.close()


def is_waited(server: PostgresServer) -> bool:
    return server.execute("SELECT count(*) > 0 FROM pg_locks WHERE NOT granted") == [(True,)]


def test_an_equal_state_is_kept_also_where_the_first_to_save_it_again_fails(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    keep(store, make_commit(large_state(), session_id="first"))
    saver, other = Saver(postgres, store), make_commit(large_state(), session_id="other")
    saver.save(make_commit(large_state(), session_id="fails"))

    store.commit(other)  # it does not wait
    saver.end("ROLLBACK")
    client = SyncClient(store)
    store.delete([i for i in store.match("", 10) if i not in ids([other])])
    client.gc(grace_seconds=0)

    assert state_of(store.load(other.info.checkpoint_id)) == large_state()


def test_what_a_collection_may_be_about_to_remove_is_not_left_to_others(
    postgres: PostgresServer, store: PostgresStore
) -> None:
    """A chunk that was written before the last sweep: whoever saves it again makes sure of it."""
    (gone,) = keep(store, make_commit(large_state(), session_id="gone"))
    store.delete(ids([gone]))
    before = datetime.now(UTC)
    store.sweep(before)  # and what is needed is listed now: nothing
    saver, other = Saver(postgres, store), make_commit(large_state(), session_id="other")
    saver.save(make_commit(large_state(), session_id="fails"))

    with ThreadPoolExecutor(1) as threads:
        saving = threads.submit(store.commit, other)
        wait_until(lambda: is_waited(postgres), "that it waits for the other")
        saver.end("ROLLBACK")
        saving.result(50)
    store.collect([], before, False)

    assert state_of(store.load(other.info.checkpoint_id)) == large_state()


def test_a_chunk_that_is_being_removed_is_written_anew(
    postgres: PostgresServer, store: PostgresStore, schema: str
) -> None:
    (gone,) = keep(store, make_commit(large_state(), session_id="gone"))
    store.delete(ids([gone]))
    store.sweep(datetime.now(UTC))
    again = make_commit(large_state(), session_id="again")

    with psycopg.connect(postgres.dsn) as collecting, ThreadPoolExecutor(1) as threads:
        collecting.execute(f"DELETE FROM {schema}.chunks")
        saving = threads.submit(store.commit, again)
        wait_until(lambda: is_waited(postgres), "that it waits for who removes")
        collecting.commit()
        saving.result(50)

    assert state_of(store.load(again.info.checkpoint_id)) == large_state()


def test_a_sweep_by_a_clock_that_is_far_ahead_does_no_harm(store: PostgresStore) -> None:
    store.sweep(datetime.now(UTC) + timedelta(days=400))
    commits = keep(store, *(make_commit(large_state(), session_id=f"s{n}") for n in range(3)))
    SyncClient(store).gc(grace_seconds=0)

    for commit in commits:
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_a_damaged_chunk_is_mended_by_who_saves_it_again(
    postgres: PostgresServer, store: PostgresStore, schema: str
) -> None:
    (first,) = keep(store, make_commit(large_state()))
    postgres.execute(f"UPDATE {schema}.chunks SET data = 'damaged'")

    keep(store, make_commit(large_state()))

    assert state_of(store.load(first.info.checkpoint_id)) == large_state()


def listening(server: PostgresServer) -> list[int]:
    """The processes of the server that listen for the store."""
    found = server.execute(
        "SELECT pid FROM pg_stat_activity "
        "WHERE application_name = 'counted' AND query LIKE 'LISTEN%'"
    )
    return [pid for (pid,) in found]


def test_all_who_wait_share_one_connection(postgres: PostgresServer, store: PostgresStore) -> None:
    client = SyncClient(store)
    met = threading.Barrier(WRITERS + 1)

    def wait() -> str:
        met.wait()
        return next(iter(client.subscribe("news", timeout=60))).channel

    async def wait_on_a_loop() -> list[str]:
        async def one() -> str:
            async for event in Client(store).subscribe("other news", timeout=60):
                return event.channel
            return "none"

        return list(await asyncio.gather(*(one() for _ in range(WRITERS))))

    def run_a_loop() -> list[str]:
        met.wait()
        return asyncio.run(wait_on_a_loop())

    with ThreadPoolExecutor(WRITERS + 1) as threads:
        told = [threads.submit(wait) for _ in range(WRITERS)]
        of_loop = threads.submit(run_a_loop)
        wait_until(
            lambda: (
                len(store._listener._waiting) == 2
                and sum(map(len, store._listener._waiting.values())) == 2 * WRITERS
            ),
            "that all wait",
        )
        assert len(listening(postgres)) == 1
        client.publish("news", data={})
        client.publish("other news", data={})

        assert [each.result(50) for each in told] == ["news"] * WRITERS
        assert of_loop.result(50) == ["other news"] * WRITERS
    assert len(listening(postgres)) == 1


def test_only_those_who_wait_for_a_scope_are_woken(store: PostgresStore) -> None:
    with (
        store._listener.listening("/events/one") as one,
        store._listener.listening("/events/two") as two,
    ):
        store.commit(NotesOnly((make_note("/events/one"),), {}))
        one.result(50)

        assert not two.done()


def test_a_connection_that_is_lost_is_said_and_comes_back(
    postgres: PostgresServer, store: PostgresStore, caplog: pytest.LogCaptureFixture
) -> None:
    with (
        caplog.at_level(logging.WARNING, "holdfast"),
        store._listener.listening("/events/one") as woken,
    ):
        (pid,) = listening(postgres)
        postgres.execute("SELECT pg_terminate_backend(%s)", pid)
        woken.result(50)  # to look for itself

    (said,) = caplog.messages
    assert "tells of new notes was lost" in said
    with store._listener.listening("/events/one") as woken:
        store.commit(NotesOnly((make_note("/events/one"),), {}))
        woken.result(50)
    assert pid not in listening(postgres)


def test_who_waits_when_the_store_is_closed_is_woken(postgres: PostgresServer, schema: str) -> None:
    store = PostgresStore(postgres.dsn, schema=schema)
    with store._listener.listening("/events/one") as woken:
        store.close()
        woken.result(50)


def test_a_wait_ends_though_nothing_is_told(store: PostgresStore) -> None:
    assert LONGEST < 10
    store.wait("/events/none", 0, 0.01)


def test_a_schema_of_format_3_is_brought_up_to_date_with_all_it_holds(
    postgres: PostgresServer, schema: str
) -> None:
    old = [make_commit(large_state(), session_id=f"s{n}") for n in range(3)]
    note = make_note("/events/all", "old")

    def run(connection: Any, statement: str, *values: Any) -> None:
        connection.execute(sql.in_schema(statement, schema).encode(), values or None)

    with psycopg.connect(postgres.dsn, autocommit=True, cursor_factory=psycopg.RawCursor) as before:
        for script in (sql.create_schema(schema), sql.CREATE_META, *sql.MIGRATIONS[:3]):
            run(before, script)
        run(before, sql.ALL_FILED)
        run(before, sql.WRITE_VERSION, 3)
        for commit in old[:2]:
            chunks = [list(commit.chunks), list(commit.chunks.values())]
            values = [*record_values(commit), *note_columns((note,) if commit is old[0] else ())]
            run(before, sql.KEEP, *chunks, *values, None, None, None, None, [])

        with PostgresStore(postgres.dsn, schema=schema) as store:
            # A process that has had the store open since goes on.
            chunks = [list(old[2].chunks), list(old[2].chunks.values())]
            values = [*record_values(old[2]), *note_columns(())]
            run(before, sql.KEEP, *chunks, *values, None, None, None, None, [])
            keep(store, make_commit(large_state(), session_id="new"))
            store.commit(NotesOnly((make_note("/events/all", "new"),), {}))
            client = SyncClient(store)
            client.gc(grace_seconds=0)

            assert client.verify().ok
            assert [n.key for n in store.notes(["/events/all"])] == ["old", "new"]
            for commit in old:
                assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
