"""What is removed at the worst moment: gc, prune and expire between the steps of another's work."""

import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointNotFoundError, SyncClient
from holdfast.stores.base import Commit, NotesOnly
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import crash_points


def state_at(step: int) -> dict[str, Any]:
    return {
        "step": step,
        "messages": [f"message {i} " + "and more " * 30 for i in range(50 + step)],
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "holdfast.db"


@pytest.fixture
def client(path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(path) as client:
        yield client


@pytest.fixture
def other(path: Path, client: SyncClient) -> Iterator[SyncClient]:
    """A client of another process, as it were."""
    with SyncClient.sqlite(path) as other:
        yield other


def remove_all(client: SyncClient) -> None:
    for info in client.find(limit=None):
        client.expire(info.checkpoint_id)
    client.gc(grace_seconds=0)
    assert client.stats().chunks == 0


def test_a_save_sends_everything_again_if_its_base_was_removed(
    client: SyncClient, other: SyncClient
) -> None:
    client.save("a", execution_state=state_at(0), session_id="s")
    remove_all(other)

    saved = client.save("a", execution_state=state_at(1), session_id="s")

    checkpoint = other.restore(saved)
    assert checkpoint.execution_state == state_at(1)
    assert checkpoint.parent_id is None


def test_a_save_goes_on_from_what_is_the_head_now(client: SyncClient, other: SyncClient) -> None:
    first = client.save("a", execution_state=state_at(0), session_id="s")
    second = client.save("a", execution_state=state_at(1), session_id="s")
    other.expire(second)
    other.gc(grace_seconds=0)

    third = client.save("a", execution_state=state_at(2), session_id="s")

    assert other.restore(third).execution_state == state_at(2)
    assert [info.checkpoint_id for info in other.ancestors(third)] == [first]


def test_a_save_after_a_restore_sends_everything_again_if_that_was_removed(
    client: SyncClient, other: SyncClient
) -> None:
    saved = other.save("a", execution_state=state_at(0), session_id="s")
    client.restore(saved)
    remove_all(other)

    again = client.save("a", execution_state=state_at(1), session_id="s")

    assert other.restore(again).execution_state == state_at(1)


def test_an_append_only_save_sends_everything_again_if_its_base_was_removed(
    client: SyncClient, other: SyncClient
) -> None:
    for step in range(2):
        client.save("a", execution_state=state_at(step), session_id="s", append_only=["messages"])
    remove_all(other)

    saved = client.save("a", execution_state=state_at(2), session_id="s", append_only=["messages"])

    assert other.restore(saved).execution_state == state_at(2)


def test_a_checkpoint_built_on_one_that_was_removed_is_refused(
    client: SyncClient, other: SyncClient
) -> None:
    saved = client.save("a", execution_state=state_at(0), session_id="s")
    remove_all(other)

    for use in (
        lambda: client.fork(saved),
        lambda: client.fork(saved, execution_state=state_at(1)),
        lambda: client.handoff(saved, "b"),
        lambda: client.save("a", execution_state=state_at(1), parent_id=saved),
    ):
        with pytest.raises(CheckpointNotFoundError, match=saved):
            use()
    assert client.find() == []


class ForkSource(SqliteStore):
    """Removes what is to be forked after it was found and before the fork is written."""

    remover: SyncClient

    def commit(self, commit: Commit | NotesOnly) -> None:
        remove_all(self.remover)
        super().commit(commit)


def test_a_fork_whose_source_vanishes_meanwhile_is_refused(path: Path, other: SyncClient) -> None:
    saved = other.save("a", execution_state=state_at(0), session_id="s")
    store = ForkSource(path)
    store.remover = other

    with SyncClient(store) as client, pytest.raises(CheckpointNotFoundError, match=saved):
        client.fork(saved)

    assert other.find() == []


def test_an_import_sends_a_part_again_that_was_removed_meanwhile(
    client: SyncClient, other: SyncClient, tmp_path: Path
) -> None:
    with SyncClient.memory() as source:
        for step in range(6):
            source.save("a", execution_state=state_at(step), session_id="s")
        source.export(tmp_path / "bundle")

    client.import_(
        tmp_path / "bundle", progress=lambda done, _: remove_all(other) if done < 6 else None
    )

    (left,) = client.find()
    assert client.restore(left.checkpoint_id).execution_state == state_at(5)
    assert client.verify().ok


class SlowCollector(SqliteStore):
    """Stops between looking for what is live and removing the rest."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.looked = threading.Event()
        self.go_on = threading.Event()

    def sweep(self, now: datetime) -> int:
        return 0

    def roots(self, include_expired: bool, take: Callable[[list[bytes]], object]) -> None:
        super().roots(include_expired, take)
        self.looked.set()
        assert self.go_on.wait(60)


def test_a_save_that_waited_for_the_file_when_gc_began_is_not_collected(
    path: Path, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = threading.Event()
    patiently = client.store._db._patiently  # type: ignore[attr-defined]

    def signalling(db: sqlite3.Connection, statement: str) -> None:
        if statement == "BEGIN IMMEDIATE":
            waits.set()
        patiently(db, statement)

    monkeypatch.setattr(client.store._db, "_patiently", signalling)  # type: ignore[attr-defined]
    collector = SlowCollector(path)
    lock = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    lock.execute("BEGIN IMMEDIATE")
    with SyncClient(collector) as other, ThreadPoolExecutor(2) as threads:
        saving = threads.submit(client.save, "a", execution_state=state_at(0))
        assert waits.wait(60)
        collecting = threads.submit(other.gc, grace_seconds=0)
        assert collector.looked.wait(60)
        lock.execute("COMMIT")
        lock.close()
        saved = saving.result(60)
        collector.go_on.set()

        assert collecting.result(60).chunks == 0

    assert client.restore(saved).execution_state == state_at(0)


def test_a_save_that_was_being_written_when_gc_began_is_not_collected(
    client: SyncClient, other: SyncClient
) -> None:
    reached, go_on = threading.Event(), threading.Event()

    def stop(point: str) -> None:
        if point == "sqlite:chunks_written":
            reached.set()
            assert go_on.wait(60)

    with crash_points.listening(stop), ThreadPoolExecutor(2) as threads:
        saving = threads.submit(client.save, "a", execution_state=state_at(0))
        assert reached.wait(60)
        collecting = threads.submit(other.gc, grace_seconds=0)
        go_on.set()

        saved = saving.result(60)
        assert collecting.result(60).chunks == 0

    assert client.restore(saved).execution_state == state_at(0)


def test_content_that_is_saved_again_while_it_is_collected_stays(
    path: Path, client: SyncClient
) -> None:
    client.expire(client.save("a", execution_state=state_at(0)))
    collector = SlowCollector(path)
    with (
        SyncClient(collector) as other,
        SyncClient.sqlite(path) as third,
        ThreadPoolExecutor(1) as threads,
    ):
        collecting = threads.submit(other.gc, grace_seconds=0)
        assert collector.looked.wait(60)
        saved = third.save("a", execution_state=state_at(0))
        collector.go_on.set()
        collecting.result(60)

    assert client.restore(saved).execution_state == state_at(0)
