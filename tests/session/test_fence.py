"""A process that was stopped and lost its session wakes up: nothing that it writes counts.

The process is stopped at a named point, another takes its session over and works on it, and then it
goes on as if nothing had happened.
"""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import (
    CheckpointIntegrityError,
    HandoffError,
    SessionLostError,
    UnknownEffectError,
)
from holdfast.stores.base import Note
from holdfast.stores.urls import open_store
from holdfast.testing import crash_points
from tests.clients import PERSISTENT, SERVERS, url_of
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut
from tests.session.test_lease import Clock, clock, elsewhere

__all__ = ["clock", "elsewhere"]

COMMITS = {"redis": "redis:begun", "postgres": "postgres:begun"}
"""Points just before a commit reaches the server."""


@pytest.fixture(params=[*PERSISTENT, *SERVERS])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@contextmanager
def stopped_at(point: str, meanwhile: Callable[[], object], time: int = 1) -> Iterator[None]:
    """The block is stopped when it comes to a point, and goes on when that was done meanwhile."""
    passed = 0

    def reached(name: str) -> None:
        nonlocal passed
        passed += name == point
        if name == point and passed == time:
            crash_points.clear()
            meanwhile()

    with crash_points.listening(reached):
        yield
    assert passed >= time, f"it never came to {point}"


class Other:
    """Another process, which takes the session over, pays, and is killed."""

    def __init__(self, url: str, clock: Clock, tools: Tools) -> None:
        self.url, self.clock, self.tools = url, clock, tools
        self.saves = True

    def __call__(self) -> None:
        self.clock.ahead = timedelta(seconds=61)
        how: dict[str, Any] = {"session_id": SESSION, "takeover": True, "lease_seconds": 60}
        with SyncClient.open(self.url) as client, power_cut():
            with client.session(AGENT, **how) as run:
                self.work(run)
                raise PowerCut
        self.clock.ahead = timedelta()

    def work(self, run: Any) -> None:
        if self.saves:
            run.state["by"] = "the other"
            run.checkpoint("the other's")
        pay(run, self.tools)


def pay(run: Any, tools: Tools) -> Any:
    return run.call(tools.send, "rent", effect="irreversible")


@pytest.fixture
def other(url: str, clock: Clock, elsewhere: None, tools: Tools) -> Other:
    return Other(url, clock, tools)


def check(client: Any, tools: Tools, by: str | None = "the other") -> None:
    """What the other did stands, and is what is resumed; nothing is paid again."""
    latest = client.latest(AGENT, SESSION)
    assert latest.execution_state.get("by") == by
    steps = [info.step_name for info in client.timeline(AGENT, SESSION)]
    assert "woken" not in steps
    assert steps.count("start") <= 1
    with client.session(AGENT, session_id=SESSION) as run:
        assert run.state.get("by") == by
        pay(run, tools)
    assert tools.names().count("send") == 1


def test_the_first_checkpoint_of_who_lost_the_session_is_not_kept(
    client: Any, session: Open, other: Other, tools: Tools, tmp_path: Path
) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "file").write_text("text")
    with pytest.raises(SessionLostError):
        with stopped_at("run:before_checkpoint", other):
            with session(lease_seconds=60, workspace=tmp_path / "w"):
                raise AssertionError("it was opened")
    check(client, tools)


@pytest.mark.parametrize("saves", [True, False])
@pytest.mark.parametrize("point", ["run:before_checkpoint", "in the commit"])
def test_a_checkpoint_of_who_lost_the_session_is_not_the_head(
    client: Any, session: Open, url: str, other: Other, tools: Tools, point: str, saves: bool
) -> None:
    other.saves = saves
    at = point if point.startswith("run:") else COMMITS.get(url.partition(":")[0], "run:task_exit")
    with pytest.raises(SessionLostError):
        with session(lease_seconds=60) as run:
            with stopped_at(at, other):
                with pytest.raises(SessionLostError, match="another process took over"):
                    with next(iter(run.tasks.plan("woken").remaining())):
                        run.state["by"] = "who was stopped"
            with pytest.raises(SessionLostError):
                run.checkpoint("woken")
    check(client, tools, "the other" if saves else None)


@pytest.mark.parametrize("point", ["run:before_journal", "run:before_tool", "run:after_tool"])
def test_what_who_lost_the_session_calls_is_not_sent_or_known_to_be_unknown(
    client: Any, session: Open, other: Other, tools: Tools, point: str
) -> None:
    was_begun = point != "run:before_journal"

    def work(run: Any) -> None:
        if was_begun:  # the other can see that it may be under way
            with pytest.raises(UnknownEffectError):
                pay(run, tools)
            (effect,) = run.unknown_effects()
            effect.mark_done("paid, as the bank says")
        pay(run, tools)
        run.state["by"] = "the other"
        run.checkpoint("paid")

    other.work = work  # type: ignore[method-assign]
    with pytest.raises(SessionLostError):
        with session(lease_seconds=60) as run:
            with stopped_at(point, other):
                with pytest.raises(SessionLostError):
                    pay(run, tools)
    assert client.latest(AGENT, SESSION).execution_state == {"by": "the other"}
    assert tools.names() == ["send"]


def test_who_lost_the_session_asks_for_no_approval(
    client: Any, session: Open, other: Other, tools: Tools
) -> None:
    with pytest.raises(SessionLostError):
        with session(lease_seconds=60, approval="wait", approve_when=["read"]) as run:
            other()
            run.call(tools.read, "woken")
    assert client.pending() == []
    assert "read" not in tools.names()
    check(client, tools)


def test_who_lost_the_session_rolls_nothing_back(
    client: Any, session: Open, other: Other, tools: Tools
) -> None:
    with pytest.raises(SessionLostError):
        with session(lease_seconds=60) as run:
            run.checkpoint("before")
            run.call(tools.book, "car", effect="reversible", compensate=tools.cancel)
            run.checkpoint("booked")
            with stopped_at("run:before_checkpoint", other):
                run.rollback(to="before")
    assert "cancel" not in tools.names()
    check(client, tools)


@pytest.mark.parametrize("saves", [True, False])
def test_a_session_that_was_taken_over_and_moved_does_not_pay_again(
    client: Any, session: Open, other: Other, tools: Tools, tmp_path: Path, saves: bool
) -> None:
    """Paid under the second lease here, and the first one there."""

    def program(run: Any) -> None:
        assert pay(run, tools) == ["send", "rent", 1]
        run.call(tools.send, "food", effect="irreversible")
        run.call(tools.send, "once", effect="irreversible", key="once")

    first = session(lease_seconds=60)
    first.__enter__()
    other.saves = saves
    other()
    client.export(tmp_path / "moved.holdfast", agent_id=AGENT)
    with SyncClient.open(url_of("sqlite", tmp_path / "new")) as new:
        new.import_(tmp_path / "moved.holdfast")
        for _ in range(2):
            with power_cut(), new.session(AGENT, session_id=SESSION) as run:
                program(run)
                raise PowerCut
        with power_cut(), new.session(AGENT, session_id=SESSION) as run:
            program(run)
            with cut_at("run:after_tool"):
                run.call(tools.book, "car", effect="reversible", compensate=tools.cancel)
            raise PowerCut
        new.export(tmp_path / "back.holdfast", agent_id=AGENT)
    with SyncClient.open(url_of("file", tmp_path / "newer")) as newer:
        newer.import_(tmp_path / "back.holdfast")
        with newer.session(AGENT, session_id=SESSION) as run:
            (unknown,) = run.unknown_effects()
            unknown.mark_done("booked")
            program(run)
            run.call(tools.book, "car", effect="reversible", compensate=tools.cancel)
    assert [call[1] for call in tools.ran] == ["rent", "food", "once", "car"]


def test_notes_of_0_2_by_who_had_lost_the_session_are_void_but_for_what_was_done(
    client: Any, session: Open, tools: Tools, url: str
) -> None:
    """Where a session was moved by 0.2 leases began anew, below the number it was taken at."""
    from holdfast.session import journal

    call = {"tool": "send", "kind": "irreversible", "digest": "d", "args": (), "kwargs": {}}
    begun = {**call, "id": "a" * 8, "index": 0, "status": "started", "lease": 1}
    local = {**call, "id": "b" * 8, "index": 1, "status": "done", "lease": 1, "kind": "local"}
    noted = [
        ("taken/2", 2),
        ("call/0/started", begun),
        ("call/1/started", local),
        ("call/0/ended", {"id": "a" * 8, "index": 0, "status": "done", "lease": 1}),
        ("call/2/started", {**begun, "id": "c" * 8, "index": 2, "lease": 1}),
        ("call/3/started", {**begun, "id": "d" * 8, "index": 3, "lease": 2}),
    ]

    calls, _ = journal.read(noted)

    assert {(call.id[0], call.status) for call in calls} == {("a", "done"), ("d", "started")}


def test_a_run_and_a_save_do_not_both_follow_one_head(client: Any, session: Open) -> None:
    with pytest.raises(SessionLostError, match=r"was written on the session .* while this run"):
        with session() as run:
            run.state["by"] = "the run"
            run.checkpoint("mine")
            saved = client.save(AGENT, execution_state={"by": "a save"}, session_id=SESSION)
            run.checkpoint("woken")
    assert client.latest(AGENT, SESSION).checkpoint_id == saved


def test_what_was_paid_before_another_saved_on_the_session_is_not_paid_again(
    client: Any, session: Open, tools: Tools
) -> None:
    with power_cut(), session() as run:
        pay(run, tools)
        client.save(AGENT, execution_state={"by": "a save"}, session_id=SESSION)
        raise PowerCut
    for _ in range(2):
        with power_cut(), session() as run:
            assert run.state == {"by": "a save"}
            assert pay(run, tools) == ["send", "rent", 1]
            raise PowerCut
    assert tools.names() == ["send"]


def test_a_payment_of_unknown_end_stays_unknown_when_another_saved_on_the_session(
    client: Any, session: Open, tools: Tools
) -> None:
    with power_cut(), session() as run:
        with cut_at("run:after_tool"):
            pay(run, tools)
        client.save(AGENT, execution_state={"by": "a save"}, session_id=SESSION)
        raise PowerCut
    for _ in range(2):
        with pytest.raises(UnknownEffectError):
            with session() as run:
                pay(run, tools)
    with session() as run:
        run.unknown_effects()[0].mark_done("paid")
        assert pay(run, tools) == "paid"
    assert tools.names() == ["send"]


def test_a_run_goes_on_past_an_offer_of_its_work_and_resumes_whole(
    client: Any, session: Open, tools: Tools
) -> None:
    def work(run: Any) -> None:
        assert pay(run, tools) == ["send", "rent", 1]
        run.call(tools.book, "car", effect="reversible", compensate=tools.cancel)

    with power_cut(), session() as run:
        run.checkpoint("offered")
        work(run)
        client.handoff(run.head, "reviewer")
        raise PowerCut
    with power_cut(), session(tools=[tools.cancel]) as run:
        work(run)
        run.call(tools.read)
        raise PowerCut
    with session(tools=[tools.cancel]) as run:
        work(run)
        run.call(tools.read)
        client.handoff(run.head, "reviewer")
        run.checkpoint("goes on")
    assert tools.names() == ["send", "book", "read"]
    assert client.latest(AGENT, SESSION).step_name == "end"


def test_a_worker_whose_offer_was_taken_by_another_can_neither_save_nor_complete(
    client: Any, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = client.handoff(client.save("boss", execution_state={"n": 1}), "worker")
    with SyncClient.open(url) as late, SyncClient.open(url) as other:
        mine = late.accept(offered, worker="late", lease_seconds=0.01)
        taken = other.take("worker", worker="other", timeout=30)
        assert taken is not None
        assert taken.session_id == mine.session_id
        where: dict[str, Any] = {"session_id": mine.session_id}
        saved = other.save("worker", execution_state={"by": "other"}, **where)
        for _ in range(2):
            with pytest.raises(HandoffError, match="was taken by another"):
                late.save("worker", execution_state={"by": "late"}, **where)
        with pytest.raises(HandoffError):
            late.complete(offered)
        with pytest.raises(HandoffError):
            late.renew(offered)
        assert client.latest("worker", mine.session_id).checkpoint_id == saved
        other.complete(offered)
    assert client.offer(offered).outcome == "completed"


def test_a_worker_goes_on_where_the_one_before_had_paid(
    client: Any, url: str, tools: Tools
) -> None:
    offered = client.handoff(client.save("boss", execution_state={"n": 1}), "worker")
    with SyncClient.open(url) as late, SyncClient.open(url) as other:
        mine = late.accept(offered, lease_seconds=0.01)
        with power_cut(), late.session("worker", session_id=mine.session_id) as run:
            pay(run, tools)
            raise PowerCut
        taken = other.take("worker", timeout=30)
        assert taken is not None
        with other.session("worker", session_id=taken.session_id) as run:
            assert pay(run, tools) == ["send", "rent", 1]
    assert tools.names() == ["send"]


@pytest.mark.parametrize("length", [1, 2, 5])
def test_notes_that_lead_in_a_circle_are_told_and_not_followed(
    client: Any, session: Open, url: str, length: int
) -> None:
    with session() as run:
        for number in range(length):
            run.checkpoint(str(number))
    infos = client.timeline(AGENT, SESSION, limit=length)
    ids = [info.checkpoint_id for info in reversed(infos)]
    lead_in_a_circle(url, ids)

    with pytest.raises(CheckpointIntegrityError, match="circle") as raised:
        with session():
            pass
    assert sum(each in str(raised.value) for each in ids) >= min(2, length)
    found = client.verify()
    assert {each.checkpoint_id for each in found.damaged} == set(ids)
    assert all("circle" in each.reason for each in found.damaged)


def lead_in_a_circle(url: str, ids: list[str]) -> None:
    """Note of each checkpoint that the next one followed it, and of the last that the first did."""
    from holdfast.core.chunk_format import uncompressed
    from holdfast.core.codec import pack
    from holdfast.stores.base import NotesOnly

    with open_store(url) as store:
        for each, following in zip(ids, [*ids[1:], ids[0]], strict=True):
            body = uncompressed(pack({"checkpoint": following}))
            store.commit(NotesOnly((Note.of(each, "next", body),), {}))
