"""Moving in from PostgreSQL."""

from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.postgres.shallow import ShallowPostgresSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import TASKS
from langgraph.types import Send

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, Moved, move_in
from holdfast.errors import (
    InvalidArgumentError,
    StoreConnectionError,
    StoreFormatError,
)
from tests.graphs import asking, thread
from tests.integration.moving_kit import Interfering, Threads, assert_goes_on, assert_same
from tests.servers import PostgresServer

pytest_plugins = ["tests.integration.moving_fixtures"]


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
    dsn: str, theirs: PostgresSaver, old_server: PostgresServer, client: SyncClient
) -> None:
    Threads().write(theirs)
    name = dsn.rpartition("/")[2]
    old_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")

    move_in(dsn, client)

    assert_same(HoldfastSaver(client), theirs)


def test_a_move_whose_connection_is_lost_says_so_and_is_finished_by_the_next(
    dsn: str, old_server: PostgresServer, client: SyncClient
) -> None:
    with PostgresSaver.from_conn_string(dsn) as writer:
        writer.setup()
        Threads().write(writer)

    def cut() -> None:
        old_server.execute(
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
