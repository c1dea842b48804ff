"""Moving in: what cannot be read, or may not be, is named, and nothing that came before is lost."""

import sqlite3
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from holdfast import Client, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, Moved, move_in
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    StoreError,
    StoreFormatError,
)
from tests.graphs import asking, line, thread
from tests.integration.moving_kit import KEY, assert_same, sqlite_saver, write_chat

pytest_plugins = ["tests.integration.moving_fixtures"]


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


@pytest.mark.parametrize("trust", [[Order], ["shop_of_a_user:Order"]])
def test_a_class_is_named_and_not_turned_into_a_dict_until_it_is_trusted(
    source: Path, client: SyncClient, shop: ModuleType, trust: list[Any]
) -> None:
    put_order(source)

    named = r"of thread 'orders' cannot be moved: \$\.channel_values\.value: shop_of_a_user:Order"
    with pytest.raises(AdapterError, match=named + r".*--trust shop_of_a_user:Order"):
        move_in(source, client)

    assert client.stats().checkpoints == 0
    move_in(source, client, trust=trust)
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
        ("type", "yaml", "is sealed \\('yaml'\\)"),
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

    with pytest.raises(AdapterError, match=r"of thread 'chat' cannot be moved: it cannot be read"):
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
