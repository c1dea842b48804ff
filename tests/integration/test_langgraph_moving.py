"""Moving in: what LangGraph's own savers have written goes on with HoldfastSaver."""

import io
import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, redirect_stderr
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver, empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.shallow import ShallowPostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import TASKS
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Send

from holdfast import Client, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, Moved, move_in
from holdfast.cli import main, progress
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    StoreConnectionError,
    StoreError,
    StoreFormatError,
)
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.memory import MemoryStore
from tests.clients import STORES, url_of
from tests.graphs import answer, asking, chat, line, thread
from tests.integration.moving_kit import Threads, assert_same, sqlite_saver
from tests.servers import PostgresServer

KEY = b"0123456789abcdef"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Where the file of another saver is."""
    return tmp_path / "checkpoints.sqlite"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "holdfast.db", durability="normal") as client:
        yield client


def write_chat(path: Path, turns: int = 1, thread_id: str = "chat") -> None:
    """A conversation of so many turns; each is three checkpoints and one write or more."""
    with sqlite_saver(path) as saver:
        graph = chat().compile(checkpointer=saver)
        for number in range(turns):
            graph.invoke({"messages": [("user", f"question {number}")]}, thread(thread_id))


def counts(path: Path) -> tuple[int, int]:
    """The checkpoints and writes of another saver's file."""
    with closing(sqlite3.connect(path)) as db:
        (checkpoints,) = db.execute("SELECT count(*) FROM checkpoints").fetchone()
        (writes,) = db.execute(
            "SELECT count(*) FROM writes JOIN checkpoints "
            "USING (thread_id, checkpoint_ns, checkpoint_id)"
        ).fetchone()
    return checkpoints, writes


def assert_goes_on(
    threads: Threads, ours: BaseCheckpointSaver[str], theirs: BaseCheckpointSaver[str]
) -> None:
    """All goes on as it would have, and nothing that was done is done again."""
    assert threads.work.done == ["a", "b", "c"]
    threads.work.failing = None

    for name, given in threads.next_inputs():
        answered = threads.run(ours, name, given)
        if name == "fan-out":
            assert threads.work.done == ["a", "b", "c", "d"]
        assert answered == threads.run(theirs, name, given)


@pytest.mark.parametrize("store", STORES)
def test_all_threads_of_an_sqlite_file_are_the_same_and_go_on(
    store: str, source: Path, tmp_path: Path
) -> None:
    threads = Threads()
    with sqlite_saver(source) as theirs, SyncClient.open(url_of(store, tmp_path)) as client:
        threads.write(theirs)

        moved = move_in(source, client)

        saver = HoldfastSaver(client)
        assert_same(saver, theirs, at_least=40)
        assert threads.history(saver) == threads.history(theirs)
        assert moved == Moved(len(threads.graphs), counts(source)[0], 0, counts(source)[1])
        assert_goes_on(threads, saver, theirs)


async def test_what_an_async_saver_wrote_is_the_same_and_goes_on(
    source: Path, client: SyncClient
) -> None:
    threads = Threads()
    async with AsyncSqliteSaver.from_conn_string(str(source)) as writer:
        await threads.awrite(writer)

    move_in(source, client)

    saver = HoldfastSaver(client)
    with sqlite_saver(source) as theirs:
        assert_same(saver, theirs, at_least=40)
        assert_goes_on(threads, saver, theirs)


def test_a_move_made_again_adds_nothing(source: Path, client: SyncClient) -> None:
    with sqlite_saver(source) as theirs:
        Threads().write(theirs)
    first = move_in(source, client)
    before, notes = client.stats(), client.store.notes(None)

    again = move_in(source, client)

    assert again == Moved(threads=0, checkpoints=0, skipped=first.checkpoints, writes=0)
    assert client.stats() == before
    assert client.store.notes(None) == notes


def test_a_move_made_again_brings_what_is_new(source: Path, client: SyncClient) -> None:
    with sqlite_saver(source) as theirs:
        graph = asking("who?", "when?").compile(checkpointer=theirs)
        graph.invoke({}, thread("asking"))
        move_in(source, client)
        before = counts(source)

        # Answered, the same checkpoint has another interrupt, and a resume that grows.
        graph.invoke(answer("ada"), thread("asking"))
        second = move_in(source, client)
        assert_same(HoldfastSaver(client), theirs)

        graph.invoke(answer("today"), thread("asking"))
        third = move_in(source, client)
        assert_same(HoldfastSaver(client), theirs)

    assert (second.checkpoints, second.skipped) == (0, before[0])
    assert second.writes > 0
    assert third == Moved(1, counts(source)[0] - before[0], before[0], third.writes)


def test_the_source_is_only_read(source: Path, client: SyncClient) -> None:
    write_chat(source)
    before = source.read_bytes()

    move_in(source, client)

    assert source.read_bytes() == before
    with closing(sqlite3.connect(source)) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_the_record_tells_the_step_its_time_and_its_parent(
    source: Path, client: SyncClient
) -> None:
    write_chat(source)

    move_in(source, client, agent_id="helper")

    newest, *older = client.timeline("helper", "chat")
    assert newest.step_name == "reply"
    assert newest.parent_id == older[0].checkpoint_id
    found = HoldfastSaver(client, agent_id="helper").get_tuple(thread("chat"))
    assert found is not None
    assert newest.created_at.isoformat()[:23] == found.checkpoint["ts"][:23]


def test_states_share_what_they_have_in_common(source: Path, client: SyncClient) -> None:
    write_chat(source, turns=40)

    move_in(source, client)

    assert client.stats().sharing > 10


def test_progress_is_told_up_to_the_end(source: Path, client: SyncClient) -> None:
    write_chat(source, turns=9)
    told: list[tuple[int, int]] = []

    move_in(source, client, progress=lambda done, total: told.append((done, total)))

    assert told == [(20, 27), (27, 27)]


def test_a_file_without_task_paths_is_read_too(source: Path, client: SyncClient) -> None:
    with sqlite_saver(source) as theirs:
        Threads().write(theirs)
    with closing(sqlite3.connect(source)) as db:
        db.execute("ALTER TABLE writes DROP COLUMN task_path")
    expected = counts(source)

    moved = move_in(source, client)

    assert (moved.checkpoints, moved.writes) == expected
    with sqlite_saver(source) as theirs:  # which adds the column, empty
        assert_same(HoldfastSaver(client), theirs)


def test_sends_that_old_checkpoints_hold_are_kept(source: Path, client: SyncClient) -> None:
    sends = [Send("work", {"name": "a"}), Send("work", {"name": "b"})]
    with sqlite_saver(source) as theirs:
        checkpoint: Any = {**empty_checkpoint(), "v": 1, "pending_sends": sends}
        theirs.put(thread("old", checkpoint_ns=""), checkpoint, {"source": "loop", "step": 1}, {})

        move_in(source, client)

        assert_same(HoldfastSaver(client), theirs)


class FailingStore(MemoryStore):
    """A store whose commits fail from one on, until it is mended."""

    def __init__(self) -> None:
        super().__init__()
        self.commits_left: float = float("inf")

    def commit(self, commit: Commit | NotesOnly) -> None:
        if not self.commits_left:
            raise StoreError("the store is gone")
        self.commits_left -= 1
        super().commit(commit)


def test_a_move_that_fails_at_any_commit_is_finished_by_the_next(source: Path) -> None:
    with sqlite_saver(source) as theirs:
        threads = Threads()
        for name, given in threads.inputs():
            if name in ("asking", "nested"):
                threads.run(theirs, name, given)
        expected = {
            found.config["configurable"]["checkpoint_id"]: found for found in theirs.list(None)
        }
        left = 0
        while True:
            store = FailingStore()
            with SyncClient(store) as client:
                saver = HoldfastSaver(client)
                store.commits_left = left
                try:
                    move_in(source, client)
                except StoreError:
                    # What is there is there whole.
                    for found in saver.list(None):
                        assert found == expected[found.config["configurable"]["checkpoint_id"]]
                    store.commits_left = float("inf")
                    move_in(source, client)
                    assert_same(saver, theirs)
                else:
                    break
            left += 1
    assert left > len(expected)


MOVER = """
import sys
from holdfast import SyncClient
from holdfast.adapters.langgraph import move_in

def wait(done, total):
    print(done, flush=True)
    sys.stdin.readline()

with SyncClient.sqlite(sys.argv[2]) as client:
    move_in(sys.argv[1], client, progress=wait)
"""


def test_a_move_that_is_killed_is_finished_by_the_next(source: Path, tmp_path: Path) -> None:
    write_chat(source, turns=20)
    store = tmp_path / "killed.db"
    command = [sys.executable, "-c", MOVER, str(source), str(store)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as mover:
        assert mover.stdin is not None
        assert mover.stdout is not None
        assert mover.stdout.readline() == b"20\n"
        mover.stdin.write(b"\n")
        mover.stdin.flush()
        assert mover.stdout.readline() == b"40\n"
        mover.send_signal(signal.SIGKILL)

    with SyncClient.sqlite(store) as client, sqlite_saver(source) as theirs:
        moved = move_in(source, client)

        assert (moved.checkpoints, moved.skipped) == (20, 40)
        assert_same(HoldfastSaver(client), theirs)


class Interfering(JsonPlusSerializer):
    """A serializer that does something else when it has read a few values."""

    def __init__(self, interfere: Callable[[], None]) -> None:
        super().__init__()
        self._left = 5
        self._interfere = interfere

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self._left -= 1
        if self._left == 0:
            self._interfere()
        return super().loads_typed(data)


def test_a_source_that_is_written_to_meanwhile_is_no_hindrance(
    source: Path, client: SyncClient
) -> None:
    write_chat(source, turns=5)
    plain = JsonPlusSerializer()

    meanwhile = Interfering(lambda: write_chat(source, turns=3))
    move_in(source, client, serde=meanwhile, seal_with=plain)
    move_in(source, client)

    with sqlite_saver(source) as theirs:
        assert_same(HoldfastSaver(client), theirs, at_least=24)


def test_two_moves_at_once_bring_everything_once(source: Path, client: SyncClient) -> None:
    with sqlite_saver(source) as theirs:
        Threads().write(theirs)
        together = threading.Barrier(2, timeout=30)

        def move() -> Moved:
            together.wait()
            return move_in(source, client)

        with ThreadPoolExecutor(2) as pool:
            moves = [pool.submit(move) for _ in range(2)]
            results = [each.result() for each in moves]

        assert_same(HoldfastSaver(client), theirs)
    checkpoints = counts(source)[0]
    assert all(each.checkpoints + each.skipped == checkpoints for each in results)
    assert client.stats().checkpoints == checkpoints


@pytest.fixture
def encrypted() -> EncryptedSerializer:
    return EncryptedSerializer.from_pycryptodome_aes(key=KEY)


def test_what_was_encrypted_stays_so(
    source: Path, client: SyncClient, encrypted: EncryptedSerializer
) -> None:
    with sqlite_saver(source, encrypted) as theirs:
        graph = asking("the secret?").compile(checkpointer=theirs)
        graph.invoke({"log": ["mum"]}, thread("asking"))

        move_in(source, client, serde=encrypted)
        again = move_in(source, client, serde=encrypted)

        assert_same(HoldfastSaver(client, serde=encrypted), theirs)
    assert (again.checkpoints, again.writes) == (0, 0)
    kept = client.latest("langgraph", "asking")
    assert kept is not None
    assert repr(kept.execution_state["values"]["log"]).startswith("<sealed msgpack+aes")


def test_what_was_encrypted_is_readable_if_one_says_so(
    source: Path, client: SyncClient, encrypted: EncryptedSerializer
) -> None:
    with sqlite_saver(source, encrypted) as theirs:
        line("one", "two").compile(checkpointer=theirs).invoke({}, thread("line"))

        move_in(source, client, serde=encrypted, seal_with=JsonPlusSerializer())

        assert_same(HoldfastSaver(client), theirs)
    kept = client.latest("langgraph", "line")
    assert kept is not None
    assert kept.execution_state["values"]["log"] == ["one", "two"]


def test_what_was_plain_can_be_encrypted_on_the_way(
    source: Path, client: SyncClient, encrypted: EncryptedSerializer
) -> None:
    with sqlite_saver(source) as theirs:
        asking("who?").compile(checkpointer=theirs).invoke({"log": ["mum"]}, thread("asking"))

        move_in(source, client, seal_with=encrypted)

        assert_same(HoldfastSaver(client, serde=encrypted), theirs)


def test_a_serializer_that_does_not_fit_is_refused_with_what_came_before_it_kept(
    source: Path, client: SyncClient, encrypted: EncryptedSerializer
) -> None:
    write_chat(source, thread_id="a plain one")
    with sqlite_saver(source, encrypted) as theirs:
        line("one").compile(checkpointer=theirs).invoke({}, thread("secret"))

    with pytest.raises(AdapterError, match=r"thread 'secret' .*serde=that.* run again") as refused:
        move_in(source, client)

    assert "+aes" in str(refused.value)
    assert KEY.decode() not in str(refused.value)
    assert [each.session_id for each in client.sessions()] == ["a plain one"]
    assert move_in(source, client, serde=encrypted).skipped == 3


@dataclass
class Order:
    """A class of the user's, which lives in a module of the user's."""

    number: int


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """That module."""
    module = ModuleType("shop_of_a_user")
    vars(module)["Order"] = Order
    monkeypatch.setattr(Order, "__module__", module.__name__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    return module


def put_order(source: Path) -> None:
    """A thread whose state holds an instance of it."""
    with sqlite_saver(source) as theirs:
        line("one").compile(checkpointer=theirs).invoke({"value": Order(7)}, thread("orders"))


def test_a_class_that_cannot_be_imported_is_named_and_not_turned_into_a_dict(
    source: Path, client: SyncClient, shop: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_order(source)
    monkeypatch.delitem(sys.modules, shop.__name__)

    with pytest.raises(AdapterError, match=r"shop_of_a_user.Order, which cannot be imported here"):
        move_in(source, client)

    assert client.stats().checkpoints == 0
    monkeypatch.setitem(sys.modules, shop.__name__, shop)
    move_in(source, client)
    found = HoldfastSaver(client).get_tuple(thread("orders"))
    assert found is not None
    assert found.checkpoint["channel_values"]["value"] == Order(7)


def test_a_class_that_the_serializer_does_not_allow_is_named(
    source: Path, client: SyncClient, shop: ModuleType
) -> None:
    put_order(source)
    strict = JsonPlusSerializer(allowed_msgpack_modules=None)
    allowing = JsonPlusSerializer(allowed_msgpack_modules=[(shop.__name__, "Order")])

    with pytest.raises(AdapterError, match=r"Order, which the serializer does not allow"):
        move_in(source, client, serde=strict)

    assert move_in(source, client, serde=allowing).checkpoints == 3


def test_a_checkpoint_that_cannot_be_read_is_named_and_all_before_it_is_kept(
    source: Path, client: SyncClient
) -> None:
    write_chat(source, turns=2)
    with closing(sqlite3.connect(source)) as db:
        ids = [row[0] for row in db.execute("SELECT checkpoint_id FROM checkpoints ORDER BY 1")]
        whole = db.execute("SELECT checkpoint FROM checkpoints WHERE checkpoint_id = ?", ids[3:4])
        (data,) = whole.fetchone()
        damage = "UPDATE checkpoints SET checkpoint = ? WHERE checkpoint_id = ?"
        with db:
            db.execute(damage, (data[: len(data) // 2], ids[3]))

        with pytest.raises(AdapterError, match=rf"checkpoint '{ids[3]}' of thread 'chat' cannot"):
            move_in(source, client)
        kept = len(client.timeline("langgraph", "chat"))
        with db:
            db.execute(damage, (data, ids[3]))
        moved = move_in(source, client)

    assert kept == 3
    assert (moved.checkpoints, moved.skipped) == (3, 3)


def not_a_checkpoint(value: object) -> tuple[str, Any]:
    return "checkpoint", JsonPlusSerializer().dumps_typed(value)[1]


@pytest.mark.parametrize(
    ("column", "value", "reason"),
    [
        (*not_a_checkpoint([1, 2]), "is not this checkpoint"),
        (*not_a_checkpoint({"id": "another"}), "is not this checkpoint"),
        ("metadata", b"{", "its metadata is no JSON"),
        ("metadata", b"[]", "its metadata are not those of a checkpoint"),
        ("metadata", b'{"step": "first"}', "its metadata are not those of a checkpoint"),
        ("type", "yaml", "Unknown serialization type: yaml"),
        ("thread_id", " ", "session_id is empty"),
    ],
)
def test_a_row_that_is_no_checkpoint_is_refused(
    source: Path, client: SyncClient, column: str, value: Any, reason: str
) -> None:
    write_chat(source)
    with closing(sqlite3.connect(source)) as db, db:
        db.execute(f"UPDATE checkpoints SET {column} = ?", (value,))

    with pytest.raises(AdapterError, match=f"cannot be moved: .*{reason}"):
        move_in(source, client)

    assert client.stats().checkpoints == 0


def test_a_write_that_cannot_be_read_is_named_by_its_checkpoint(
    source: Path, client: SyncClient
) -> None:
    write_chat(source)
    with closing(sqlite3.connect(source)) as db, db:
        db.execute("UPDATE writes SET value = x'c1'")

    with pytest.raises(AdapterError, match=r"of thread 'chat' cannot be moved: JsonPlus"):
        move_in(source, client)


def test_checkpoints_that_another_agent_has_are_not_taken_for_moved(
    source: Path, client: SyncClient
) -> None:
    write_chat(source)
    move_in(source, client, agent_id="one")

    with pytest.raises(AdapterError, match=r"has it as one of agent 'one': move it in as that"):
        move_in(source, client, agent_id="two")


def test_a_source_that_is_not_there_is_not_made(tmp_path: Path, client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match=r"there is no file .*nowhere.db"):
        move_in(tmp_path / "nowhere.db", client)
    with pytest.raises(InvalidArgumentError, match="there is no file"):
        move_in(tmp_path, client)

    assert not (tmp_path / "nowhere.db").exists()


def test_a_file_that_is_not_of_sqlite_is_refused(source: Path, client: SyncClient) -> None:
    source.write_text("hello " * 1000)

    with pytest.raises(StoreFormatError, match="is not an SQLite file"):
        move_in(source, client)


def test_a_damaged_file_is_refused(source: Path, client: SyncClient) -> None:
    write_chat(source, turns=30)
    data = bytearray(source.read_bytes())
    data[4096 * 2 :] = bytes(len(data) - 4096 * 2)
    source.write_bytes(data)

    with pytest.raises(StoreError, match=r"checkpoints.sqlite cannot be read: .*malformed"):
        move_in(source, client)


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("CREATE TABLE other (x)", "holds no checkpoints of a LangGraph saver"),
        ("CREATE TABLE checkpoints (x)", "holds no checkpoints of a LangGraph saver"),
        (
            "CREATE TABLE checkpoints (thread_id, thread_ts, parent_ts, checkpoint, metadata)",
            "before 1.0",
        ),
    ],
)
def test_an_sqlite_file_of_another_program_is_refused(
    source: Path, client: SyncClient, tables: str, message: str
) -> None:
    with closing(sqlite3.connect(source)) as db:
        db.execute(tables)

    with pytest.raises(StoreFormatError, match=message):
        move_in(source, client)


def test_an_empty_file_is_refused_and_one_without_threads_is_not(
    source: Path, tmp_path: Path, client: SyncClient
) -> None:
    (tmp_path / "empty.db").touch()
    with sqlite_saver(source) as theirs:
        theirs.setup()

    with pytest.raises(StoreFormatError, match="holds no checkpoints"):
        move_in(tmp_path / "empty.db", client)

    assert move_in(source, client) == Moved(0, 0, 0, 0)


def test_a_store_of_holdfast_is_not_a_source(tmp_path: Path, client: SyncClient) -> None:
    client.save("langgraph", execution_state=1)

    with pytest.raises(StoreFormatError, match=r"is a Holdfast store already: open it with"):
        move_in(tmp_path / "holdfast.db", client)


@pytest.mark.parametrize("wrong", [None, 7, b"x", ""])
def test_a_source_is_named_by_a_path_or_a_url(wrong: Any, client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError):
        move_in(wrong, client)


async def test_a_move_needs_a_client_that_is_sync(source: Path) -> None:
    async with Client.memory() as client:
        with pytest.raises(InvalidArgumentError, match="to a SyncClient, not Client"):
            move_in(source, client)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
def dsn(postgres: PostgresServer) -> str:
    """A database of its own for each test."""
    name = postgres.new_schema()
    postgres.execute(f"CREATE DATABASE {name}", database="postgres")
    return postgres.url(database=name)


@pytest.fixture
def theirs(dsn: str) -> Iterator[PostgresSaver]:
    with PostgresSaver.from_conn_string(dsn) as saver:
        saver.setup()
        yield saver


def test_all_threads_of_a_postgres_database_are_the_same_and_go_on(
    dsn: str, theirs: PostgresSaver, client: SyncClient
) -> None:
    threads = Threads()
    threads.write(theirs)

    moved = move_in(dsn, client)
    again = move_in(dsn, client)

    saver = HoldfastSaver(client)
    assert_same(saver, theirs, at_least=40)
    assert threads.history(saver) == threads.history(theirs)
    assert moved.threads == len(threads.graphs)
    assert again == Moved(0, 0, moved.checkpoints, 0)
    assert_goes_on(threads, saver, theirs)


def put_old_sends(theirs: PostgresSaver, versions: dict[str, Any]) -> None:
    """A checkpoint as it was before v4: what its parent's tasks sent is among their writes."""
    parent = theirs.put(
        thread("old", checkpoint_ns=""), empty_checkpoint(), {"source": "input", "step": 0}, {}
    )
    for task in ("t2", "t1"):
        sends = [(TASKS, Send("work", {"name": f"{task} {n}"})) for n in range(2)]
        theirs.put_writes(parent, sends, task, f"path of {task}")
    old: Any = {**empty_checkpoint(), "v": 3, "channel_versions": versions}
    theirs.put(parent, old, {"source": "loop", "step": 1}, {})


def test_sends_that_an_old_postgres_database_has_elsewhere_are_kept(
    dsn: str, theirs: PostgresSaver, client: SyncClient
) -> None:
    put_old_sends(theirs, {"log": f"{2:032}.0", "value": f"{3:032}.0"})

    move_in(dsn, client)

    saver = HoldfastSaver(client)
    assert_same(saver, theirs)
    newest = saver.get_tuple(thread("old"))
    assert newest is not None
    assert [send.arg["name"] for send in newest.checkpoint["channel_values"][TASKS]] == [
        *("t1 0", "t1 1", "t2 0", "t2 1")
    ]


def test_a_postgres_database_without_task_paths_is_read_too(
    dsn: str, theirs: PostgresSaver, client: SyncClient
) -> None:
    asking("who?").compile(checkpointer=theirs).invoke({}, thread("asking"))
    put_old_sends(theirs, {"log": f"{2:032}.0"})
    theirs.conn.execute("ALTER TABLE checkpoint_writes DROP COLUMN task_path")  # type: ignore[union-attr]

    move_in(dsn, client)

    theirs.conn.execute(  # type: ignore[union-attr]
        "ALTER TABLE checkpoint_writes ADD COLUMN task_path TEXT NOT NULL DEFAULT ''"
    )
    assert_same(HoldfastSaver(client), theirs)


def test_what_was_encrypted_in_postgres_stays_so(
    dsn: str, theirs: PostgresSaver, client: SyncClient, encrypted: EncryptedSerializer
) -> None:
    theirs.serde = encrypted
    asking("who?").compile(checkpointer=theirs).invoke({"log": ["mum"]}, thread("asking"))

    move_in(dsn, client, serde=encrypted)

    assert_same(HoldfastSaver(client, serde=encrypted), theirs)


def test_a_postgres_database_is_only_read(
    dsn: str, theirs: PostgresSaver, postgres: PostgresServer, client: SyncClient
) -> None:
    Threads().write(theirs)
    name = dsn.rpartition("/")[2]
    postgres.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    move_in(dsn, client)

    assert_same(HoldfastSaver(client), theirs)


def test_a_move_whose_connection_is_lost_says_so_and_is_finished_by_the_next(
    dsn: str, postgres: PostgresServer, client: SyncClient
) -> None:
    with PostgresSaver.from_conn_string(dsn) as writer:
        writer.setup()
        Threads().write(writer)

    def cut() -> None:
        postgres.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s",
            dsn.rpartition("/")[2],
        )

    with pytest.raises(StoreConnectionError, match=r"went away .* run again to go on"):
        move_in(dsn, client, serde=Interfering(cut), seal_with=JsonPlusSerializer())
    move_in(dsn, client)

    with PostgresSaver.from_conn_string(dsn) as theirs:
        assert_same(HoldfastSaver(client), theirs)


def test_a_postgres_database_of_another_program_is_refused(dsn: str, client: SyncClient) -> None:
    with pytest.raises(StoreFormatError, match=r"holds no checkpoints .*search_path"):
        move_in(dsn, client)


@pytest.mark.filterwarnings("ignore:ShallowPostgresSaver is deprecated")
def test_a_postgres_database_without_history_is_refused(dsn: str, client: SyncClient) -> None:
    with ShallowPostgresSaver.from_conn_string(dsn) as shallow:
        shallow.setup()

    with pytest.raises(StoreFormatError, match="was written by ShallowPostgresSaver"):
        move_in(dsn, client)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://me:hunter2@127.0.0.1:1/agents",
        "postgresql://me:hunter2%zz@127.0.0.1/agents",
        "postgresql://me:pass@hunter2@127.0.0.1/agents",
        "postgresql://me@127.0.0.1:hunter2/agents",
    ],
)
def test_a_postgres_server_that_cannot_be_reached_is_told_without_the_password(
    dsn: str, client: SyncClient
) -> None:
    with pytest.raises((StoreConnectionError, InvalidArgumentError)) as refused:
        move_in(dsn, client)

    assert "PostgreSQL" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def holdfast(directory: Path, *arguments: str, **variables: str) -> Any:
    """Run the command line."""
    environment = {k: v for k, v in os.environ.items() if k != "HOLDFAST_URL"} | variables
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "import", *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_the_command_line_brings_a_file_into_the_embedded_store(
    source: Path, tmp_path: Path
) -> None:
    write_chat(source, turns=2)

    first = holdfast(tmp_path, "langgraph-sqlite", source.name)
    second = holdfast(tmp_path, "langgraph-sqlite", source.name)

    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout.startswith("6 checkpoints of 1 thread and ")
    assert second.stdout.startswith("0 checkpoints of 0 threads and 0 writes brought into the ")
    assert second.stdout.endswith("; 6 checkpoints there already\n")
    with (
        SyncClient.sqlite(tmp_path / ".holdfast" / "holdfast.db") as client,
        sqlite_saver(source) as theirs,
    ):
        assert_same(HoldfastSaver(client), theirs)


def test_the_command_line_takes_a_store_and_an_agent_and_answers_in_json(
    source: Path, tmp_path: Path
) -> None:
    write_chat(source)
    named, default = (f"sqlite:///{tmp_path}/{name}.db" for name in ("named", "default"))

    done = holdfast(
        tmp_path,
        *("langgraph-sqlite", str(source), "--store", named, "--agent", "helper", "--json"),
        HOLDFAST_URL=default,
    )
    other = holdfast(tmp_path, "langgraph-sqlite", str(source), HOLDFAST_URL=default)

    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said == {"threads": 1, "checkpoints": 3, "skipped": 0, "writes": said["writes"]}
    with SyncClient.open(named) as client:
        assert {each.agent_id for each in client.sessions()} == {"helper"}
    assert other.stdout.startswith("3 checkpoints of 1 thread ")
    with SyncClient.open(default) as client:
        assert {each.agent_id for each in client.sessions()} == {"langgraph"}


def test_the_command_line_brings_a_postgres_database(
    dsn: str, theirs: PostgresSaver, tmp_path: Path
) -> None:
    line("one", "two").compile(checkpointer=theirs).invoke({}, thread("line"))
    url = f"sqlite:///{tmp_path}/moved.db"

    done = holdfast(tmp_path, "langgraph-postgres", dsn, "--store", url)

    assert (done.returncode, done.stderr) == (0, "")
    with SyncClient.open(url) as client:
        assert_same(HoldfastSaver(client), theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["langgraph-sqlite", "nowhere.db"], "there is no file nowhere.db"),
        (["langgraph-sqlite", "text"], "text is not an SQLite file"),
        (["langgraph-sqlite", "postgresql://me:hunter2@h/d"], "takes the path of an SQLite file"),
        (["langgraph-postgres", "host=h password=hunter2"], "takes a URL such as postgresql://"),
        (
            ["langgraph-postgres", "postgresql://me:hunter2@127.0.0.1:1/d"],
            "the PostgreSQL server cannot be reached",
        ),
    ],
)
def test_the_command_line_says_what_is_wrong_and_leaves_no_store_behind(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "text").write_text("hello " * 1000)

    done = holdfast(tmp_path, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("holdfast: ")
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert "hunter2" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["text"]


def test_the_command_line_shows_how_far_it_is_on_a_terminal(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    write_chat(source, turns=9)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "_PATIENCE", 0)

    with redirect_stderr(Screen()) as screen:
        assert main(["import", "langgraph-sqlite", source.name]) == 0

    assert screen.getvalue() == "\r\x1b[Kimporting [#################.......] 20/27\r\x1b[K"


def test_a_postgres_database_needs_psycopg_and_says_so(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)

    with pytest.raises(ImportError, match=r"needs psycopg: pip install 'psycopg\[binary\]'"):
        move_in("postgresql://127.0.0.1/agents", client)
