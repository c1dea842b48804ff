"""What removes goes in parts: others write in between, and it may be killed and begun again."""

import signal
import tracemalloc
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointInfo, SyncClient
from holdfast.stores import WrappedStore
from holdfast.stores.base import Note, Query
from holdfast.stores.file import writes as file_writes
from holdfast.stores.postgres import writes as postgres_writes
from holdfast.stores.sqlite import writes as sqlite_writes
from holdfast.stores.sqlite.store import SqliteStore
from holdfast.testing import crash_points
from holdfast.verbs import prune, upkeep, verify
from tests.clients import EVERYWHERE, url_of
from tests.integration.fork_server import ForkServer
from tests.integration.upkeep_jobs import AGENT, SESSIONS, STEPS, fill, look_after

pytest_plugins = ["tests.integration.postgres_fixtures", "tests.integration.redis_fixtures"]

JOB = "tests.integration.upkeep_jobs:look_after_until_killed"
KEPT = 2


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer("tests.integration.upkeep_jobs", "holdfast.stores.sqlite.store") as server:
        yield server


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_writes, "PART_SECONDS", 0.0)
    monkeypatch.setattr(file_writes, "_PART", 2)
    monkeypatch.setattr(postgres_writes, "PART", 5)


def steps_left(client: SyncClient) -> dict[str, list[int]]:
    """The steps of each session, whole, the newest first."""
    left: dict[str, list[int]] = {}
    for info in client.find(limit=None, agent_id=AGENT):
        state = client.restore(info.checkpoint_id).execution_state
        assert (f"s{state['of']}", state["step"]) == (info.session_id, info.step_index)
        left.setdefault(info.session_id, []).append(info.step_index)
    return left


PRUNED = {f"s{s}": [STEPS - 1, STEPS - 2] for s in range(SESSIONS)}


@pytest.mark.parametrize("time", [1, 3, 9])
@pytest.mark.parametrize("point", crash_points.UPKEEP_POINTS)
@pytest.mark.parametrize("store", ["sqlite", "file", "redis", "postgres"])
def test_upkeep_that_was_killed_is_begun_again_and_ends(
    store: str, point: str, time: int, server: ForkServer, tmp_path: Path
) -> None:
    url = url_of(store, tmp_path)
    with SyncClient.open(url) as client:
        fill(client)

    ended = server.killed(JOB, url, point, time)

    assert ended.signal in (signal.SIGKILL, 0), ended.error  # there may be no third such point
    assert not ended.error
    with SyncClient.open(url) as client:
        assert client.verify().ok
        for session, steps in steps_left(client).items():
            assert steps[:KEPT] == PRUNED[session]
        look_after(client)
        assert steps_left(client) == PRUNED
        assert client.verify().ok
        assert client.gc(grace_seconds=0).chunks == 0


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("store", EVERYWHERE)
def test_others_save_between_the_parts(store: str, tmp_path: Path) -> None:
    with SyncClient.open(url_of(store, tmp_path)) as client:
        fill(client)
        other = client if store == "memory" else SyncClient.open(url_of(store, tmp_path))
        saved: list[str] = []

        def save(point: str) -> None:
            if point in crash_points.UPKEEP_POINTS and len(saved) < 40:
                for each in (client, other):  # one of this process, and one as of another
                    state = {"n": len(saved), "text": "saved in between " * 50}
                    saved.append(each.save("other", execution_state=state, session_id=point))

        with other, crash_points.listening(save):
            look_after(client)

            assert len(saved) >= (4 if store == "memory" else 8)
            assert steps_left(client) == PRUNED
            for n, checkpoint_id in enumerate(saved):
                assert client.restore(checkpoint_id).execution_state["n"] == n
            assert client.verify().ok


@pytest.mark.usefixtures("small_parts")
def test_sweeping_goes_in_parts(tmp_path: Path) -> None:
    url = url_of("sqlite", tmp_path)
    with SyncClient.open(url) as client, SyncClient.open(url) as other:
        for n in range(10):
            client.save(AGENT, execution_state={"n": n}, ttl_seconds=0)
        saved: list[str] = []

        def save(point: str) -> None:
            saved.append(other.save("other", execution_state={"kept": len(saved)}))

        with crash_points.listening(lambda point: save(point) if point == "upkeep:part" else None):
            assert client.gc(grace_seconds=0).chunks >= 10

        assert len(saved) > 10
        assert len(client.find(limit=None)) == len(saved)


@pytest.mark.parametrize("read", ["query", "heads", "stats", "notes", "roots"])
def test_who_writes_does_not_wait_for_a_long_read_of_this_process(
    read: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = SqliteStore(tmp_path / "holdfast.db")
    with SyncClient(store) as client, ThreadPoolExecutor(1) as threads:
        client.save(AGENT, execution_state={"n": 0})
        original = getattr(store._reads, read)

        def reading(*args: Any) -> Any:
            found = original(*args)
            threads.submit(client.save, AGENT, execution_state={"n": 1}).result(60)
            return found

        monkeypatch.setattr(store._reads, read, reading)
        calls: dict[str, Callable[[], object]] = {
            "query": lambda: store.query(Query()),
            "heads": store.heads,
            "stats": store.stats,
            "notes": lambda: store.notes(None),
            "roots": lambda: store.roots(True, lambda roots: None),
        }
        calls[read]()

        assert len(client.find()) == 2


class Counting(WrappedStore):
    """Knows how much it was asked for or gave at once, at most."""

    largest = 0

    def _count(self, some: Collection[Any] | None) -> None:
        self.largest = max(self.largest, len(some or ()))

    def query(self, query: Query) -> list[CheckpointInfo]:
        found = super().query(query)
        self._count(found)
        return found

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        self._count(names)
        return super().fetch(names)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        found = super().match(prefix, limit, after)
        self._count(found)
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        found = super().notes(scopes, after, limit)
        self._count(found)
        return found

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        self._count(checkpoint_ids)
        return super().delete(checkpoint_ids)

    def collect(self, live: Any, before: datetime, dry_run: bool) -> Any:
        assert not hasattr(live, "__len__")  # no collection of all that is needed
        return super().collect(live, before, dry_run)


@pytest.mark.parametrize("store", ["sqlite", "redis", "postgres"])
def test_nothing_is_held_at_once_that_grows_with_the_store(
    store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, page in (
        (prune, "_PAGE"),
        (upkeep, "_PAGE"),
        (upkeep, "_NODES"),
        (verify, "_PAGE"),
    ):
        monkeypatch.setattr(module, page, 10)
    monkeypatch.setattr("holdfast.verbs.candidates._PAGE", 10)
    monkeypatch.setattr("holdfast.verbs.verify.PAGE", 10)
    with SyncClient.open(url_of(store, tmp_path)) as client:
        counting = Counting(client.store)
        watched = SyncClient(counting)
        for n in range(150):
            client.save(AGENT, execution_state={"n": n, "of": "x" * 5000}, session_id=f"s{n % 30}")

        assert watched.verify().ok
        assert len(watched.prune(last=1)) == 120
        assert watched.gc(grace_seconds=0).chunks > 0

        assert counting.largest == 10
        assert len(client.find(limit=None)) == 30
        assert client.verify().ok


def test_memory_does_not_grow_with_what_is_looked_after(tmp_path: Path) -> None:
    peaks = []
    for times in (1, 4):
        with SyncClient.sqlite(tmp_path / f"{times}.db", durability="normal") as client:
            for n in range(1000 * times):
                client.save(AGENT, execution_state={"n": n}, session_id=f"s{n % 100}")
            client.prune(last=1000, dry_run=True)
            tracemalloc.start()
            for look in (client.verify, lambda: client.gc(dry_run=True)):
                look()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()

    assert peaks[1] < peaks[0] * 1.5 + 500_000


def test_a_prune_of_one_session_reads_that_session(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "holdfast.db", durability="normal") as client:
        counting = Counting(client.store)
        for n in range(200):
            client.save(AGENT, execution_state={"n": n}, session_id=f"s{n % 20}")

        assert len(SyncClient(counting).prune(last=1, session_id="s7")) == 9

        assert counting.largest == 10
        assert len(client.find(limit=None)) == 191


def test_a_prune_goes_on_where_its_page_ended_though_that_was_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prune, "_PAGE", 10)
    with SyncClient.sqlite(tmp_path / "holdfast.db", durability="normal") as client:
        for n in range(35):
            client.save(AGENT, execution_state={"n": n}, session_id="s")

        class Removing(WrappedStore):
            def query(self, query: Query) -> list[CheckpointInfo]:
                found = super().query(query)
                if query.limit and found:
                    self.inner.delete([info.checkpoint_id for info in found[-2:]])
                return found

        SyncClient(Removing(client.store)).prune(last=1)

        assert [info.step_index for info in client.find(limit=None)] == [0]
        assert client.latest(AGENT, "s") is not None


def test_progress_is_told(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "holdfast.db", durability="normal") as client:
        for n in range(300):
            client.save(AGENT, execution_state={"n": n}, session_id="s")
        pruned: list[tuple[int, int | None]] = []
        collected: list[tuple[int, int | None]] = []

        client.prune(last=1, progress=lambda *told: pruned.append(told))
        client.gc(0, progress=lambda *told: collected.append(told))

    for told in (pruned, collected):
        assert len(told) > 1
        assert [done for done, _ in told] == sorted(done for done, _ in told)
        assert told[-1][0] == told[-1][1]
