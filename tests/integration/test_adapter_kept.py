"""Sessions that an adapter keeps: the state at the head, whoever wrote that, on every store."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import (
    AdapterError,
    Framework,
    InvalidArgumentError,
    RollbackRefusedError,
    SyncClient,
)
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.errors import NotTheHeadError
from tests.clients import EVERYWHERE, url_of


@pytest.fixture(params=EVERYWHERE)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[AdapterStore]:
    opened = AdapterStore.given(None, url_of(request.param, tmp_path))
    yield opened
    opened.close()


def kept_in(store: AdapterStore, **options: Any) -> KeptSessions:
    return KeptSessions(store, Framework.STRANDS, "strands", **options)


def with_item(item: Any) -> Any:
    return lambda state: [*(state or ()), item]


def state_of(store: AdapterStore, kept: KeptSessions, session_id: str = "s") -> Any:
    head = store.sync.run(kept.head(session_id))
    return None if head is None else head.state


def test_what_was_kept_comes_back_in_another_process(store: AdapterStore) -> None:
    assert state_of(store, kept_in(store)) is None

    for item in range(3):
        store.sync.run(kept_in(store).update("s", with_item(item), name="message"))

    assert state_of(store, kept_in(store)) == [0, 1, 2]
    timeline = store.client.timeline("strands", "s")
    assert [info.step_index for info in timeline] == [2, 1, 0]
    assert {info.framework for info in timeline} == {Framework.STRANDS}


async def test_event_loops_keep_the_same_sessions(store: AdapterStore) -> None:
    kept = kept_in(store)
    await store.aio.run(kept.update("s", with_item("loop"), name="message"))

    assert state_of(store, kept_in(store)) == ["loop"]


def test_writers_at_once_lose_nothing(store: AdapterStore) -> None:
    writers = [kept_in(store) for _ in range(4)]

    def write(number: int) -> None:
        for item in range(5):
            store.sync.run(writers[number].update("s", with_item((number, item)), name=None))

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(write, range(4)))

    found = state_of(store, kept_in(store))
    assert sorted(map(tuple, found)) == [(number, item) for number in range(4) for item in range(5)]
    assert len(store.client.timeline("strands", "s", limit=None)) == 20


def test_a_write_behind_an_old_head_is_refused(store: AdapterStore) -> None:
    kept = kept_in(store)
    first = store.sync.run(kept.write("s", 1, name=None, after=None))
    store.sync.run(kept.write("s", 2, name=None, after=first))

    with pytest.raises(NotTheHeadError):
        store.sync.run(kept.write("s", 3, name=None, after=first))
    with pytest.raises(NotTheHeadError):
        store.sync.run(kept.write("s", 3, name=None, after=None))
    assert state_of(store, kept) == 2


def test_what_was_written_on_the_session_meanwhile_is_what_is_changed(store: AdapterStore) -> None:
    mine, others = kept_in(store), kept_in(store)
    store.sync.run(mine.update("s", with_item("mine"), name=None))
    store.sync.run(others.update("s", with_item("other's"), name=None))

    kept = store.sync.run(mine.update("s", with_item("mine again"), name=None))

    assert kept.state == ["mine", "other's", "mine again"]


def test_a_rollback_is_what_the_framework_sees_next(store: AdapterStore) -> None:
    kept = kept_in(store)
    for item in range(3):
        store.sync.run(kept.update("s", with_item(item), name="message", tags={"app": "shop"}))

    with store.client.session("strands", "s") as run:
        run.rollback(steps=2)

    head = store.sync.run(kept.head("s"))
    assert head is not None
    assert (head.state, head.info.framework) == ([0], Framework.STRANDS)
    assert head.info.metadata["app"] == "shop"
    assert store.sync.run(kept.update("s", with_item("anew"), name=None)).state == [0, "anew"]


def test_a_fork_is_a_session_of_its_own(store: AdapterStore) -> None:
    kept = kept_in(store)
    first = store.sync.run(kept.update("s", with_item(1), name=None))
    store.sync.run(kept.update("s", with_item(2), name=None))

    store.client.fork(first.checkpoint_id, session_id="other way")
    store.sync.run(kept.update("other way", with_item(3), name=None))

    assert state_of(store, kept) == [1, 2]
    assert state_of(store, kept, "other way") == [1, 3]
    assert {each.session_id for each in store.sync.run(kept.listed())} == {"s", "other way"}


def test_a_removed_session_begins_anew(store: AdapterStore) -> None:
    kept = kept_in(store)
    for item in range(3):
        store.sync.run(kept.update("s", with_item(item), name=None))

    assert store.sync.run(kept.remove("s")) == 3
    assert store.sync.run(kept.remove("s")) == 0
    assert store.sync.run(kept.update("s", with_item("anew"), name=None)).state == ["anew"]


def test_a_session_that_was_removed_meanwhile_is_not_brought_back(store: AdapterStore) -> None:
    kept, other = (KeptSessions(store, Framework.STRANDS, "strands") for _ in range(2))
    store.sync.run(kept.update("s", lambda state: ["secret"], name="one"))
    first = store.sync.run(kept.head("s"))
    store.sync.run(other.remove("s"))

    with pytest.raises(NotTheHeadError):
        store.sync.run(kept.write("s", ["more"], name="two", after=first))
    store.sync.run(kept.update("s", lambda state: [*(state or []), "new"], name="three"))

    head = store.sync.run(kept.head("s"))
    assert head is not None
    assert head.state == ["new"]


def test_a_session_whose_head_has_expired_begins_anew(store: AdapterStore) -> None:
    kept = KeptSessions(store, Framework.STRANDS, "strands")
    saved = store.client.save("strands", "strands", ["old"], session_id="s", ttl_seconds=0.001)
    while store.client.find(agent_id="strands"):
        pass  # until nobody sees it

    store.sync.run(kept.update("s", lambda state: [*(state or []), "new"], name="one"))

    head = store.sync.run(kept.head("s"))
    assert head is not None
    assert (head.state, head.info.parent_id) == (["new"], None)
    assert saved


def test_the_session_of_another_framework_is_refused_with_the_way_over(store: AdapterStore) -> None:
    store.client.save("strands", Framework.CREWAI, {"x": 1}, session_id="s")

    with pytest.raises(AdapterError, match=r"is of crewai, not of strands: .*continue_in"):
        store.sync.run(kept_in(store).head("s"))
    with pytest.raises(AdapterError, match="is of crewai, not of strands"):
        store.sync.run(kept_in(store).update("s", with_item(1), name=None))
    with pytest.raises(AdapterError, match=r"is of crewai, not of strands: .*continue_in"):
        store.client.session("strands", "s", framework="strands").__enter__()
    assert not store.sync.run(kept_in(store).listed())


def test_the_context_and_the_tasks_of_a_session_stay(store: AdapterStore) -> None:
    with store.client.session("strands", "s", framework="strands", context={"user": "ada"}) as run:
        run.state = ["begun"]
        run.tasks.plan("look")

    store.sync.run(kept_in(store).update("s", with_item("more"), name=None))

    latest = store.client.latest("strands", "s")
    assert latest is not None
    assert latest.agent_context == {"user": "ada"}
    assert [task["name"] for task in latest.tasks] == ["look"]


def test_what_a_run_called_on_the_session_is_not_forgotten(store: AdapterStore) -> None:
    kept = kept_in(store)
    first = store.sync.run(kept.update("s", with_item("a"), name=None))
    with store.client.session("strands", "s") as run:
        run.call(str, "pay", effect="irreversible")
    store.sync.run(kept.update("s", with_item("b"), name=None))

    with store.client.session("strands", "s") as run, pytest.raises(RollbackRefusedError):
        run.rollback(to=first.checkpoint_id)


def test_a_call_that_is_to_be_retried_is_so_past_what_others_write(store: AdapterStore) -> None:
    class Cut(BaseException):
        """Ends a call as a kill would."""

    def pay(cut: bool) -> str:
        if cut:
            raise Cut
        return "paid"

    kept, made = kept_in(store), []

    def charge(amount: int) -> str:
        made.append(amount)
        return pay(cut=len(made) == 1)

    store.sync.run(kept.update("s", with_item("a"), name=None))
    with pytest.raises(Cut), store.client.session("strands", "s") as run:
        run.call(charge, 9, effect="irreversible", key="k")
    (unknown,) = store.client.unknown_effects()
    store.client.resolve(unknown.effect_id, retry=True)
    store.sync.run(kept.update("s", with_item("b"), name=None))

    with store.client.session("strands", "s") as run:
        assert run.call(charge, 9, effect="irreversible", key="k") == "paid"
    assert made == [9, 9]


def test_the_files_are_kept_with_each_state(tmp_path: Path, repo: Path) -> None:
    store = AdapterStore.given(None, f"sqlite:///{tmp_path}/h.db")
    kept = kept_in(store, workspace=repo)
    (repo / "main.py").write_text("first")
    first = store.sync.run(kept.update("s", with_item(1), name=None))
    (repo / "main.py").write_text("second")
    store.sync.run(kept.update("s", with_item(2), name=None))

    with store.client.session("strands", "s", workspace=repo) as run:
        run.rollback(to=first.checkpoint_id)

    assert (repo / "main.py").read_text() == "first"
    assert state_of(store, kept) == [1]
    kept.close()
    store.close()


def test_a_write_in_the_middle_of_a_tool_keeps_the_files_of_the_head(
    tmp_path: Path, repo: Path
) -> None:
    store = AdapterStore.given(None, f"sqlite:///{tmp_path / 'store.db'}")
    kept = kept_in(store, workspace=repo)
    whole = store.sync.run(kept.update("s", with_item("a"), name="tool"))
    (repo / "half.txt").write_text("half")

    later = store.sync.run(kept.update("s", with_item("b"), name="model", captures=False))

    assert later.checkpoint.workspace == whole.checkpoint.workspace
    assert store.client.restore(later.checkpoint_id).workspace == whole.checkpoint.workspace
    kept.close()
    store.close()


def test_a_client_and_a_url_are_too_much() -> None:
    with SyncClient.memory() as client, pytest.raises(InvalidArgumentError, match="not both"):
        AdapterStore.given(client, "memory://")


@pytest.mark.parametrize("wrong", ["", 7, None, "x" * 5000])
def test_a_session_has_a_name(wrong: Any) -> None:
    store = AdapterStore.given(None, "memory://")
    with pytest.raises(InvalidArgumentError, match="session_id"):
        store.sync.run(kept_in(store).head(wrong))
    store.close()
