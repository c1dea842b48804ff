"""What is shown of a session costs what that session is: nothing else of the store is read."""

from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import LazyClient
from holdfast.cli.commands.diff import compared
from holdfast.cli.commands.log import View
from holdfast.model import CheckpointInfo
from holdfast.stores import WrappedStore, open_store
from holdfast.stores.base import Query, SessionInfo
from holdfast.stores.memory import MemoryStore

OTHERS, EACH = 30, 4


class Counting(WrappedStore):
    """Counts the records and sessions that it gives."""

    given = 0

    def query(self, query: Query) -> list[CheckpointInfo]:
        return self._counted(super().query(query))

    def heads(self, agent_id: str | None = None, **asked: Any) -> list[SessionInfo]:
        return self._counted(super().heads(agent_id, **asked))

    def _counted(self, found: list[Any]) -> list[Any]:
        self.given += len(found)
        return found


@pytest.fixture
def store() -> Iterator[Counting]:
    store = Counting(MemoryStore())
    with SyncClient(store) as client:
        for number in range(EACH):
            for session in range(OTHERS):
                client.save("coder", execution_state={}, session_id=f"s{session}")
            client.save("coder", execution_state={"n": number}, session_id="x", step_index=number)
        head = client.timeline("coder", "x")[0]
        fork = client.fork(head.checkpoint_id, session_id="x.1")
        client.save("coder", execution_state={}, session_id="x.1", parent_id=fork)
        store.given = 0
        yield store


@pytest.mark.parametrize("named", ["x@", "x@~3", "coder/x@~2", "@", "@~1"])
def test_naming_a_checkpoint_reads_its_session_at_most(store: Counting, named: str) -> None:
    Names(LazyClient(store)).checkpoint(named)

    assert store.given <= 3 * EACH


def test_a_tree_is_drawn_of_what_hangs_together(store: Counting) -> None:
    view = View(
        LazyClient(store),
        Namespace(session="x", graph=True, all=False, limit=None, messages=False),
    )

    assert {info.session_id for info in view.shown} == {"x", "x.1"}
    assert len(view.shown) == EACH + 2
    assert store.given < OTHERS * EACH / 2


def test_the_tree_of_a_session_reads_what_descends_from_it(store: Counting) -> None:
    with SyncClient(store) as client:
        tree = client.tree("coder", "x")

    assert len(tree) == EACH + 2
    assert store.given < OTHERS * EACH / 2


def test_a_diff_reads_the_two_that_it_compares(store: Counting) -> None:
    with SyncClient(store) as client:
        names = Names(client)
        new = names.checkpoint("x@")
        old = names.checkpoint("x@~1")
        seen = compared(client, old, new)

    assert seen.changes.changed["n"] == (EACH - 2, EACH - 1)
    assert store.given <= 4 * EACH


def test_what_no_name_of_the_newest_fits_is_still_found(
    store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.cli.access.naming._NEAR", 5)
    with SyncClient(store) as client:
        oldest = client.timeline("coder", "s3")[-1]
        named = client.save("other", execution_state={}, session_id="named", step_name="the step")
        for number in range(9):
            client.save("other", execution_state={}, session_id="since", step_index=number)
        names = Names(client)

        assert names.checkpoint("the step").checkpoint_id == named
        assert names.checkpoint(oldest.checkpoint_id[-12:]) == oldest


def test_a_log_of_all_sessions_reads_what_it_shows(store: Counting) -> None:
    shown = 5
    view = View(
        LazyClient(store),
        Namespace(session=None, graph=False, all=True, limit=shown, messages=False),
    )

    assert [info.session_id for info in view.shown] == ["x.1", "x.1", "x", "s29", "s28"]
    assert view.left_out == "older ones"
    assert [view.markers(info) for info in view.shown] == [
        ["head"],
        [],
        ["head"],
        ["head"],
        ["head"],
    ]
    assert store.given <= 5 * shown


@pytest.fixture(params=["memory", "sqlite"])
def branching(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SyncClient]:
    """Sessions of which some steps were left behind, by going on from an earlier one."""
    with open_store(
        "memory://" if request.param == "memory" else f"sqlite:///{tmp_path}/store.db"
    ) as store:
        client = SyncClient(store)
        for session in ("a", "b", "c"):
            first = client.save("coder", execution_state={}, session_id=session)
            for number in range(3):
                client.save("coder", execution_state={"n": number}, session_id=session)
            client.save("coder", execution_state={}, session_id=session, parent_id=first)
        client.fork(client.timeline("coder", "a")[2].checkpoint_id, session_id="a.1")
        yield client


@pytest.mark.parametrize("limit", [1, 3, 7, 12, 50])
def test_a_page_of_all_sessions_says_what_all_of_them_say(
    branching: SyncClient, limit: int
) -> None:
    def view(graph: bool, limit: int | None) -> View:
        options = Namespace(session=None, graph=graph, all=True, limit=limit, messages=False)
        return View(LazyClient(branching.store), options)

    page, whole = view(False, limit), view(True, None)

    assert page.shown == whole.shown[:limit]
    assert list(map(page.markers, page.shown)) == list(map(whole.markers, page.shown))
    assert bool(page.left_out) == (len(whole.shown) > limit)
