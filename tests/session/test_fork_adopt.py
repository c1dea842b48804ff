"""Forks: runs of their own from where one stands, and taking one of them over."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import (
    CheckpointNotFoundError,
    InvalidArgumentError,
    RunError,
    SessionBusyError,
    UnknownEffectError,
)
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut


def test_forks_begin_where_the_run_stands_and_go_their_own_ways(session: Open) -> None:
    with session() as run:
        run.state["n"] = 0
        run.tasks.plan("a")
        one, two = run.fork(2)
        one.state["n"], two.state["n"] = 1, 2
        with one.tasks["a"]:
            pass

        assert (run.state, one.state, two.state) == ({"n": 0}, {"n": 1}, {"n": 2})
        assert (one.session_id, two.session_id) == ("fix-42.1", "fix-42.2")
        assert [each.tasks["a"].status for each in (run, one, two)] == [
            "pending",
            "completed",
            "pending",
        ]
    with session() as run:
        assert run.state == {"n": 0}


def test_forks_have_names_and_free_ones(session: Open) -> None:
    with session() as run:
        names = [each.session_id for each in run.fork(names=["a", "b"])]
        again = [each.session_id for each in run.fork(names=["a"])]
        (inner,) = run.fork(names=["c"])
        (deeper,) = inner.fork()
        assert names == ["fix-42.a", "fix-42.b"]
        assert again == ["fix-42.a-2"]
        assert deeper.session_id == "fix-42.c.1"


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": True}, {"names": "ab"}, {"names": [""]}])
def test_forks_that_make_no_sense_are_refused(session: Open, bad: dict[str, Any]) -> None:
    with session() as run, pytest.raises(InvalidArgumentError):
        run.fork(**bad)


def test_forks_are_closed_and_saved_with_their_parent(session: Open, client: Any) -> None:
    with session() as run:
        (fork,) = run.fork()
        fork.state["done"] = True
        with pytest.raises(SessionBusyError), client.session(AGENT, session_id=fork.session_id):
            pass
    with client.session(AGENT, session_id="fix-42.1") as again:
        assert again.state == {"done": True}
    with pytest.raises(RunError, match="over"):
        fork.checkpoint()


def test_a_fork_that_cannot_be_saved_keeps_no_lease_and_not_its_parent(
    session: Open, client: Any
) -> None:
    with pytest.raises(TypeError), session() as run:
        run.state["n"] = 1
        one, two = run.fork(2)
        one.state["bad"] = iter([])
        two.state["n"] = 2
    for name, n in (("fix-42", 1), ("fix-42.1", 1)):
        with client.session(AGENT, session_id=name) as again:
            assert again.state["n"] == n
    with client.session(AGENT, session_id="fix-42.2") as again:
        assert again.state["n"] == 2


def test_a_fork_costs_next_to_nothing(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "h.db") as client:
        with client.session(AGENT, session_id=SESSION) as run:
            run.state["large"] = [f"{number:09}" * 10 for number in range(20_000)]
            run.checkpoint()
            before = client.stats().stored_bytes
            run.fork(8)
            assert client.stats().stored_bytes - before < 4_000


def test_a_fork_is_live_but_sends_nothing_twice(session: Open, tools: Tools) -> None:
    def send(run: Any, *args: Any) -> Any:
        return run.call(tools.send, *args, effect="irreversible")

    with session() as run:
        first = send(run, "before")
        run.call(tools.read, "x")
        (fork,) = run.fork()
        assert fork.call(tools.read, "x") == ["read", "x", 3]
        assert send(fork, "before") == first
        assert send(fork, "new") == ["send", "new", 4]
    assert tools.names() == ["send", "read", "read", "send"]


def test_a_fork_sends_nothing_twice_that_was_sent_long_before(
    session: Open, client: Any, tools: Tools
) -> None:
    with session() as run:
        for task in run.tasks.plan("mail").remaining():
            with task:
                run.call(tools.send, "in a task", effect="irreversible")
        run.call(tools.send, "x", effect="irreversible")
        head = run.checkpoint("sent")
        (fork,) = run.fork()
        client.fork(head, session_id="another")
        with client.session(AGENT, session_id="another") as another:
            for each in (fork, another):
                assert each.call(tools.send, "x", effect="irreversible") == ["send", "x", 2]
                each.call(tools.send, "in a task", effect="irreversible")
        assert len(tools.ran) == 2
        fork.call(tools.send, "x", effect="irreversible")  # one more than was made
        fork.call(tools.send, "x", effect="irreversible", again=True)
        assert len(tools.ran) == 4


def test_what_the_source_sent_after_the_fork_point_is_not_sent_by_a_fork(
    session: Open, client: Any, tools: Tools
) -> None:
    with session() as run:
        start = run.head
        run.call(tools.send, "saved", effect="irreversible")
        run.checkpoint()
        run.call(tools.send, "noted", effect="irreversible")
        client.fork(start, session_id="other")
        with client.session(AGENT, session_id="other") as fork:
            assert fork.call(tools.send, "saved", effect="irreversible") == ["send", "saved", 1]
            assert fork.call(tools.send, "noted", effect="irreversible") == ["send", "noted", 2]
            fork.checkpoint()
        with client.session(AGENT, session_id="other") as fork:
            again = fork.call(tools.send, "saved", effect="irreversible", again=True)
            assert again == ["send", "saved", 3]


def test_a_fork_can_be_rolled_back_to_where_it_began(session: Open, tools: Tools) -> None:
    with session() as run:
        run.state["n"] = 1
        run.call(tools.send, "x", effect="irreversible")
        (fork,) = run.fork()
        fork.state["n"] = 2
        fork.checkpoint("two")
        fork.rollback(to="fork")  # not past what the source sent
        assert fork.state == {"n": 1}


def test_a_run_goes_on_from_a_fork_it_adopts(session: Open, client: Any, tools: Tools) -> None:
    with session() as run:
        run.call(tools.read, "own")
        one, two = run.fork(2)
        two.state["best"] = two.call(tools.read, "fork")
        head = run.adopt(two)

        assert run.state == {"best": ["read", "fork", 2]}
        assert run.head == head
        assert run.history(limit=1)[0].step_name == "adopted fix-42.2"
        assert [each.session_id for each in client.ancestors(head)][:2] == ["fix-42.2"] * 2
        assert [str(each) for each in run.effects] == ["read('own')", "read('fork')"]
        with pytest.raises(RunError, match="over"):
            two.checkpoint()
        one.state["n"] = 1
    with session() as run:
        assert run.state == {"best": ["read", "fork", 2]}


def test_a_run_may_adopt_a_session_or_a_checkpoint(session: Open, client: Any) -> None:
    other = client.save(AGENT, execution_state={"from": "other"}, session_id="other")
    later = client.save(AGENT, execution_state={"from": "later"}, session_id="other")
    with session() as run:
        run.adopt("other")
        assert run.state == {"from": "later"}
        run.adopt(other[:34])
        assert run.state == {"from": "other"}
        run.adopt(later)
        with pytest.raises(RunError, match="cannot adopt itself"):
            run.adopt(SESSION)
        with pytest.raises(CheckpointNotFoundError):
            run.adopt("nowhere")


def test_what_an_adopted_fork_did_is_undone_by_a_rollback_past_it(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        run.checkpoint("before")
        (fork,) = run.fork()
        fork.call(tools.book, 1, effect="reversible", compensate=tools.cancel)
        run.adopt(fork)
        done = run.rollback(to="before")  # what the fork was given, its program gave
        assert [str(each) for each in done.compensated] == ["book(1)"]
    assert tools.names() == ["book", "cancel"]


def test_what_an_adopted_fork_did_is_undone_after_a_restart_by_what_is_given(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        run.checkpoint("before")
        (fork,) = run.fork()
        fork.call(tools.book, 1, effect="reversible", compensate=tools.cancel)
        run.adopt(fork)
    with session() as run, pytest.raises(RunError, match="has not given"):
        run.rollback(to="before")
    with session(tools=[tools.cancel]) as run:
        done = run.rollback(to="before")
        assert [str(each) for each in done.compensated] == ["book(1)"]
    assert tools.names() == ["book", "cancel"]


@pytest.mark.parametrize(
    ("point", "time"),
    [
        *(("run:forked", 1), ("run:forked", 2), ("run:adopting", 1)),
        *(("run:before_end", 2), ("run:task_exit", 1), ("run:task_exit", 2)),
    ],
)
def test_a_program_that_forks_and_adopts_is_resumed(
    session: Open, tools: Tools, point: str, time: int
) -> None:
    def program(run: Any) -> None:
        first = run.call(tools.read, "first")
        for task in run.tasks.plan("try", "end").remaining():
            with task:
                if task.name == "try":
                    forks = run.fork(names=["a", "b"])
                    for fork in forks:
                        fork.state["way"] = [first, fork.session_id[:8]]
                    run.adopt(forks[0])
                    run.call(tools.write, "after")
                run.state[task.name] = True

    with cut_at(point, time), session() as run:
        program(run)
    with session() as run:
        program(run)
        way = [["read", "first", 1], "fix-42.a"]
        assert run.state == {"way": way, "try": True, "end": True}
    assert tools.names().count("read") == 1


def test_an_unknown_call_has_to_be_decided_before_a_fork(session: Open, tools: Tools) -> None:
    with session() as run:
        with cut_at("run:after_tool"):
            run.call(tools.send, effect="irreversible")
        for use in (run.fork, lambda: run.adopt("other")):
            with pytest.raises((UnknownEffectError, CheckpointNotFoundError)):
                use()
        run.unknown_effects()[0].mark_done()


def test_a_fork_survives_a_cut_of_its_parent(session: Open, client: Any, tools: Tools) -> None:
    with power_cut(), session() as run:
        (fork,) = run.fork()
        fork.call(tools.read, "x")
        fork.checkpoint("mine")
        raise PowerCut
    with client.session(AGENT, session_id="fix-42.1") as fork:
        assert "mine" in [info.step_name for info in fork.history()]
    assert len(tools.ran) == 1
