"""Tasks: a plan that is kept, gone on with at the first that is not done, and may change."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

import os
import pty
import subprocess
import sys
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.errors import InvalidArgumentError, TaskError
from tests.integration.fork_server import PATH
from tests.session.conftest import Open
from tests.session.kit import PowerCut, Tools, cut_at, power_cut


def statuses(run: Any) -> dict[str, str]:
    return {task.id: task.status for task in run.tasks}


def test_tasks_are_done_in_order_with_a_checkpoint_each(session: Open) -> None:
    with session() as run:
        for task in run.tasks.plan("a", "b").remaining():
            assert task.status == "pending"
            with task:
                assert task.status == "in_progress"
                assert "in_progress" in repr(task)
            assert (task.status, task.attempts) == ("completed", 1)
        assert run.progress == run.tasks.progress == 1.0
        steps = [info.step_name for info in run.history()][::-1]
    assert steps == ["start", "a: started", "a: completed", "b: started", "b: completed"]


def test_a_resumed_run_goes_on_at_the_first_task_that_is_not_done(session: Open) -> None:
    done: list[str] = []

    def program(run: Any) -> None:
        for task in run.tasks.plan("a", "b", "c").remaining():
            with task:
                run.state[task.name] = len(done)
                if task.name == "b" and not run.resumed:
                    raise PowerCut
                done.append(task.name)

    with power_cut(), session() as run:
        program(run)
    with session() as run:
        assert run.state == {"a": 0}  # what the cut task had done is not there
        assert statuses(run) == {"a": "completed", "b": "in_progress", "c": "pending"}
        program(run)
        assert run.tasks["b"].attempts == 1

    assert done == ["a", "b", "c"]


def test_a_task_has_what_the_plan_says_of_it(session: Open) -> None:
    plan = [
        {"name": "find", "id": "f", "data": {"path": "x"}},
        {"id": "mend", "needs": "f", "data": 0},
        {"name": "test", "needs": ["f", "mend"], "data": False},
        {"name": "none", "data": []},
    ]
    with session() as run:
        run.tasks.plan(*plan)
        run.checkpoint()

    with session() as run:
        found = {task.id: (task.name, task.data) for task in run.tasks}
        assert found == {
            "f": ("find", {"path": "x"}),
            "mend": ("mend", 0),
            "test": ("test", False),
            "none": ("none", []),
        }
        assert len(run.tasks) == 4
        assert run.tasks["find"].id == "f"
        with pytest.raises(TaskError, match="no task 'x' in the plan: f, mend"):
            _ = run.tasks["x"]


def test_a_task_waits_for_what_it_needs(session: Open) -> None:
    plan = [{"name": "test", "needs": ["mend"]}, {"name": "mend", "needs": "find"}, "find"]
    done = []
    with session() as run:
        for task in run.tasks.plan(*plan).remaining():
            with task:
                done.append(task.name)
    assert done == ["find", "mend", "test"]


@pytest.mark.parametrize(
    ("plan", "complaint"),
    [
        (["a", "a"], "two tasks of the plan are called 'a'"),
        ([{"name": "a", "needs": "b"}], "needs 'b', which is not in the plan"),
        ([{"name": "a", "needs": "b"}, {"name": "b", "needs": "a"}], "circle: a, b"),
        ([{"name": "a", "needs": "a"}], "circle: a"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused_whole(
    session: Open, plan: list[Any], complaint: str
) -> None:
    with session() as run:
        run.tasks.plan("old")
        with pytest.raises(TaskError, match=complaint):
            run.tasks.plan(*plan)
        assert statuses(run) == {"old": "pending"}


@pytest.mark.parametrize(
    ("task", "complaint"),
    [
        (7, "a name or a dict"),
        ({"name": ""}, "needs a name"),
        ({"name": "a", "when": 1}, "no 'when'"),
        ({"name": "a", "retries": -1}, "retries"),
        ({"name": "a", "retries": "two"}, "retries"),
    ],
)
def test_a_task_that_makes_no_sense_is_refused(session: Open, task: Any, complaint: str) -> None:
    with session() as run, pytest.raises(InvalidArgumentError, match=complaint):
        run.tasks.plan(task)


def test_a_skipped_task_says_why_and_counts_as_done(session: Open) -> None:
    with session() as run:
        run.tasks.plan("a", {"name": "b", "needs": "a"})
        run.tasks["a"].skip("nothing to do")
        assert run.progress == 0.5

    with session() as run:
        assert (run.tasks["a"].status, run.tasks["a"].reason) == ("skipped", "nothing to do")
        assert [task.name for task in run.tasks.remaining()] == ["b"]


def test_a_failed_task_says_why_and_is_tried_again_with_live_calls(
    session: Open, tools: Tools
) -> None:
    def program(run: Any) -> None:
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                run.state[task.name] = run.call(tools.read, task.name)
                run.call(tools.send, task.name, effect="irreversible")
                if task.name == "a" and len(tools.ran) < 3:
                    raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"), session() as run:
        program(run)
    with session() as run:
        assert (run.tasks["a"].status, run.tasks["a"].reason) == ("failed", "OSError: disk full")
        program(run)
        assert run.tasks["a"].attempts == 2

    # Read anew, but what cannot be undone is not sent twice.
    assert tools.names() == ["read", "send", "read", "read", "send"]


def test_a_task_with_retries_is_given_out_again_before_its_error_goes_on(
    session: Open, tools: Tools
) -> None:
    def program(run: Any, failures: int) -> None:
        for task in run.tasks.plan({"name": "a", "retries": 2}, "b").remaining():
            with task:
                run.call(tools.read, task.name)
                if task.name == "a" and len(tools.ran) <= failures:
                    raise OSError(f"failure {len(tools.ran)}")

    with session() as run:
        program(run, 2)
        assert (run.tasks["a"].status, run.tasks["a"].attempts) == ("completed", 3)
        steps = [info.step_name for info in run.history()]
        assert steps.count("a: failed") == 2
    assert [call[1] for call in tools.ran] == ["a", "a", "a", "b"]


def test_retries_end_with_the_last_error(session: Open, tools: Tools) -> None:
    with pytest.raises(OSError, match="failure 3"), session() as run:
        for task in run.tasks.plan({"name": "a", "retries": 2}, "b").remaining():
            with task:
                tools.read()
                raise OSError(f"failure {len(tools.ran)}")

    with session() as run:
        assert (run.tasks["a"].status, run.tasks["a"].attempts) == ("failed", 3)


def test_retries_outside_of_a_loop_swallow_nothing(session: Open) -> None:
    with pytest.raises(OSError, match="once"), session() as run:
        with run.tasks.plan({"name": "a", "retries": 5})["a"]:
            raise OSError("once")


def test_retries_go_on_after_a_crash_where_they_were(session: Open, tools: Tools) -> None:
    def program(run: Any) -> None:
        for task in run.tasks.plan({"name": "a", "retries": 2}).remaining():
            with task:
                tools.read()
                if len(tools.ran) == 2:
                    raise PowerCut
                raise OSError(f"failure {len(tools.ran)}")

    with power_cut(), session() as run:
        program(run)
    with pytest.raises(OSError, match="failure 4"), session() as run:
        program(run)


def test_a_task_may_have_parts(session: Open) -> None:
    done = []

    def program(run: Any) -> None:
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                parts = task.plan("x", {"name": "y", "needs": "x"})
                for part in parts.remaining():
                    with part:
                        if part.id == "b/x" and not run.resumed:
                            raise PowerCut
                        done.append(part.id)
                assert [part.name for part in task.tasks] == ["x", "y"]

    with power_cut(), session() as run:
        program(run)
    with session() as run:
        assert run.progress == 0.5
        assert statuses(run) == {"a": "completed", "b": "in_progress"}
        program(run)
        assert run.progress == 1.0
    assert done == ["a/x", "a/y", "b/x", "b/y"]


def test_an_error_in_a_part_fails_both(session: Open) -> None:
    with pytest.raises(OSError, match="deep"), session() as run:
        for task in run.tasks.plan("a").remaining():
            with task:
                for part in task.plan("x", "y").remaining():
                    with part:
                        raise OSError("deep")

    with session() as run:
        assert run.tasks["a"].status == "failed"
        assert [part.status for part in run.tasks["a"].tasks] == ["failed", "pending"]


def test_a_plan_may_change_between_versions_of_a_program(session: Open) -> None:
    with session() as run:
        run.tasks.plan("a", "b", {"name": "c", "data": 1})
        with run.tasks["a"]:
            pass

    with session() as run:
        run.tasks.plan("d", {"name": "c", "data": 2})
        assert statuses(run) == {
            "a": "completed",
            "b": "skipped",
            "c": "pending",
            "d": "pending",
        }
        assert run.tasks["b"].reason == "no longer in the plan"
        assert run.tasks["c"].data == 2
        assert [task.id for task in run.tasks.remaining()] == ["c", "d"]

    with session() as run:  # what is planned again is done
        run.tasks.plan("a", "b", "c", "d")
        assert [task.id for task in run.tasks.remaining()] == ["b", "c", "d"]
        assert run.tasks["b"].reason is None


def test_a_need_that_failed_is_named(session: Open) -> None:
    with session() as run:
        remaining = run.tasks.plan("a", {"name": "b", "needs": "a"}).remaining()
        with pytest.raises(OSError, match="x"), next(remaining):
            raise OSError("x")
        with pytest.raises(TaskError, match="'b' cannot begin: 'a', which it needs, is failed"):
            next(remaining)


@pytest.mark.parametrize("error", [PowerCut, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_a_task_that_was_cut_off_is_in_progress_with_nothing_half_done(
    session: Open, tools: Tools, error: type[BaseException]
) -> None:
    def program() -> None:
        with session() as run:
            for task in run.tasks.plan("a").remaining():
                with task:
                    run.call(tools.read)
                    run.state["half"] = True
                    if not run.resumed:
                        raise error

    with pytest.raises(error):
        program()
    with session() as run:
        assert (run.state, statuses(run)) == ({}, {"a": "in_progress"})
    program()
    assert len(tools.ran) == 1


@pytest.mark.parametrize("time", [1, 2])
def test_a_task_is_begun_and_ended_whole_or_not_at_all(session: Open, time: int) -> None:
    with session() as run:
        run.tasks.plan("a")
        with cut_at("run:before_checkpoint", time), run.tasks["a"]:
            pass
        assert statuses(run) == {"a": ["pending", "in_progress"][time - 1]}
        for task in run.tasks.remaining():
            with task:
                pass
        assert statuses(run) == {"a": "completed"}


def test_a_call_belongs_to_the_task_it_is_made_in(session: Open, tools: Tools) -> None:
    with session() as run:
        run.call(tools.read)
        for task in run.tasks.plan("a").remaining():
            with task:
                run.call(tools.read)
                for part in task.plan("x").remaining():
                    with part:
                        run.call(tools.read)
                run.call(tools.read)
        run.call(tools.read)
        assert [each.task for each in run.effects] == [None, "a", "a/x", "a", None]


PROGRAM = """
import sys
from holdfast import SyncClient
asked = {"progress": True} if "asked" in sys.argv else {}
with SyncClient.memory() as client, client.session("a", **asked) as run:
    for task in run.tasks.plan("first", "second").remaining():
        with task:
            pass
"""


def shown(terminal: bool, *arguments: str) -> bytes:
    ours, theirs = pty.openpty() if terminal else os.pipe()
    out = theirs
    subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": PATH},
        stderr=out,
        check=True,
    )
    os.close(theirs)
    seen = b""
    try:
        while data := os.read(ours, 1000):
            seen += data
    except OSError:  # a terminal whose other end is closed
        pass
    os.close(ours)
    return seen


def test_progress_that_was_asked_for_is_drawn_on_a_terminal() -> None:
    lines = shown(True, "asked").decode().split("\r\x1b[K")

    assert [line.strip() for line in lines if line.strip()] == [
        "[........................] 0/2 first",
        "[############............] 1/2",
        "[############............] 1/2 second",
        "[########################] 2/2",
    ]


def test_nothing_is_drawn_where_nobody_asked_or_nobody_sees_it() -> None:
    assert shown(True) == b""
    assert shown(False, "asked") == b""


def test_a_function_is_told_the_progress_wherever_it_runs(session: Open) -> None:
    told: list[tuple[int, int, str]] = []

    def progress(done: int, total: int, name: str) -> None:
        told.append((done, total, name))

    with session(progress=progress) as run:
        for task in run.tasks.plan("build", "test").remaining():
            with task:
                for part in task.plan("prepare", "do").remaining() if task.id == "build" else ():
                    with part:
                        pass

    assert told[0] == (0, 2, "build")
    assert told[-1] == (3, 3, "")  # a task with parts counts by its parts


@pytest.mark.parametrize("wrong", ["yes", 1, 0.5])
def test_progress_that_is_no_switch_and_no_function_is_refused(wrong: Any) -> None:
    with SyncClient.memory() as client:
        with pytest.raises(InvalidArgumentError, match="progress is True, False or a plain"):
            client.session("a", progress=wrong)


def test_an_async_function_cannot_be_told_the_progress() -> None:
    async def progress(done: int, total: int, name: str) -> None:
        pass

    with SyncClient.memory() as client:
        with pytest.raises(InvalidArgumentError, match="plain function"):
            client.session("a", progress=progress)
