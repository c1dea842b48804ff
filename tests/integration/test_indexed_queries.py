"""What is asked of a store is answered by an index, and as the store in memory answers it."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.ids import new_id
from holdfast.stores.base import Note, NotesOnly, Query, SessionInfo, Store
from holdfast.stores.capabilities import FindsSessions
from holdfast.stores.memory import MemoryStore
from holdfast.stores.postgres import schema as pg
from holdfast.stores.postgres.pool import Pool
from holdfast.stores.postgres.rows import note_columns
from holdfast.stores.postgres.store import PostgresStore
from holdfast.stores.postgres.writes import record_values
from holdfast.stores.shared.tags import VALUES, FiledTags, numbers_of
from holdfast.stores.sqlite import SqliteStore
from holdfast.stores.sqlite import schema as sql
from holdfast.stores.sqlite.rows import record_row
from holdfast.testing.samples import expired, ids, keep, make_commit
from tests.servers import PostgresServer

pytest_plugins = ["tests.integration.postgres_fixtures"]

BEGIN = datetime(2025, 1, 1, tzinfo=UTC)
BIG = ("checkpoints", "sessions", "notes", "tags", "chunks")
NEVER = new_id()
ASKED: dict[str, Callable[[Store], Any]] = {
    "a session": lambda store: store.query(Query(session_id="s7", limit=5)),
    "a whole session by name": lambda store: store.query(Query(session_id="s7")),
    "an agent": lambda store: store.query(Query(agent_id="a3", limit=5)),
    "a page of an agent": lambda store: store.query(
        Query(agent_id="a3", limit=5, before=store.query(Query(session_id="s9"))[3].checkpoint_id)
    ),
    "the beginning of a name": lambda store: store.query(Query(session_prefix="s1", limit=5)),
    "a parent": lambda store: store.query(Query(parent_id=NEVER)),
    "parents": lambda store: store.query(Query(parent_ids=[NEVER, "x"], agent_id="a3")),
    "a rare tag": lambda store: store.query(Query(tags={"rare": True}, limit=5)),
    "a rare tag of an agent": lambda store: store.query(
        Query(agent_id="a3", tags={"rare": True}, limit=5)
    ),
    "a session of an agent": lambda store: store.query(
        Query(agent_id="a3", session_id="s8", limit=5)
    ),
    "notes of a scope": lambda store: store.notes(["/quiet"], 1, 10),
    "sessions of a name": lambda store: store.heads(session_id="s7"),
    "sessions by the beginning of their names": lambda store: beginning(store, "a3/s1"),
    "a page of an agent's sessions": lambda store: store.heads("a3", limit=3),
}


def beginning(store: Store, prefix: str) -> list[SessionInfo]:
    finds = store.capability(FindsSessions)
    assert finds is not None
    return finds.beginning(prefix, 200)


def fill(store: Store, sessions: int = 100, each: int = 20) -> None:
    """Keep a few thousand records, of five agents."""
    heads: dict[int, str] = {}
    for number in range(each):
        for session in range(sessions):
            rare = {"rare": True} if (session, number) == (8, 3) else {}
            commit = make_commit(
                agent_id=f"a{session % 5}",
                session_id=f"s{session}",
                parent_id=heads.get(session),
                metadata={"env": "prod", "step": number, **rare},
                created_at=BEGIN + timedelta(seconds=number * sessions + session),
            )
            store.commit(commit)
            heads[session] = commit.info.checkpoint_id
    notes = [Note.of("/busy", f"{number}", b"\x00") for number in range(2000)]
    store.commit(NotesOnly((Note.of("/quiet", "one", b"\x00"), *notes), {}))


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    path = tmp_path_factory.mktemp("indexed") / "store.db"
    with SqliteStore(path, durability="normal") as store:
        fill(store)
        yield store


class Explaining:
    """A connection that notes what each statement looks through."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.plan: list[str] = []

    def execute(self, statement: str, values: Any = ()) -> sqlite3.Cursor:
        rows = self._db.execute(f"EXPLAIN QUERY PLAN {statement}", values)
        self.plan += [row[3] for row in rows]
        return self._db.execute(statement, values)


@pytest.mark.parametrize("asked", ASKED)
def test_sqlite_looks_through_no_table(
    file: SqliteStore, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plans: list[str] = []
    read = file._db.read

    def explained(work: Callable[[Any], Any], is_long: bool = False) -> Any:
        def carried_out(db: sqlite3.Connection) -> Any:
            explaining = Explaining(db)
            found = work(explaining)
            plans.extend(explaining.plan)
            return found

        return read(carried_out, is_long)

    monkeypatch.setattr(file._db, "read", explained)

    ASKED[asked](file)

    scans = [line for line in plans if line.startswith("SCAN") and "subquery" not in line]
    assert plans
    assert scans == []


def test_a_page_of_sessions_reads_no_more_heads_than_it_shows(
    file: SqliteStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    statements: list[str] = []
    db = file._db.writer()
    db.set_trace_callback(statements.append)

    found = file.heads(limit=3)

    db.set_trace_callback(None)
    assert [each.session_id for each in found] == ["s99", "s98", "s97"]
    assert sum("ORDER BY c.seq DESC" in each for each in statements) <= 5


def test_a_page_of_ids_costs_what_it_shows_wherever_it_is(file: SqliteStore) -> None:
    every = file.match("", 3000)
    db, reads = file._db.writer(), file._reads
    taken: list[int] = []

    def count() -> None:
        taken[-1] += 1

    for after in ("", every[len(every) // 2], every[-20]):
        taken.append(0)
        db.set_progress_handler(count, 10)
        found = reads.match(db, "", 10, after)
        db.set_progress_handler(None, 0)
        assert len(found) == 10

    assert max(taken) <= min(taken) + 5


BEGINNINGS = [
    "s",
    "s1",
    "s99",
    "a",
    "a3",
    "a3/",
    "a3/s1",
    "a/s",
    "/s1",
    "s1/",
    "%",
    "",
    "é",
    "\0",
    "/" * 1100,
]


@pytest.mark.parametrize("prefix", BEGINNINGS)
def test_sqlite_finds_the_sessions_whose_whole_names_begin_so(
    file: SqliteStore, prefix: str
) -> None:
    assert beginning(file, prefix) == by_looking(file, prefix)


def by_looking(store: Store, prefix: str) -> list[SessionInfo]:
    return [
        each
        for each in store.heads()
        if each.session_id.startswith(prefix)
        or f"{each.agent_id}/{each.session_id}".startswith(prefix)
    ]


def test_an_agent_in_the_order_of_time_reads_what_is_shown(file: SqliteStore) -> None:
    statements: list[str] = []
    db = file._db.writer()
    db.set_trace_callback(statements.append)

    found = file.query(Query(agent_id="a3", limit=5))

    db.set_trace_callback(None)
    assert [info.session_id for info in found] == ["s98", "s93", "s88", "s83", "s78"]
    assert len([each for each in statements if "c.session = " in each]) <= 12


@pytest.fixture(scope="module")
def tables(postgres: PostgresServer) -> Iterator[PostgresStore]:
    schema = postgres.new_schema()
    with PostgresStore(postgres.dsn, schema=schema) as store:
        fill(store)
        postgres.execute(f"ANALYZE {schema}.checkpoints, {schema}.sessions, {schema}.notes")
        yield store
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.mark.parametrize("prefix", BEGINNINGS)
def test_postgres_finds_the_sessions_whose_whole_names_begin_so(
    tables: PostgresStore, prefix: str
) -> None:
    assert beginning(tables, prefix) == by_looking(tables, prefix)


@pytest.mark.parametrize("asked", ASKED)
def test_postgres_reads_no_record_or_note_but_by_an_index(
    tables: PostgresStore, asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Pool._execute
    plans: list[str] = []

    def explained(pool: Pool, connection: Any, statement: Any) -> Any:
        text, values = statement
        rows = execute(pool, connection, (f"EXPLAIN {text}", values))
        plans.extend(row[0] for row in rows)
        return execute(pool, connection, statement)

    monkeypatch.setattr(Pool, "_execute", explained)

    ASKED[asked](tables)

    # A few sessions fit on a page or two, which no index is quicker than.
    scans = [line for line in plans if "Seq Scan" in line and "sessions" not in line]
    assert plans
    assert scans == []


NAMES = st.sampled_from("abc")
TAGS = st.dictionaries(
    st.sampled_from(["env", "n"]), st.sampled_from([1, True, 1.0, "1", None, [1], *range(2, 14)])
)
RECORDS = st.lists(
    st.tuples(
        NAMES,
        NAMES,
        TAGS,
        st.integers(-3, 3),
        st.integers(0, 30),
        st.sampled_from([False, False, False, True]),
    ),
    max_size=25,
)
QUERIES = st.builds(
    Query,
    agent_id=st.none() | NAMES,
    session_id=st.none() | NAMES,
    session_prefix=st.none() | st.sampled_from(["", "a", "b"]),
    tags=st.just({}) | TAGS,
    since=st.none() | st.just(BEGIN),
    until=st.none() | st.just(BEGIN + timedelta(seconds=1)),
    limit=st.none() | st.integers(0, 7),
    oldest_first=st.booleans(),
    include_expired=st.booleans(),
)
DRAWN = settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def agree(store: Store, records: list[Any], queries: list[Query], removed: list[int]) -> None:
    """See that a store tells of records what the store in memory tells of them."""
    memory = MemoryStore()
    kept: list[str] = []
    for agent, session, tags, when, parent, has_expired in records:
        # No two at one time: between sessions nothing but time decides.
        time = BEGIN + timedelta(milliseconds=when * 700, microseconds=len(kept))
        fields: dict[str, Any] = {"created_at": time}
        if has_expired:
            fields = expired()
        commit = make_commit(
            agent_id=agent,
            session_id=session,
            metadata=tags,
            parent_id=kept[parent] if parent < len(kept) else None,
            **fields,
        )
        for each in (memory, store):
            each.commit(commit)
        kept.append(commit.info.checkpoint_id)
    gone = [kept[number] for number in removed if number < len(kept)]
    for each in (memory, store):
        each.delete(gone)
    for query in queries:
        asked = [query, Query(parent_ids=kept[:3], agent_id=query.agent_id)]
        asked += [Query(**{**_fields(query), "before": each}) for each in kept[:2]]
        for one in asked:
            assert ids(store.query(one)) == ids(memory.query(one)), one
        for before in (None, *kept[-2:]):
            shown = [
                each.heads(
                    query.agent_id,
                    session_id=query.session_id,
                    limit=query.limit,
                    before=before,
                )
                for each in (memory, store)
            ]
            assert shown[0] == shown[1]


def _fields(query: Query) -> dict[str, Any]:
    return {name: getattr(query, name) for name in Query.__dataclass_fields__}


REMOVED = st.lists(st.integers(0, 24), max_size=4)


@DRAWN
@given(RECORDS, st.lists(QUERIES, min_size=1, max_size=4), REMOVED)
def test_sqlite_answers_as_memory_does(
    tmp_path: Path, records: list[Any], queries: list[Query], removed: list[int]
) -> None:
    with SqliteStore(tmp_path / f"{new_id()}.db", durability="normal") as store:
        agree(store, records, queries, removed)


@pytest.fixture(scope="module")
def empty(postgres: PostgresServer) -> Iterator[PostgresStore]:
    schema = postgres.new_schema()
    with PostgresStore(postgres.dsn, schema=schema) as store:
        yield store
    postgres.execute(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@settings(DRAWN, max_examples=25)
@given(RECORDS, st.lists(QUERIES, min_size=1, max_size=3), REMOVED)
def test_postgres_answers_as_memory_does(
    empty: PostgresStore, records: list[Any], queries: list[Query], removed: list[int]
) -> None:
    empty.delete(empty.match("", 1000))

    agree(empty, records, queries, removed)


def test_a_session_is_filed_under_a_tag_once_and_under_few_values_of_a_name() -> None:
    filed = FiledTags()

    numbers = [list(filed.unfiled({"n": n, "env": "prod"})) for n in range(20)]

    assert [len(each) for each in numbers] == [2, *[1] * VALUES, *[0] * (19 - VALUES)]
    assert numbers[VALUES] == list(numbers_of("n", "any")[:1])
    assert numbers_of("n", True) != numbers_of("n", 1)
    assert list(filed.unfiled({"list": [1]})) == list(numbers_of("list", [2]))


def write_format_3(path: Path, sessions: int = 20, each: int = 100) -> list[str]:
    """Make a file as 0.3 did; returns the ids of its records."""
    kept: list[str] = []
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for statement in sql.statements(0, 3):
            db.execute(statement)
        db.execute(f"PRAGMA application_id = {sql.APPLICATION_ID}")
        db.execute("PRAGMA user_version = 3")
        db.execute("BEGIN")
        for session in range(sessions):
            db.execute("INSERT INTO sessions VALUES (?, ?, ?)", (session + 1, "a", f"s{session}"))
            for number in range(each):
                seq = 2**60 + (number * sessions + session) * 2**20
                when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=seq // 1024)
                info = make_commit(
                    agent_id="a",
                    session_id=f"s{session}",
                    parent_id=kept[-1] if number else None,
                    metadata={"env": "prod", "number": number, "session": session},
                    created_at=when,
                ).info
                db.execute(sql.INSERT_CHECKPOINT, record_row(info, session + 1, seq))
                kept.append(info.checkpoint_id)
        db.execute("COMMIT")
    return kept


def check_migrated(store: Store, kept: list[str]) -> None:
    assert [each.checkpoint_id for each in store.query(Query(parent_id=kept[10]))] == [kept[11]]
    assert len(store.query(Query(tags={"session": 7}))) == 100
    assert len(store.query(Query(tags={"number": 99}, limit=50))) == 20
    assert [each.session_id for each in store.heads(limit=2)] == ["s19", "s18"]
    assert [each.session_id for each in store.query(Query(agent_id="a", limit=2))] == ["s19", "s18"]


def test_a_file_of_an_earlier_format_is_brought_to_the_new_indexes(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kept = write_format_3(tmp_path / "old.db")
    caplog.set_level("INFO", "holdfast")

    with SqliteStore(tmp_path / "old.db") as store:
        check_migrated(store, kept)

    assert f"from format 3 to {sql.VERSION}" in caplog.text


OPENING = """
import os, signal, sys
from holdfast.stores.sqlite import SqliteStore, connection

connection._FILED_AT_ONCE = 100
left, write = int(sys.argv[2]), connection.Connections._alone

def killed(self, db, work):
    global left
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return write(self, db, work)

connection.Connections._alone = killed
with SqliteStore(sys.argv[1]) as store:
    print(len(store.query.__name__))
"""


def test_who_brings_a_file_to_the_new_indexes_may_be_killed_at_every_step(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    kept = write_format_3(path)
    places: list[tuple[int, int | None]] = []

    for _ in range(100):
        done = subprocess.run(
            [sys.executable, "-c", OPENING, os.fspath(path), "3"], env=os.environ, check=False
        )
        with closing(sqlite3.connect(path)) as db:
            (version,) = db.execute("PRAGMA user_version").fetchone()
            place = db.execute("SELECT place FROM filing").fetchone() if version == 4 else None
        places.append((version, None if place is None else place[0]))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL

    assert places[-1] == (sql.VERSION, None)
    assert sum(version == sql.FILING for version, _ in places) > 3
    filing = [place for version, place in places if version == sql.FILING and place is not None]
    assert filing == sorted(filing, reverse=True)
    with SqliteStore(path) as store:
        check_migrated(store, kept)


def test_a_schema_of_0_3_is_filed_step_by_step_and_again_after_a_kill(
    postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = [
        make_commit(session_id=f"s{n % 4}", metadata={"session": n % 4, "number": n, "env": "x"})
        for n in range(60)
    ]
    with psycopg.connect(
        postgres.dsn, autocommit=True, cursor_factory=psycopg.RawCursor
    ) as connection:
        for script in (pg.create_schema(schema), pg.CREATE_META, *pg.MIGRATIONS[:2]):
            connection.execute(pg.in_schema(script, schema).encode())
        connection.execute(pg.in_schema(pg.WRITE_VERSION, schema).encode(), [2])
        keep_of_0_3 = f"SELECT holdfast.keep({', '.join(f'${n}' for n in range(1, 27))})"
        for commit in old:
            values = [*record_values(commit), *note_columns(()), None, None, None, None]
            chunks = [list(commit.chunks), list(commit.chunks.values())]
            connection.execute(pg.in_schema(keep_of_0_3, schema).encode(), [*chunks, *values])
    monkeypatch.setattr("holdfast.stores.postgres.writes.PAGE", 10)
    execute, left = Pool._execute, [17]

    def dying(pool: Pool, connection: Any, statement: Any) -> Any:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        return execute(pool, connection, statement)

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "_execute", dying)
        with pytest.raises(KeyboardInterrupt):
            PostgresStore(postgres.dsn, schema=schema)
    unfiled = f"SELECT count(*) FROM {schema}.sessions WHERE NOT filed"
    with psycopg.connect(postgres.dsn) as connection:
        row = connection.execute(unfiled.encode()).fetchone()
    assert row is not None
    assert 0 < row[0] < 4

    with PostgresStore(postgres.dsn, schema=schema) as store:
        keep(store, make_commit(session_id="s1", metadata={"late": 1}))

        assert len(store.query(Query(tags={"session": 1}))) == 15
        assert len(store.query(Query(tags={"number": 17}))) == 1
        assert len(store.query(Query(tags={"late": 1}, limit=3))) == 1
        assert [each.session_id for each in store.heads(limit=2)] == ["s1", "s3"]
    with psycopg.connect(postgres.dsn) as connection:
        assert connection.execute(unfiled.encode()).fetchone() == (0,)
