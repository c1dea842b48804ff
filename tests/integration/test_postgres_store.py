"""The PostgreSQL store against a real server: the contract, for threads and for event loops."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any, Self

import psycopg
import pytest

from holdfast import InvalidArgumentError, SyncClient
from holdfast.stores.base import Note, Query
from holdfast.stores.postgres import schema as sql
from holdfast.stores.postgres.pool import Pool
from holdfast.stores.postgres.reads import PostgresPlan, PostgresReads, Where
from holdfast.stores.postgres.rows import note_columns
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.postgres.writes import record_values
from holdfast.testing import OpenStore, StoreContract
from holdfast.testing.samples import keep, large_state, make_commit, state_of
from tests.integration.async_face import on_loops
from tests.servers import PgBouncer, PostgresServer

pytest_plugins = ["tests.integration.postgres_fixtures"]


class TestPostgresStore(StoreContract):
    @pytest.fixture
    def open_store(self, postgres: PostgresServer, schema: str) -> OpenStore:
        return lambda: PostgresStore(postgres.dsn, schema=schema)


class TestPostgresStoreBehindAPooler(StoreContract):
    """A pooler that gives each transaction another connection."""

    @pytest.fixture
    def open_store(self, pgbouncer: PgBouncer, schema: str) -> OpenStore:
        return lambda: PostgresStore(pgbouncer.dsn, schema=schema)


class TestPostgresStoreOnAnEventLoop(StoreContract):
    @pytest.fixture
    def open_store(self, postgres: PostgresServer, schema: str) -> Iterator[OpenStore]:
        yield from on_loops(lambda: PostgresStore(postgres.dsn, schema=schema))


@pytest.fixture
def store(postgres: PostgresServer, schema: str) -> Iterator[PostgresStore]:
    with PostgresStore(postgres.dsn, schema=schema) as store:
        yield store


def test_a_schema_of_0_2_is_brought_up_to_date_with_all_it_holds(
    postgres: PostgresServer, schema: str
) -> None:
    old = [make_commit({"n": n}) for n in range(3)]
    with psycopg.connect(
        postgres.dsn, autocommit=True, cursor_factory=psycopg.RawCursor
    ) as connection:
        for script in (sql.create_schema(schema), sql.CREATE_META, sql.MIGRATIONS[0]):
            connection.execute(sql.in_schema(script, schema).encode())
        connection.execute(sql.in_schema(sql.WRITE_VERSION, schema).encode(), [1])
        keep_of_0_2 = f"SELECT holdfast.keep({', '.join(f'${n}' for n in range(1, 23))})"
        for commit in old:
            values = [*record_values(commit), *note_columns(())]
            chunks = [list(commit.chunks), list(commit.chunks.values())]
            connection.execute(sql.in_schema(keep_of_0_2, schema).encode(), [*chunks, *values])

    with PostgresStore(postgres.dsn, schema=schema) as store:
        late = make_commit({"n": 3}, created_at=datetime(2020, 1, 1, tzinfo=UTC))
        store.commit(late)

        assert store.query(Query()) == [late.info, *(each.info for each in reversed(old))]
        assert [state_of(store.load(each.info.checkpoint_id)) for each in (*old, late)] == [
            {"n": n} for n in range(4)
        ]


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is sent to the server, as it is sent."""
    sent: list[str] = []
    execute = Pool._execute

    def listen(pool: Pool, connection: Any, statement: Any) -> Any:
        sent.append(statement[0])
        return execute(pool, connection, statement)

    monkeypatch.setattr(Pool, "_execute", listen)
    return sent


def test_a_save_is_one_round_trip(store: PostgresStore, statements: list[str]) -> None:
    (first,) = keep(store, make_commit(large_state()))
    note = Note.of(first.info.checkpoint_id, "key", b"\x00body")
    commit = make_commit(large_state(1), base=first, parent_id=first.info.checkpoint_id)

    store.commit(replace(commit, notes=(note,)))

    assert len(statements) == 2


def test_a_small_state_is_loaded_in_one_round_trip_and_any_in_one_for_each_level(
    store: PostgresStore, statements: list[str]
) -> None:
    small = make_commit({"step": 1, "notes": "to be kept " * 400})
    large = make_commit({"words": [f"{i} " * 200 for i in range(3000)]})
    fork = replace(make_commit(base=small), info=small.info.with_(checkpoint_id="fork"), chunks={})
    keep(store, small, large, fork)
    assert len(small.chunks) > 1
    taken = []

    for commit in (small, fork, large):
        statements.clear()
        record = store.load(commit.info.checkpoint_id)
        assert record is not None
        taken.append(len(statements))

    assert taken[:2] == [1, 1]
    assert taken[2] <= 3


def test_names_of_any_length_are_kept_and_ids_that_no_index_takes_are_refused(
    store: PostgresStore,
) -> None:
    chance = random.Random(1)
    long, other = ("".join(map(chr, chance.choices(range(0x4E00, 0x9FA5), k=1024))) for _ in "ab")
    commits = [
        make_commit(agent_id=name, session_id=name, handoff_target=name) for name in (long, other)
    ]
    keep(store, *commits)

    for name, commit in zip((long, other), commits, strict=True):
        for query in (
            Query(agent_id=name, session_id=name),
            Query(agent_id=name),
            Query(session_id=name),
            Query(session_prefix=name[:1000]),
            Query(handoff_target=name),
        ):
            assert store.query(query) == [commit.info]
    with pytest.raises(InvalidArgumentError, match="too long to be kept"):
        store.commit(make_commit(checkpoint_id=long))
    assert len(store.query(Query())) == 2


def test_every_listing_finds_an_index(postgres: PostgresServer, schema: str) -> None:
    """With sequential scans made dear, none is left in the plans."""
    with PostgresStore(postgres.dsn + "?options=-c%20enable_seqscan%3Doff", schema=schema) as store:
        keep(store, make_commit(handoff_target="t"))
        for query in (
            Query(limit=1),
            Query(ids=["a"]),
            Query(agent_id="a"),
            Query(session_id="a"),
            Query(session_prefix="a"),
            Query(agent_id="a", session_id="b", before="c", limit=1),
            Query(parent_id="a"),
            Query(handoff_target="a", limit=1),
            Query(since=datetime.now(UTC), until=datetime.now(UTC), limit=1),
        ):
            plan = store._carry_out(explained, store._plans, query)
            assert "Seq Scan" not in plan, plan


def explained(plans: PostgresReads, query: Query) -> PostgresPlan[str]:
    """How the server would answer a query."""
    steps = plans._ask(*Where(query).select(query.limit))
    statement, values = next(steps)
    rows = yield "EXPLAIN " + statement, values
    return "\n".join(row[0] for row in rows)


def test_collecting_goes_by_the_clock_of_the_server(store: PostgresStore) -> None:
    """Who has a clock that is ahead does not take what was saved since then for old."""
    hour = timedelta(hours=1)
    began = datetime.now(UTC) + hour
    (commit,) = keep(store, make_commit(large_state()))

    with clock_ahead(hour):
        assert store.collect([], began, False).chunks == 0

    assert state_of(store.load(commit.info.checkpoint_id)) == large_state()


@contextmanager
def clock_ahead(difference: timedelta) -> Iterator[None]:
    """Have the store believe that it is later than it is."""

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Self:
            return super().now(tz) + difference

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("holdfast.stores.postgres.writes.datetime", Ahead)
        yield


def test_records_that_are_not_found_where_they_are_filed_are_named(
    postgres: PostgresServer, schema: str, store: PostgresStore
) -> None:
    with SyncClient(store) as client:
        tagged = client.save("coder", execution_state={}, session_id="tagged", ticket="T-1")
        late = client.save("coder", execution_state={}, session_id="late")
        assert client.verify().ok
        sessions = f"{schema}.sessions"
        postgres.execute(f"UPDATE {sessions} SET tags = '{{}}' WHERE session = 'tagged'")
        postgres.execute(f"UPDATE {sessions} SET touched = touched - 1 WHERE session = 'late'")

        found = {each.checkpoint_id: each.reason for each in client.verify().damaged}

    assert found.keys() == {tagged, late}
    assert "'ticket'" in found[tagged]
    assert "touched before it" in found[late]
