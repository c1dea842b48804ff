"""Moving in: what LangGraph's own savers have written goes on with HoldfastSaver."""

import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Send

from holdfast import SyncClient
from holdfast.adapters.langgraph import HoldfastSaver, Moved, move_in
from holdfast.adapters.langgraph.checkpoint_ids import made_at
from holdfast.errors import (
    StoreError,
)
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.memory import MemoryStore
from tests.clients import STORES, url_of
from tests.graphs import answer, asking, thread
from tests.integration.moving_kit import (
    Interfering,
    Threads,
    assert_goes_on,
    assert_same,
    counts,
    sqlite_saver,
    write_chat,
)

pytest_plugins = ["tests.integration.moving_fixtures"]


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
    # LangGraph reads the clock twice, for the id and for "ts": the record goes by the id.
    assert newest.created_at == made_at(found.checkpoint["id"])


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
