"""The PostgreSQL store when something is wrong: clear errors, nothing lost, and it recovers."""

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from holdfast import (
    CheckpointConflictError,
    Client,
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
    StoreFullError,
    StoreReadOnlyError,
    SyncClient,
)
from holdfast.errors import NoteExistsError
from holdfast.stores.base import Note, NotesOnly, Query, Store
from holdfast.stores.postgres.store import PostgresStore
from holdfast.testing.samples import keep, large_state, make_commit, state_of
from tests.integration.async_face import AsyncFace
from tests.servers import PASSWORD, Cut, PostgresServer, free_port

pytest_plugins = ["tests.integration.postgres_fixtures"]

Open = Callable[..., Store]


@pytest.fixture(params=["threads", "event loop"])
def open_store(request: pytest.FixtureRequest, schema: str) -> Iterator[Open]:
    """Opens the store of a DSN, to be used directly or through an event loop."""
    opened: list[Any] = []

    def open_store(dsn: str, **options: Any) -> Any:
        store = PostgresStore(dsn, schema=schema, **options)
        opened.append(AsyncFace(store) if request.param == "event loop" else store)
        return opened[-1]

    yield open_store
    for store in opened:
        store.end() if isinstance(store, AsyncFace) else store.close()


def shown(error: BaseException) -> str:
    """All that a log would show of an error."""
    return "".join(traceback.format_exception(error))


def test_without_a_server_the_error_names_the_place_and_no_password(schema: str) -> None:
    port = free_port()
    dsn = f"postgresql://me:hunter2@127.0.0.1:{port}/agents"

    with pytest.raises(StoreConnectionError) as caught:
        PostgresStore(dsn, schema=schema)

    assert f"127.0.0.1:{port}/agents" in str(caught.value)
    assert "check that the server runs" in str(caught.value)
    assert "hunter2" not in shown(caught.value)


def test_a_wrong_password_is_said_and_not_shown(postgres: PostgresServer, schema: str) -> None:
    dsn = postgres.url(password="hunter3")

    with pytest.raises(StoreConnectionError, match="check user and password") as caught:
        PostgresStore(dsn, schema=schema)

    assert "hunter3" not in shown(caught.value)


def test_a_database_that_is_not_there_is_named(postgres: PostgresServer, schema: str) -> None:
    with pytest.raises(StoreConnectionError, match=r"/nowhere .*check user and database"):
        PostgresStore(postgres.url(database="nowhere"), schema=schema)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:secret@[host/db",
        "password=secret colour=red",
        "secret",
        7,
        None,
        b"x",
    ],
    ids=repr,
)
def test_a_dsn_that_is_none_is_refused_and_not_shown(dsn: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="a DSN such as") as caught:
        PostgresStore(dsn)

    assert "secret" not in shown(caught.value).replace(repr(dsn), "")


@pytest.mark.parametrize(
    "options",
    [
        {"pool_size": 0},
        {"pool_size": True},
        {"pool_size": "8"},
        {"timeout": 0},
        {"timeout": "1"},
        {"timeout": float("nan")},
        {"schema": ""},
        {"schema": 'x"; DROP'},
        {"schema": "Upper"},
        {"schema": "x" * 64},
    ],
    ids=repr,
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(InvalidArgumentError, match=next(iter(options))):
        PostgresStore("postgresql://127.0.0.1/agents", **options)


def test_names_never_show_a_password(postgres: PostgresServer, schema: str) -> None:
    with PostgresStore(postgres.dsn, schema=schema) as store, SyncClient(store) as client:
        assert store.name == (
            f"the PostgreSQL store {schema} at 127.0.0.1:{postgres.port}/{postgres.database}"
        )
        assert PASSWORD not in repr(client) + repr(store)


def test_a_server_that_is_silent_is_not_waited_for(fragile: PostgresServer, schema: str) -> None:
    fragile.pause()

    with pytest.raises(StoreConnectionError, match="cannot be reached"):
        PostgresStore(fragile.dsn, schema=schema, timeout=1)


def test_a_restart_of_the_server_is_not_noticed(fragile: PostgresServer, open_store: Open) -> None:
    store = open_store(fragile.dsn)
    (before,) = keep(store, make_commit(large_state()))

    fragile.restart()
    (after,) = keep(store, make_commit(large_state(1), parent_id=before.info.checkpoint_id))
    fragile.restart()

    assert state_of(store.load(before.info.checkpoint_id)) == large_state()
    assert state_of(store.load(after.info.checkpoint_id)) == large_state(1)


def test_what_was_acknowledged_survives_a_loss_of_power(
    fragile: PostgresServer, open_store: Open
) -> None:
    store = open_store(fragile.dsn)
    commits = keep(store, *(make_commit(large_state(seed)) for seed in range(5)))

    fragile.kill()
    fragile.start()

    assert store.query(Query()) == [commit.info for commit in reversed(commits)]
    for seed, commit in enumerate(commits):
        assert state_of(store.load(commit.info.checkpoint_id)) == large_state(seed)


def test_while_the_server_is_gone_saves_fail_and_then_work_again(
    fragile: PostgresServer, open_store: Open
) -> None:
    store = open_store(fragile.dsn)
    keep(store, make_commit())
    fragile.stop()
    lost, kept = make_commit(), make_commit()

    for _ in range(2):
        with pytest.raises(StoreConnectionError, match="check that the server runs"):
            store.commit(lost)
        with pytest.raises(StoreConnectionError):
            store.query(Query())
    fragile.start()
    store.commit(kept)

    assert store.load(lost.info.checkpoint_id) is None
    assert state_of(store.load(kept.info.checkpoint_id)) == {"step": 1}


def test_a_server_that_falls_silent_fails_a_save_and_then_works_again(
    fragile: PostgresServer, open_store: Open
) -> None:
    store = open_store(fragile.dsn, timeout=1)
    keep(store, make_commit())
    in_doubt = make_commit(large_state())

    fragile.pause()
    with pytest.raises(StoreConnectionError, match="may have been kept or not"):
        store.commit(in_doubt)
    fragile.resume()

    (after,) = keep(store, make_commit({"after": True}))
    assert state_of(store.load(after.info.checkpoint_id)) == {"after": True}
    found = store.load(in_doubt.info.checkpoint_id)
    assert found is None or state_of(found) == large_state()


async def test_a_save_that_is_cancelled_does_not_wait_for_a_silent_server(
    fragile: PostgresServer, schema: str
) -> None:
    async with Client(PostgresStore(fragile.dsn, schema=schema, timeout=1000)) as client:
        await client.save("agent", execution_state={"step": 1}, session_id="s")

        fragile.pause()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.save("agent", execution_state={"step": 2}), 0.5)
        fragile.resume()

        saved = await client.save("agent", execution_state={"step": 3}, session_id="s")
        assert (await client.restore(saved)).execution_state == {"step": 3}


@pytest.fixture
def wire(postgres: PostgresServer) -> Iterator[Cut]:
    with Cut(postgres) as wire:
        yield wire


@pytest.mark.parametrize("cut", ["question", "answer"])
def test_a_save_whose_connection_is_cut_is_kept_once(wire: Cut, cut: Any, open_store: Open) -> None:
    store = open_store(wire.dsn)
    note = Note.of("/events", "first", b"\x00body")
    commit = make_commit(large_state())

    wire.next(cut)
    store.commit(commit)
    wire.next(cut)
    store.commit(NotesOnly((note,), {}))

    assert wire.left == 0
    assert store.query(Query()) == [commit.info]
    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
    assert [found.key for found in store.notes(["/events"])] == ["first"]


def test_after_a_cut_what_another_saved_is_still_a_conflict(wire: Cut, open_store: Open) -> None:
    store = open_store(wire.dsn)
    first = make_commit({"which": "first"})
    again = make_commit({"which": "second"}, checkpoint_id=first.info.checkpoint_id)
    keep(store, first)
    store.commit(NotesOnly((Note.of("/events", "key", b"\x00one"),), {}))

    wire.next("answer")
    with pytest.raises(CheckpointConflictError):
        store.commit(again)
    wire.next("answer")
    with pytest.raises(NoteExistsError):
        store.commit(NotesOnly((Note.of("/events", "key", b"\x00two"),), {}))

    assert state_of(store.load(first.info.checkpoint_id)) == {"which": "first"}


def test_a_wire_that_is_cut_again_and_again_is_given_up(wire: Cut, open_store: Open) -> None:
    store = open_store(wire.dsn)
    commit = make_commit()

    wire.next("question", "question")
    with pytest.raises(StoreConnectionError):
        store.commit(commit)

    assert wire.left == 0
    assert store.load(commit.info.checkpoint_id) is None


def test_reading_goes_on_when_the_wire_is_cut(wire: Cut, open_store: Open) -> None:
    store = open_store(wire.dsn)
    (commit,) = keep(store, make_commit(large_state()))

    wire.next("answer")
    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
    wire.next("question")
    assert store.query(Query()) == [commit.info]


@pytest.fixture
def reader(postgres: PostgresServer, schema: str) -> Iterator[str]:
    """The DSN of a role that may look at everything."""
    postgres.execute("CREATE ROLE reader LOGIN PASSWORD 'reading' IN ROLE pg_read_all_data")
    yield postgres.url(user="reader", password="reading")
    postgres.execute("DROP ROLE reader")


def test_where_writing_is_not_granted_a_save_says_so(
    postgres: PostgresServer, reader: str, open_store: Open
) -> None:
    owned = open_store(postgres.dsn)
    (commit,) = keep(owned, make_commit(large_state()))

    store = open_store(reader)

    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
    with pytest.raises(StoreReadOnlyError, match="GRANT what is missing"):
        store.commit(make_commit())


def test_a_role_that_may_not_make_the_tables_is_told_what_is_missing(
    reader: str, schema: str
) -> None:
    with pytest.raises(StoreReadOnlyError, match=r"GRANT .* permission denied for database"):
        PostgresStore(reader, schema=schema)


def test_a_read_only_server_is_read_and_refuses_saves(
    postgres: PostgresServer, open_store: Open
) -> None:
    (commit,) = keep(open_store(postgres.dsn), make_commit(large_state()))

    store = open_store(postgres.dsn + "?options=-c%20default_transaction_read_only%3Don")

    assert store.query(Query()) == [commit.info]
    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
    with pytest.raises(StoreReadOnlyError, match="connect to the primary"):
        store.commit(make_commit())


def test_a_full_disk_keeps_nothing_of_a_save_and_it_goes_on_when_there_is_room(
    postgres: PostgresServer, schema: str, open_store: Open
) -> None:
    store = open_store(postgres.dsn)
    commit = make_commit(large_state())
    # What the server says when a table cannot grow, said at the last moment of a save.
    postgres.execute(
        f"CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$;"
        f"CREATE TRIGGER full_disk AFTER INSERT ON {schema}.chunks EXECUTE FUNCTION {schema}.full()"
    )

    with pytest.raises(StoreFullError, match="free some and save again"):
        store.commit(commit)
    assert store.query(Query()) == []
    assert store.stats().sessions == 0
    postgres.execute(f"DROP TRIGGER full_disk ON {schema}.chunks")

    store.commit(commit)
    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


def test_too_many_connections_are_said_with_the_remedy(
    postgres: PostgresServer, schema: str
) -> None:
    postgres.execute("CREATE ROLE crowd LOGIN PASSWORD 'the whole crowd' CONNECTION LIMIT 0")
    try:
        with pytest.raises(StoreConnectionError, match="lower pool_size or use a pooler"):
            PostgresStore(postgres.url(user="crowd", password="the whole crowd"), schema=schema)
    finally:
        postgres.execute("DROP ROLE crowd")


def test_who_waits_too_long_for_a_connection_is_told_why(
    fragile: PostgresServer, schema: str
) -> None:
    with PostgresStore(fragile.dsn, schema=schema, pool_size=1, timeout=1) as store:
        with store._pool._connection(), pytest.raises(StoreConnectionError, match="pool_size"):
            store.stats()

        assert store.stats().checkpoints == 0


def test_a_store_of_a_newer_version_is_refused(postgres: PostgresServer, schema: str) -> None:
    PostgresStore(postgres.dsn, schema=schema).close()
    postgres.execute(f"UPDATE {schema}.meta SET version = 1000")

    with pytest.raises(StoreFormatError, match=r"has format 1000, .* upgrade Holdfast"):
        PostgresStore(postgres.dsn, schema=schema)


@pytest.mark.parametrize("columns", ["name text", "program text, version int"])
def test_a_schema_of_another_program_is_refused_and_left_alone(
    postgres: PostgresServer, schema: str, columns: str
) -> None:
    postgres.execute(f"CREATE SCHEMA {schema}; CREATE TABLE {schema}.meta ({columns})")

    with pytest.raises(StoreFormatError, match="choose one with schema="):
        PostgresStore(postgres.dsn, schema=schema)

    tables = "SELECT count(*) FROM pg_tables WHERE schemaname = %s"
    assert postgres.execute(tables, schema) == [(1,)]


def test_a_schema_may_be_there_already_and_have_the_name_of_a_word(
    postgres: PostgresServer,
) -> None:
    postgres.execute('CREATE SCHEMA "select"')
    try:
        with PostgresStore(postgres.dsn, schema="select") as store:
            (commit,) = keep(store, make_commit(large_state()))
            assert state_of(store.load(commit.info.checkpoint_id)) == large_state()
    finally:
        postgres.execute('DROP SCHEMA "select" CASCADE')


def test_a_database_of_another_encoding_is_refused(postgres: PostgresServer, schema: str) -> None:
    postgres.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    try:
        with pytest.raises(StoreConnectionError, match="ENCODING 'UTF8'"):
            PostgresStore(postgres.url(database="latin"), schema=schema)
    finally:
        postgres.execute("DROP DATABASE latin WITH (FORCE)")


def test_another_isolation_by_default_is_refused_with_the_remedy(
    postgres: PostgresServer, schema: str
) -> None:
    dsn = postgres.dsn + "?options=-c%20default_transaction_isolation%3Dserializable"

    with pytest.raises(StoreConnectionError, match="ALTER ROLE"):
        PostgresStore(dsn, schema=schema)


def test_tables_that_vanish_are_an_error_of_the_store(
    postgres: PostgresServer, schema: str, open_store: Open
) -> None:
    store = open_store(postgres.dsn)
    postgres.execute(f"DROP SCHEMA {schema} CASCADE")

    with pytest.raises(StoreError, match="does not exist"):
        store.commit(make_commit())


WITHOUT_PSYCOPG = """
import sys
sys.modules["psycopg"] = None
import holdfast.stores.postgres.store
"""


def test_without_psycopg_the_error_says_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_PSYCOPG], capture_output=True, text=True)

    assert done.stderr.splitlines()[-1] == (
        "holdfast.errors.MissingPackageError: the PostgreSQL store needs the package psycopg: "
        "pip install 'holdfast[postgres]'"
    )
