"""The head of a session is what was saved last on it, whatever the clocks of who saved say."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import CheckpointBuilder, SyncClient, ids
from tests.clients import FACES, PERSISTENT, SERVERS, Face, end, url_of


@pytest.fixture(params=[*PERSISTENT, *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture(params=FACES)
def face(request: pytest.FixtureRequest) -> Face:
    return FACES[request.param]


class Clocks:
    """The clock of this process, which becomes that of another when it is set."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._patch, self._real = monkeypatch, time.time_ns

    def set(self, seconds: float) -> None:
        real = self._real
        self._patch.setattr(ids, "_clock", ids._Clock())
        self._patch.setattr(time, "time_ns", lambda: real() + int(seconds * 1e9))


@pytest.fixture
def clocks(monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(monkeypatch)


@pytest.fixture
def clients(face: Face, url: str) -> Iterator[list[Any]]:
    """Two processes with a client each."""
    opened = [face.open(url), face.open(url)]
    yield opened
    for client in opened:
        end(client)


def save(client: Any, number: int) -> str:
    saved: str = client.save("a", execution_state={"n": number}, session_id="s")
    return saved


def test_a_clock_set_back_between_two_processes_hides_nothing(
    clients: list[Any], clocks: Clocks
) -> None:
    first, second = clients
    saved = [save(first, 1), save(first, 2)]
    clocks.set(-3600)
    saved += [save(second, 3), save(second, 4)]

    for client in clients:
        assert client.latest("a", "s").execution_state == {"n": 4}
        assert [i.checkpoint_id for i in client.timeline("a", "s")] == saved[::-1]
        assert [i.checkpoint_id for i in client.ancestors(saved[-1])] == saved[-2::-1]
        assert client.sessions("a")[0].head.checkpoint_id == saved[-1]


def test_processes_that_save_in_turns_each_follow_what_was_saved_last(
    clients: list[Any], clocks: Clocks
) -> None:
    saved = []
    for number in range(12):
        clocks.set([0, -60, 3600, -86400, 1][number % 5])
        saved.append(save(clients[number % 2], number))
        for client in clients:
            assert client.latest("a", "s").execution_state == {"n": number}

    assert [i.checkpoint_id for i in clients[0].timeline("a", "s")] == saved[::-1]
    assert [i.checkpoint_id for i in clients[0].ancestors(saved[-1])] == saved[-2::-1]
    pages = []
    before = None
    while page := clients[0].timeline("a", "s", limit=5, before=before):
        pages += [info.checkpoint_id for info in page]
        before = pages[-1]
    assert pages == saved[::-1]


def test_a_checkpoint_that_was_built_before_and_is_put_last_is_the_head(
    clients: list[Any],
) -> None:
    old = CheckpointBuilder("a").session("s").execution_state({"n": 1}).build()
    save(clients[0], 2)

    clients[1].put(old)

    assert clients[0].latest("a", "s").checkpoint_id == old.checkpoint_id
    assert clients[0].latest("a", "s").created_at == old.created_at
    assert save(clients[0], 3) == clients[1].latest("a", "s").checkpoint_id
    assert clients[0].ancestors(clients[0].latest("a", "s").checkpoint_id)[0].created_at == (
        old.created_at
    )


def test_a_bundle_keeps_the_order_of_the_store_it_comes_from(
    clients: list[Any], clocks: Clocks, tmp_path: Path
) -> None:
    saved = []
    for number in range(8):
        clocks.set([0, -60, 3600, -86400][number % 4])
        saved.append(save(clients[number % 2], number))
    clients[0].export(tmp_path / "bundle", agent_id="a")

    with SyncClient.open(url_of("sqlite", tmp_path / "elsewhere")) as there:
        there.import_(tmp_path / "bundle")
        assert [i.checkpoint_id for i in there.timeline("a", "s")] == saved[::-1]
        clocks.set(-7 * 86400)
        saved.append(there.save("a", execution_state={"n": 8}, session_id="s"))
        newest = there.latest("a", "s")
        assert newest is not None
        assert newest.execution_state == {"n": 8}
        there.export(tmp_path / "back", agent_id="a")

    clients[0].import_(tmp_path / "back")
    assert [i.checkpoint_id for i in clients[0].timeline("a", "s")] == saved[::-1]


def test_what_a_bundle_brings_back_does_not_overtake_what_was_saved_since(
    clients: list[Any], tmp_path: Path
) -> None:
    saved = [save(clients[0], number) for number in range(3)]
    clients[0].export(tmp_path / "bundle", agent_id="a")
    clients[0].expire(saved[1])
    saved.append(save(clients[0], 3))

    assert clients[0].import_(tmp_path / "bundle").checkpoints == 1

    assert [i.checkpoint_id for i in clients[0].timeline("a", "s")] == saved[::-1]
    assert clients[0].latest("a", "s").execution_state == {"n": 3}


def test_a_tree_shows_parents_before_children_whatever_their_times(
    clients: list[Any], clocks: Clocks
) -> None:
    saved = []
    for number in range(4):
        clocks.set(-3600 * number)
        saved.append(save(clients[0], number))

    tree = clients[0].tree("a", "s")

    assert [node.info.checkpoint_id for node in tree] == saved


def test_saves_of_one_session_at_once_are_all_listed(clients: list[Any], url: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with SyncClient.open(url) as client, ThreadPoolExecutor(8) as threads:
        saved = list(threads.map(lambda number: save(client, number), range(40)))
        listed = [info.checkpoint_id for info in client.timeline("a", "s", limit=100)]
        assert sorted(listed) == sorted(saved)
        head = client.latest("a", "s")
        assert head is not None
        assert head.checkpoint_id == listed[0]
