"""What is settled is not read any more: counted on every kind of store, with marks and without."""

import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from examples.stores.one_table import OneTableStore
from holdfast import CheckpointBuilder, SyncClient
from holdfast.errors import CheckpointIntegrityError, StillWaitingError
from holdfast.model import CheckpointInfo
from holdfast.stores import (
    FindsLastNotes,
    ListsTargets,
    Note,
    NotesOnly,
    Query,
    Store,
    WrappedStore,
    open_store,
)
from holdfast.stores.objects import LargeBlobs
from holdfast.testing.samples import keep_notes, make_note
from holdfast.verbs import open_marks
from tests.clients import EVERYWHERE, PERSISTENT, SERVERS, url_of

T = TypeVar("T")
FEW = open_marks.FEW
LEFT = 4 * FEW
"""What is read of so few that are settled since a mark: their entries, records and notes."""
SOON = 0.2
KINDS = (*EVERYWHERE, "key-value", "objects", "plain")


class Counting(WrappedStore):
    """Counts the notes and records that are given by the store within."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.read = 0

    def _counted(self, found: list[T]) -> list[T]:
        self.read += len(found)
        return found

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        return self._counted(super().notes(scopes, after, limit))

    def query(self, query: Query) -> list[CheckpointInfo]:
        return self._counted(super().query(query))

    @contextmanager
    def at_most(self, number: int) -> Iterator[None]:
        """Fail if more is read meanwhile."""
        before = self.read
        yield
        assert self.read - before <= number


class CountingLast(Counting):
    """Counts the last notes too."""

    def last_notes(self, scopes: Collection[str], count: int) -> list[Note]:
        able = self.inner.capability(FindsLastNotes)
        assert able is not None
        return self._counted(able.last_notes(scopes, count))


class Plain(Counting):
    """A store that does what every store does, and no more."""

    hidden = (FindsLastNotes, ListsTargets)


def opened(kind: str, directory: Path) -> Counting:
    if kind == "plain":
        return Plain(open_store("memory://"))
    if kind == "key-value":
        return CountingLast(OneTableStore(directory / "kept.db"))
    if kind == "objects":
        return CountingLast(LargeBlobs(open_store("memory://"), f"file://{directory}/blobs"))
    return CountingLast(open_store(url_of(kind, directory)))


@pytest.fixture(params=KINDS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Counting:
    return opened(request.param, tmp_path)


@pytest.fixture
def client(store: Counting) -> Iterator[SyncClient]:
    with SyncClient(store) as client:
        yield client


def work(client: SyncClient) -> str:
    return client.save("clerk", execution_state={"n": 1}, session_id="march")


def offers(client: SyncClient, number: int, agent: str = "approver") -> list[str]:
    saved = work(client)
    return [client.handoff(saved, agent) for _ in range(number)]


def settle(client: SyncClient, number: int) -> None:
    """Make so many offers that are settled in the end, and one turn of a mark, so that all know."""
    made = offers(client, number)
    while not open_marks.is_turn(made[-1]):
        made += offers(client, 1)
    for each in made:
        client.reject(each)


def take(client: SyncClient, agent: str = "approver") -> str | None:
    taken = client.take(agent, timeout=0)
    return None if taken is None else taken.parent_id


def inbox(client: SyncClient, agent: str | None = "approver") -> list[str]:
    return [each.checkpoint_id for each in client.inbox(agent)]


def test_settled_offers_are_not_read(client: SyncClient, store: Counting) -> None:
    settle(client, 6 * FEW)
    waiting = offers(client, 2)

    with store.at_most(LEFT):
        assert inbox(client) == waiting
    with store.at_most(LEFT):
        assert take(client) == waiting[0]
    with pytest.raises(AssertionError), store.at_most(2 * LEFT):
        client.inbox("approver", every=True)


def test_what_waits_for_all_agents_is_read_without_what_is_settled(
    client: SyncClient, store: Counting
) -> None:
    settle(client, 6 * FEW)
    waiting = [*offers(client, 1), *offers(client, 1, "tester")]
    records = 0 if store.capability(ListsTargets) else len(store.query(Query(is_offered=True)))

    with store.at_most(LEFT + records):
        assert inbox(client, None) == waiting


def test_offers_to_very_many_agents_are_found(client: SyncClient, store: Counting) -> None:
    settle(client, FEW + 4)
    saved = work(client)
    agents = [f"agent {n}" for n in range(40)]
    waiting = [client.handoff(saved, agent) for agent in agents] + offers(client, 1)

    assert inbox(client, None) == waiting


def test_who_takes_leaves_a_mark_where_nobody_did(client: SyncClient, store: Counting) -> None:
    for each in offers(client, 2 * FEW):
        if not open_marks.is_turn(each):
            client.reject(each)
    waiting = inbox(client) + offers(client, 2)
    assert take(client) == waiting[0]

    with store.at_most(3 * len(waiting) + 5):
        assert inbox(client) == waiting[1:]


def test_offers_from_before_a_mark_stay_open_until_they_are_settled(
    client: SyncClient, store: Counting
) -> None:
    early = offers(client, 3)
    client.accept(early[1], lease_seconds=3600)
    settle(client, FEW + 4)

    assert inbox(client) == [early[0], early[2]]
    assert [take(client) for _ in early] == [early[0], early[2], None]


def test_a_lease_that_ends_behind_a_mark_is_noticed(client: SyncClient) -> None:
    (early,) = offers(client, 1)
    client.accept(early, lease_seconds=SOON)
    settle(client, FEW + 4)

    again = client.take("approver", timeout=100 * SOON)

    assert again is not None
    assert client.offer(again.checkpoint_id).attempts == 2


def test_every_way_to_make_an_offer_is_seen_behind_a_mark(
    client: SyncClient, tmp_path: Path
) -> None:
    settle(client, FEW + 4)
    saved = work(client)
    quiet = client.handoff(saved, "approver", events=False)
    put = client.put(CheckpointBuilder("clerk").handoff("approver").build())
    bundle, sent = bundle_of_an_offer(tmp_path)
    assert client.import_(bundle).notes == 0
    announced = client.handoff(saved, "approver")
    client.publish("handoffs:approver", saved)
    client.publish("handoffs:approver", None)

    assert sorted(inbox(client)) == sorted([quiet, put, sent, announced])
    assert {take(client) for _ in range(4)} == {quiet, put, sent, announced}


def test_an_offer_that_was_removed_and_comes_again_is_open(
    client: SyncClient, tmp_path: Path
) -> None:
    (offered,) = offers(client, 1)
    client.export(tmp_path / "bundle")
    client.expire(offered)
    settle(client, FEW + 4)
    assert inbox(client) == []

    client.import_(tmp_path / "bundle")

    assert inbox(client) == [offered]


def bundle_of_an_offer(directory: Path) -> tuple[Path, str]:
    with SyncClient.memory() as other:
        sent = other.handoff(other.save("clerk", session_id="april"), "approver")
        other.export(directory / "bundle")
    return directory / "bundle", sent


def test_an_import_needs_no_entries_where_there_are_no_marks(
    client: SyncClient, store: Counting, tmp_path: Path
) -> None:
    bundle, sent = bundle_of_an_offer(tmp_path)

    client.import_(bundle)

    assert store.notes(None) == []
    assert take(client) == sent


def test_an_offer_that_is_imported_while_the_first_mark_is_made_is_found(
    client: SyncClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, sent = bundle_of_an_offer(tmp_path)
    write = open_marks.write

    def late(*given: Any) -> Any:
        client.import_(bundle)
        return write(*given)

    monkeypatch.setattr(open_marks, "write", late)
    settle(client, FEW + 4)

    assert inbox(client) == [sent]


def test_offers_with_names_that_are_too_long_for_a_channel(client: SyncClient) -> None:
    agent = "a" * 1024
    put = client.put(CheckpointBuilder("clerk").handoff(agent).build())

    assert inbox(client, agent) == [put]
    assert inbox(client, None) == [put]


def test_an_offer_that_expires_is_gone_for_all(client: SyncClient) -> None:
    saved = work(client)
    client.handoff(saved, "approver", ttl_seconds=0.001)
    lasting = client.handoff(saved, "approver", ttl_seconds=3600)
    settle(client, FEW + 4)

    assert inbox(client) == [lasting]
    assert take(client) == lasting
    assert take(client) is None


def without_marks(store: Store) -> None:
    """Leave all as an earlier Holdfast would have: without marks and entries."""
    names = {note.scope for note in store.notes(None)}
    store.delete([each for each in names if each.startswith(("/marks/", "/offers/"))])


def test_offers_of_earlier_holdfasts_are_found_and_then_marked(
    client: SyncClient, store: Counting
) -> None:
    early = client.handoff(work(client), "approver", events=False)
    settle(client, FEW + 4)
    without_marks(store)

    assert inbox(client) == [early]
    settle(client, 1)
    with store.at_most(LEFT):
        assert inbox(client) == [early]
    assert take(client) == early


def test_a_lost_mark_costs_reads_and_loses_nothing(client: SyncClient, store: Counting) -> None:
    waiting = offers(client, 2)
    settle(client, FEW + 4)
    marks = {note.scope for note in store.notes(None) if note.scope.startswith("/marks/")}
    store.delete(marks)

    assert inbox(client) == waiting


def marks_of(store: Store) -> list[Note]:
    noted = store.notes(None)
    return [note for note in noted if note.scope.startswith("/marks/") and note.key != "begun"]


def test_a_damaged_mark_is_told(client: SyncClient, store: Counting) -> None:
    settle(client, FEW + 4)
    mark = marks_of(store)[-1]
    store.commit(NotesOnly((Note(mark.scope, "other", mark.body, mark.checksum),), {}))

    with pytest.raises(CheckpointIntegrityError, match="altered after it was written"):
        take(client)


@pytest.mark.parametrize(
    "value",
    [None, {"places": {}}, {"places": {}, "open": {"id": 2**80}}, {"places": 1, "open": {}}],
)
def test_a_mark_of_another_shape_is_told(
    client: SyncClient, store: Counting, value: object
) -> None:
    settle(client, FEW + 4)
    mark = marks_of(store)[-1]
    keep_notes(store, make_note(mark.scope, "other", value))

    with pytest.raises(CheckpointIntegrityError, match="the mark of"):
        take(client)


def test_marks_are_few(client: SyncClient, store: Counting) -> None:
    for _ in range(3):
        settle(client, FEW + 5)

    assert 1 <= len(marks_of(store)) <= len(client.inbox("approver", every=True)) / FEW
    assert client.verify().ok
    assert client.gc(grace_seconds=0).chunks >= 0
    assert inbox(client) == []


@pytest.mark.parametrize("kind", EVERYWHERE)
def test_of_takers_at_once_each_offer_is_had_by_one(kind: str, tmp_path: Path) -> None:
    with SyncClient(opened(kind, tmp_path)) as client:
        made = offers(client, 2 * FEW)
        had: list[str] = []

        def worker() -> None:
            while (taken := client.take("approver", timeout=0)) is not None:
                assert taken.parent_id is not None
                had.append(taken.parent_id)
                client.complete(taken.parent_id)

        threads = [threading.Thread(target=worker) for _ in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()

        assert sorted(had) == sorted(made)


TAKER = """
import sys
from holdfast import SyncClient
with SyncClient.open(sys.argv[1]) as client:
    while True:
        taken = client.take("approver", lease_seconds=0.5, timeout=0)
        print(client.complete(taken.checkpoint_id).checkpoint_id, flush=True)
"""


@pytest.mark.parametrize("kind", [*PERSISTENT, *SERVERS])
def test_killed_takers_lose_no_offer(kind: str, tmp_path: Path) -> None:
    url = url_of(kind, tmp_path)
    done: set[str] = set()
    with SyncClient.open(url) as client:
        made = offers(client, 2 * FEW)
        while len(done) < FEW + 8:  # each start is cut short anywhere after a few
            command = [sys.executable, "-c", TAKER, url]
            with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as taker:
                assert taker.stdout is not None
                done.update(taker.stdout.readline().strip() for _ in range(FEW // 2))
                taker.send_signal(signal.SIGKILL)
                done.update(line.strip() for line in taker.stdout)
        settled = {o.checkpoint_id for o in client.inbox("approver", every=True) if o.outcome}
        assert settled >= done
        for _ in range(len(made) - len(settled)):
            taken = client.take("approver", timeout=30)
            assert taken is not None
            settled.add(client.offer(taken.checkpoint_id).checkpoint_id)

        assert settled == set(made)
        assert client.take("approver", timeout=0) is None


def ask(client: SyncClient, number: int, start: int = 0) -> None:
    with client.session("sender", session_id="s", approval="wait", approval_timeout=0.001) as run:
        for n in range(start, start + number):
            with pytest.raises(StillWaitingError):
                run.call(print, n, effect="irreversible")


def answered_questions(client: SyncClient, number: int) -> None:
    """Ask and answer so much that who asked last left a mark."""
    ask(client, number)
    for each in client.pending():
        client.deny(each.effect_id)
    asked, is_marked = number, False
    while not is_marked:
        ask(client, 1, asked)
        asked += 1
        for each in client.pending():
            is_marked = open_marks.is_turn(each.effect_id)
            client.deny(each.effect_id)


def test_answered_questions_are_not_read(client: SyncClient, store: Counting) -> None:
    answered_questions(client, 2 * FEW)
    ask(client, 2, 1000)

    with store.at_most(3 * FEW):
        waiting = client.pending()

    assert [each.args for each in waiting] == [(1000,), (1001,)]
    with store.at_most(LEFT):
        client.approve(waiting[0].effect_id)
    assert [each.args for each in client.pending()] == [(1001,)]


def test_a_question_from_before_a_mark_is_open_until_it_is_answered(client: SyncClient) -> None:
    ask(client, 1, 5000)
    (early,) = client.pending()
    answered: list[str] = []
    asked = 0
    while len(answered) < 2 * FEW or not open_marks.is_turn(answered[-1]):
        ask(client, 1, asked)
        asked += 1
        found = [each for each in client.pending() if each.effect_id != early.effect_id]
        answered += [each.effect_id for each in found]
        for each in found:
            client.deny(each.effect_id)

    assert client.pending() == [early]
    with pytest.raises(Exception, match="decided of already"):
        client.approve(answered[0])
    assert client.approve(early.effect_id[:12]) == early
    assert client.pending() == []
