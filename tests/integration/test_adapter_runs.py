"""What adapters share whose framework keeps its own state: runs around it, and calls held open."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast import Client, Framework, StoreFullError, UnknownEffectError
from holdfast.adapters.held_calls import HeldCalls
from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.open_runs import OpenRuns
from holdfast.adapters.opening import AdapterStore
from holdfast.errors import SessionBusyError
from holdfast.session.approval import Decision
from holdfast.stores import MemoryStore, WrappedStore
from holdfast.stores.base import Commit, NotesOnly


class Full(WrappedStore):
    """A store that takes no checkpoint more from a moment on, but notes."""

    is_full = False

    def commit(self, commit: Commit | NotesOnly) -> None:
        if self.is_full and isinstance(commit, Commit):
            raise StoreFullError("no space is left")
        super().commit(commit)


@pytest.fixture
def disk() -> Full:
    return Full(MemoryStore())


@pytest.fixture
async def store(disk: Full) -> AsyncIterator[AdapterStore]:
    async with Client(disk) as client:
        yield AdapterStore.of(client)


@pytest.fixture
def kept(store: AdapterStore) -> KeptSessions:
    return KeptSessions(store, Framework.STRANDS, "strands")


@pytest.fixture
def runs(store: AdapterStore, kept: KeptSessions) -> OpenRuns:
    return OpenRuns(store, kept)


def adding(word: str) -> Any:
    return lambda state: {"words": [*(state or {}).get("words", ()), word]}


async def words(store: AdapterStore, kept: KeptSessions) -> Any:
    head = await store.aio.run(kept.head("s"))
    return None if head is None else head.state["words"]


async def test_a_session_is_written_through_the_run_that_holds_it(
    store: AdapterStore, kept: KeptSessions, runs: OpenRuns
) -> None:
    await runs.update("s", adding("before"), name="one", tags={"n": 1})
    opened = await runs.begin("s", None)
    await runs.update("s", adding("within"), name="two", tags={"n": 2})
    assert opened.run.state == {"words": ["before", "within"]}
    await runs.end("s")
    await runs.update("s", adding("after"), name="three", tags={"n": 3})

    assert await words(store, kept) == ["before", "within", "after"]
    steps = store.client.timeline("strands", "s")
    assert [step.step_name for step in steps] == ["three", "end", "two", "one"]
    assert {step.framework for step in steps} == {Framework.STRANDS}


async def test_calls_are_remembered_where_others_wrote_since(
    store: AdapterStore, kept: KeptSessions, runs: OpenRuns
) -> None:
    async def send(arguments: Any) -> str:
        return "sent"

    opened = await runs.begin("s", {"send": "irreversible"}, state={})
    assert await opened.journal.call("send", "c1", {}, send) == "sent"
    await runs.update("s", adding("one"), name="one", tags={})
    await runs.end("s")
    await runs.update("s", adding("two"), name="two", tags={})

    opened = await runs.begin("s", None)
    assert [call.key for call in opened.run.effects] == ["c1"]
    await runs.end("s")


async def test_one_works_in_a_session_at_a_time(runs: OpenRuns) -> None:
    await runs.begin("s", None, state={})
    with pytest.raises(SessionBusyError):
        await runs.begin("s", None)
    await runs.end("s")
    await runs.end("s")
    await runs.begin("s", None)
    await runs.end("s")


async def test_what_could_not_be_kept_ends_the_run_and_is_told_to_whoever_writes_next(
    store: AdapterStore, kept: KeptSessions, runs: OpenRuns, disk: Full
) -> None:
    await runs.update("s", adding("one"), name="one", tags={})
    await runs.begin("s", None)
    disk.is_full = True
    with pytest.raises(StoreFullError):
        await runs.update("s", adding("lost"), name="two", tags={})
    disk.is_full = False
    with pytest.raises(StoreFullError):
        await runs.update("s", adding("late"), name="three", tags={})
    assert await words(store, kept) == ["one"]

    await runs.begin("s", None)
    await runs.update("s", adding("two"), name="two", tags={})
    await runs.end("s")
    assert await words(store, kept) == ["one", "two"]


async def test_a_problem_of_a_call_is_raised_where_the_session_is_written(runs: OpenRuns) -> None:
    opened = await runs.begin("s", {"send": "irreversible"}, state={})
    await opened.calls.begin("send", "c1", {})
    await runs.end("s")  # cut off: of the call nothing more is known

    opened = await runs.begin("s", {"send": "irreversible"})
    with pytest.raises(UnknownEffectError):
        await opened.calls.begin("send", "c1", {})
    with pytest.raises(UnknownEffectError):
        await runs.update("s", adding("x"), name="x", tags={})
    await runs.end("s")


# Calls that their framework makes


@pytest.fixture
async def calls(runs: OpenRuns) -> AsyncIterator[HeldCalls]:
    opened = await runs.begin("s", None, state={})
    yield opened.calls
    await runs.end("s")


async def test_a_call_is_told_as_begun_and_then_as_ended(calls: HeldCalls) -> None:
    begun = await calls.begin("depth", "c1", {"harbour": "south"})
    assert (begun.is_recorded, begun.arguments) == (False, {"harbour": "south"})
    await calls.end("c1", "12 m")
    await calls.end("c1", "again")

    again = await calls.begin("depth", "c1", {"harbour": "south"})
    assert (again.is_recorded, again.output) == (True, "12 m")


async def test_calls_at_once_end_in_any_order(calls: HeldCalls) -> None:
    await asyncio.gather(*(calls.begin("read", f"c{n}", {"n": n}) for n in range(5)))
    await asyncio.gather(*(calls.end(f"c{n}", n) for n in reversed(range(5))))

    for n in range(5):
        assert (await calls.begin("read", f"c{n}", {"n": n})).output == n


async def test_a_call_that_failed_is_recorded_as_that(calls: HeldCalls) -> None:
    await calls.begin("read", "c1", {})
    await calls.fail("c1", ValueError("no page"))
    await calls.fail("c1", ValueError("again"))
    await calls.fail("unknown", ValueError("x"))


async def test_who_approves_may_edit_what_a_call_is_made_with() -> None:
    async with Client.memory() as client:

        def edited(effect: Any) -> Decision:
            return Decision(allowed=True, kwargs={"to": "bob"})

        async with client.session("a", "s", approval=edited) as run:
            calls = HeldCalls(ToolJournal(run, {"send": "irreversible"}))
            begun = await calls.begin("send", "c1", {"to": "ann"})
            assert begun.arguments == {"to": "bob"}
            await calls.end("c1", "sent")
