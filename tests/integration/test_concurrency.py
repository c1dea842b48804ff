"""Many threads, tasks and processes at one SQLite file: nothing is lost, nothing is locked."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    Client,
    StoreClosedError,
    StoreConnectionError,
    StoreError,
    SyncClient,
)
from holdfast.stores.sqlite import connection
from holdfast.stores.sqlite.pending import Pending
from holdfast.stores.sqlite.store import SqliteStore
from tests.integration.concurrency_jobs import AGENT, common, state_at
from tests.integration.fork_server import ForkServer
from tests.integration.kept import assert_all_kept

JOBS = "tests.integration.concurrency_jobs:"
THREADS, TASKS, PROCESSES = 8, 64, 4

Saved = tuple[str, str, int]


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer("tests.integration.concurrency_jobs", "holdfast.stores.sqlite.store") as server:
        yield server


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/holdfast.db"


def test_threads_save_at_once(server: ForkServer, url: str) -> None:
    (saved,) = server.at_once((JOBS + "save_in_threads", url, "p", THREADS, 15))

    assert len(saved) == THREADS * 15
    assert_all_kept(url, saved)


def test_tasks_save_at_once(server: ForkServer, url: str) -> None:
    (saved,) = server.at_once((JOBS + "save_in_tasks", url, "p", TASKS, 4))

    assert len(saved) == TASKS * 4
    assert_all_kept(url, saved)


def test_processes_save_at_once(server: ForkServer, url: str) -> None:
    told = server.at_once(
        *((JOBS + "open_and_save", url, f"process-{i}", 40) for i in range(PROCESSES))
    )

    assert [len(saved) for saved in told] == [40] * PROCESSES
    assert_all_kept(url, *told)


def test_threads_and_tasks_of_processes_save_at_once(server: ForkServer, url: str) -> None:
    job = JOBS + "save_in_threads_and_tasks"

    told = server.at_once(*((job, url, f"p{i}", THREADS, TASKS, 2) for i in range(PROCESSES)))

    assert [len(saved) for saved in told] == [(THREADS + TASKS) * 2] * PROCESSES
    assert_all_kept(url, *told)


@pytest.mark.parametrize("attempt", range(10))
def test_a_new_file_is_opened_first_by_many_processes_at_once(
    server: ForkServer, url: str, attempt: int
) -> None:
    told = server.at_once(*((JOBS + "open_and_save", url, f"process-{i}", 1) for i in range(8)))

    assert [len(saved) for saved in told] == [1] * 8
    assert_all_kept(url, *told)


def test_a_file_is_opened_and_closed_over_and_over_by_many_processes(
    server: ForkServer, url: str
) -> None:
    for attempt in range(5):
        jobs = ((JOBS + "open_and_save", url, f"{attempt}-{i}", 1) for i in range(8))
        assert_all_kept(url, *server.at_once(*jobs))


def test_nothing_needed_is_collected_while_others_save_and_remove(
    server: ForkServer, url: str, tmp_path: Path
) -> None:
    done = tmp_path / "done"
    done.mkdir()
    keepers = [f"keeper-{i}" for i in range(2)]
    removers = [f"remover-{i}" for i in range(2)]

    told = server.at_once(
        (JOBS + "tend", url, str(done), 4),
        *((JOBS + "save_what_others_throw_away", url, name, 40, str(done)) for name in keepers),
        *((JOBS + "throw_away", url, name, 120, str(done)) for name in removers),
    )

    assert [len(saved) for saved in told[1:3]] == [40 * 2] * 2
    assert_all_kept(url, *told[1:3], state_of=lambda _, step: common(step))
    with SyncClient.open(url) as client:
        for name in keepers:
            newest = client.latest("pruned", name)
            assert newest is not None
            assert newest.execution_state == common(39)
        assert client.gc(grace_seconds=0).chunks >= 0
        assert client.verify().ok


def test_nothing_imported_loses_a_part_while_others_collect(
    server: ForkServer, url: str, tmp_path: Path
) -> None:
    done, bundle = tmp_path / "done", tmp_path / "agent.bundle"
    done.mkdir()
    with SyncClient.memory() as source:
        for step in range(30):
            source.save("imported", execution_state=state_at("a", step), session_id="s")
        source.export(bundle)

    told = server.at_once(
        (JOBS + "tend", url, str(done), 1),
        (JOBS + "import_and_remove", url, str(bundle), str(done), 4),
    )

    assert told[0][0] >= 3
    with SyncClient.open(url) as client:
        assert client.verify().ok
        left = client.find(agent_id="imported", limit=None)
        assert left
        for info in left:
            assert client.restore(info.checkpoint_id).execution_state["name"] == "a"


def test_a_client_opened_before_a_fork_serves_parent_and_child(
    server: ForkServer, url: str
) -> None:
    (saved,) = server.at_once((JOBS + "use_after_fork", url, 10))

    assert len(saved) == 30
    assert_all_kept(url, saved)


def test_an_async_client_opened_before_a_fork_serves_parent_and_child(
    server: ForkServer, url: str
) -> None:
    (saved,) = server.at_once((JOBS + "use_async_after_fork", url, 10))

    assert len(saved) == 30
    assert_all_kept(url, saved)


def test_a_forked_child_outlives_its_parent_and_loses_nothing(server: ForkServer, url: str) -> None:
    (saved,) = server.at_once((JOBS + "outlive_the_parent", url, 5))

    assert [name for _, name, _ in saved[::5]] == ["parent", "child", "orphan", "anew"]
    assert_all_kept(url, saved)


def test_a_fork_while_threads_save_leaves_no_lock_locked_and_saves_nothing_twice(
    server: ForkServer, url: str
) -> None:
    (told,) = server.at_once((JOBS + "fork_while_threads_save", url, 40))

    statuses = [status for what, _, status in told if what == "status"]
    assert statuses == [0] * 40
    assert_all_kept(url, [thing for thing in told if thing[0] != "status"])


def test_an_async_client_serves_one_event_loop_after_another(url: str) -> None:
    client = Client.open(url)

    async def save(step: int) -> str:
        saves = [
            client.save(AGENT, execution_state=state_at(str(i), step), session_id=str(i))
            for i in range(4)
        ]
        return (await asyncio.gather(*saves))[0]

    saved = [asyncio.run(save(step)) for step in range(4)]
    chain = asyncio.run(client.timeline(AGENT, "0"))
    asyncio.run(client.close())

    assert [info.checkpoint_id for info in chain] == saved[::-1]
    assert [info.parent_id for info in chain] == [*saved[-2::-1], None]


def test_an_async_client_serves_several_loops_at_once(url: str) -> None:
    client = Client.open(url)

    def in_a_loop(number: int) -> list[str]:
        async def main() -> list[str]:
            return [await save(client, 10 * number + i) for i in range(5)]

        return asyncio.run(main())

    with ThreadPoolExecutor(4) as threads:
        saved = [each for part in threads.map(in_a_loop, range(4)) for each in part]

    async def kept() -> list[str]:
        async with client:
            return [info.checkpoint_id for info in await client.find()]

    assert sorted(asyncio.run(kept())) == sorted(saved)


async def test_cancelled_saves_are_whole_or_absent_and_the_others_are_kept(url: str) -> None:
    async with Client.open(url) as client:
        tasks = [asyncio.create_task(save(client, i)) for i in range(60)]
        for i in range(0, 60, 2):
            for _ in range(i % 7):
                await asyncio.sleep(0)
            tasks[i].cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)

        assert all(isinstance(outcome, str) for outcome in outcomes[1::2])
        assert (await client.verify()).ok
        for i, outcome in enumerate(outcomes):
            head = await client.latest(AGENT, str(i))
            if isinstance(outcome, str):
                assert head is not None
                assert head.checkpoint_id == outcome
            assert head is None or head.execution_state == state_at(str(i), 0)


async def save(client: Client, number: int) -> str:
    return await client.save(
        AGENT, execution_state=state_at(str(number), 0), session_id=str(number)
    )


async def test_a_session_goes_on_after_a_cancelled_save(url: str) -> None:
    async with Client.open(url) as client:
        first = await save(client, 1)
        cancelled = asyncio.create_task(save(client, 1))
        await asyncio.sleep(0)
        cancelled.cancel()
        await asyncio.gather(cancelled, return_exceptions=True)

        second = await save(client, 1)

        head = await client.latest(AGENT, "1")
        assert head is not None
        assert head.checkpoint_id == second
        assert (await client.ancestors(second))[-1].checkpoint_id == first


def test_threads_that_save_to_a_client_being_closed_are_told_and_lose_nothing(url: str) -> None:
    client = SyncClient.open(url)
    enough = threading.Event()
    saved: list[Saved] = []

    def work(number: int) -> BaseException:
        step = 0
        while True:
            name = f"thread-{number}"
            try:
                done = client.save(
                    AGENT, execution_state=state_at(name, step), session_id=name, step_index=step
                )
            except Exception as error:
                return error
            saved.append((done, name, step))
            if len(saved) > 40:
                enough.set()
            step += 1

    with ThreadPoolExecutor(THREADS) as pool:
        errors = [pool.submit(work, number) for number in range(THREADS)]
        assert enough.wait(60)
        client.close()

    assert [type(error.result()) for error in errors] == [StoreClosedError] * THREADS
    assert_all_kept(url, saved)


async def test_tasks_that_save_to_a_client_being_closed_are_told_and_lose_nothing(
    url: str,
) -> None:
    client = Client.open(url)
    tasks = [asyncio.create_task(save(client, number)) for number in range(TASKS)]
    while not any(task.done() for task in tasks):
        await asyncio.sleep(0)

    await client.close()

    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} <= {str, StoreClosedError}
    saved = [(outcome, str(i), 0) for i, outcome in enumerate(outcomes) if type(outcome) is str]
    assert saved
    assert_all_kept(url, saved)


@pytest.mark.parametrize("changes", [False, True])
def test_a_save_that_has_to_be_made_anew_is_of_the_same_state_or_none(
    url: str, monkeypatch: pytest.MonkeyPatch, changes: bool
) -> None:
    state: dict[str, Any] = {"notes": [f"note {i} " * 40 for i in range(200)]}
    with SyncClient.open(url) as client, SyncClient.open(url) as other:
        first = client.save(AGENT, execution_state=state, session_id="s")
        other.expire(first)
        other.gc(grace_seconds=0)
        commit = client.store.commit

        def commit_late(*args: Any) -> None:
            if changes:
                state["notes"][7] = "another"
            commit(*args)

        monkeypatch.setattr(client.store, "commit", commit_late)
        if changes:
            with pytest.raises(StoreError, match="save again"):
                client.save(AGENT, execution_state=state, session_id="s", step_index=1)
            assert client.latest(AGENT, "s") is None
        saved = client.save(AGENT, execution_state=state, session_id="s", step_index=1)

        assert client.restore(saved).execution_state == state


async def test_closing_waits_for_a_save_that_was_queued_while_another_was_just_done(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush, done, go_on = SqliteStore.flush, threading.Event(), threading.Event()

    def held(store: SqliteStore, mine: Pending | None = None) -> list[Pending]:
        batch = flush(store, mine)
        if batch and not done.is_set():
            done.set()
            assert go_on.wait(60)
        return batch

    monkeypatch.setattr(SqliteStore, "flush", held)
    client = Client.open(url)
    first = asyncio.create_task(save(client, 1))
    await asyncio.to_thread(done.wait, 60)
    second = asyncio.create_task(save(client, 2))
    while not client.store._waiting:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    closing = asyncio.create_task(client.close())
    while client.runtime._async_store._committers._held != {}:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    go_on.set()

    assert_all_kept(url, [(await first, "1", 0), (await second, "2", 0)])
    await closing


def test_a_save_queued_as_the_store_was_closed_is_told_so(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SyncClient.open(url) as client:
        client.save(AGENT, execution_state={}, session_id="s")
        store = client.store
        check = store._db.check  # type: ignore[attr-defined]

        def closed_after_check() -> None:
            check()
            monkeypatch.undo()
            store.close()

        monkeypatch.setattr(store._db, "check", closed_after_check)  # type: ignore[attr-defined]
        told: list[Pending] = []
        pending = Pending(None, told.append)  # type: ignore[arg-type]
        store.submit(pending)  # type: ignore[attr-defined]

        assert [type(pending.error) for pending in told] == [StoreClosedError]


def test_a_client_waits_for_another_program_that_writes(url: str, tmp_path: Path) -> None:
    with SyncClient.open(url) as client, ThreadPoolExecutor(1) as thread:
        other = locked_by_another_program(tmp_path)
        waiting = thread.submit(client.save, AGENT, execution_state={"step": 1})
        assert not waiting.done()
        other.execute("COMMIT")
        other.close()

        assert client.restore(waiting.result(timeout=60)).execution_state == {"step": 1}


def test_a_client_says_so_if_another_program_never_stops_writing(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.05)
    with SyncClient.open(url) as client:
        before = client.save(AGENT, execution_state={"step": 1}, session_id="s")
        other = locked_by_another_program(tmp_path)

        with pytest.raises(StoreConnectionError, match="locked by another program"):
            client.save(AGENT, execution_state={"step": 2}, session_id="s")

        assert client.restore(before).execution_state == {"step": 1}
        other.execute("ROLLBACK")
        other.close()
        after = client.save(AGENT, execution_state={"step": 3}, session_id="s")
        assert [info.checkpoint_id for info in client.timeline(AGENT, "s")] == [after, before]


def locked_by_another_program(directory: Path) -> sqlite3.Connection:
    other = sqlite3.connect(directory / "holdfast.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    return other


async def test_an_event_loop_goes_on_while_a_save_waits_for_the_file(
    url: str, tmp_path: Path
) -> None:
    async with Client.open(url) as client:
        other = locked_by_another_program(tmp_path)
        waiting = asyncio.create_task(save(client, 1))
        for _ in range(100):
            await asyncio.sleep(0)
        assert not waiting.done()
        other.execute("COMMIT")
        other.close()

        assert await waiting


async def test_an_event_loop_goes_on_while_a_client_that_waits_is_closed(
    url: str, tmp_path: Path
) -> None:
    client = Client.open(url)
    other = locked_by_another_program(tmp_path)
    waiting = asyncio.create_task(save(client, 1))
    while not client.store._waiting:  # type: ignore[attr-defined]
        await asyncio.sleep(0)
    closing = asyncio.create_task(client.close())
    for _ in range(100):
        await asyncio.sleep(0)
    assert not closing.done()
    other.execute("COMMIT")
    other.close()

    saved = await waiting
    await closing
    assert_all_kept(url, [(saved, "1", 0)])
