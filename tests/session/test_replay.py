"""Replay shows what was recorded and executes nothing; bisect finds the first bad checkpoint."""

from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, RunError
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, power_cut


def record(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                run.state[task.name] = run.call(tools.read, task.name)
                if task.name == "b":
                    with pytest.raises(ValueError, match="no such"):
                        run.call(tools.fail)
                    run.rollback(to="a: completed")
                    run.call(tools.write, "last")
                    raise PowerCut


def test_every_step_is_shown_with_its_calls_and_changes(
    session: Open, client: Any, tools: Tools
) -> None:
    record(session, tools)
    ran = len(tools.ran)

    steps = list(client.replay(SESSION))

    assert [step.checkpoint.step_name for step in steps[:-1]] == [
        *("start", "a: started", "a: completed", "rolled back to a: completed")
    ]
    done = steps[2]
    assert [(str(call), call.output) for call in done.calls] == [("read('a')", ["read", "a", 1])]
    assert str(done.changes) == "+ $.a: ['read', 'a', 1]"
    assert str(done).splitlines() == [
        "2  a: completed",
        "   read('a') -> ['read', 'a', 1]",
        "   + $.a: ['read', 'a', 1]",
    ]
    assert steps[3].calls == []  # those were on the way that was left
    assert len(tools.ran) == ran


def test_what_is_in_no_checkpoint_yet_comes_last(session: Open, client: Any, tools: Tools) -> None:
    record(session, tools)

    *_, last = client.replay(SESSION, agent_id=AGENT)
    assert last.is_unfinished
    assert [str(call) for call in last.calls] == ["write('last')"]
    assert "not in a checkpoint yet" in str(last)
    with session() as run:
        assert run.tasks["b"].status == "in_progress"


def test_an_error_and_an_unknown_end_are_shown(session: Open, client: Any, tools: Tools) -> None:
    with session() as run, pytest.raises(ValueError, match="no such"):
        run.call(tools.fail, 1)
    with power_cut(), session() as run:
        run.call(tools.cut)

    shown = "\n".join(map(str, client.replay(SESSION)))
    assert "fail(1) -> ValueError('no such file', 2)" in shown
    assert "cut() -> not known" in shown


def test_sessions_are_named_with_their_agent_where_that_is_needed(client: Any) -> None:
    for agent in ("a", "b"):
        client.save(agent, execution_state={"of": agent}, session_id=SESSION)

    assert len(list(client.replay(SESSION, agent_id="a"))) == 1
    with pytest.raises(RunError, match=r"several agents have a session 'fix-42' \(a, b\)"):
        list(client.replay(SESSION))
    with pytest.raises(RunError, match="there is no session 'x'"):
        list(client.replay("x"))
    with pytest.raises(InvalidArgumentError, match="agent_id"):
        list(client.replay(SESSION, agent_id=5))
    with pytest.raises(TypeError, match="positional"):
        list(client.replay("a", "b", "c"))


@pytest.mark.parametrize("first_bad", [0, 1, 31, 63])
def test_bisect_finds_the_first_bad_checkpoint_looking_at_few(
    session: Open, client: Any, first_bad: int
) -> None:
    with session() as run:
        ids = [run.head]
        for number in range(1, 64):
            run.state["n"] = number
            ids.append(run.checkpoint())
    looked = []

    def is_good(checkpoint: Any) -> bool:
        looked.append(checkpoint)
        return checkpoint.execution_state.get("n", 0) < first_bad

    assert client.bisect(SESSION, is_good).checkpoint_id == ids[first_bad]
    assert len(looked) <= 8


def test_bisect_says_when_all_are_good(session: Open, client: Any) -> None:
    with session() as run:
        run.checkpoint()
    assert client.bisect(SESSION, lambda checkpoint: True, agent_id=AGENT) is None
    with pytest.raises(InvalidArgumentError, match="function of a checkpoint"):
        client.bisect(SESSION, "n < 3")


def test_the_agent_may_still_come_first_with_a_warning(session: Open, client: Any) -> None:
    with session() as run:
        run.checkpoint()

    with pytest.warns(DeprecationWarning, match="agent_id=agent_id"):
        steps = list(client.replay(AGENT, SESSION))
    with pytest.warns(DeprecationWarning, match="bisect"):
        first_bad = client.bisect(AGENT, SESSION, lambda checkpoint: False)

    assert list(map(str, steps)) == list(map(str, client.replay(SESSION, agent_id=AGENT)))
    assert first_bad.checkpoint_id == steps[0].checkpoint.checkpoint_id
