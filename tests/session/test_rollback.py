"""Going back: state and tasks as they were, effects undone newest first, nothing hidden."""

# ruff: noqa: SIM117  (a run is a block, and some raise as it ends)

from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import InvalidArgumentError, RollbackRefusedError, RunError
from holdfast.testing import crash_points
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, power_cut

undone: list[Any] = []


def unbook(output: Any, *args: Any) -> None:
    undone.append((output, *args))


def unbook_failing(output: Any, *args: Any) -> None:
    undone.append((output, *args))
    raise OSError("no connection")


@pytest.fixture(autouse=True)
def _fresh() -> None:
    undone.clear()


@pytest.fixture
def session(session: Open) -> Open:
    """The session of the test, whose program gives what undoes its effects."""
    return lambda **options: session(**{"tools": [unbook, unbook_failing], **options})


def book(run: Any, tools: Tools, *args: Any, compensate: Any = unbook) -> Any:
    return run.call(tools.book, *args, effect="reversible", compensate=compensate)


def test_state_and_context_go_back_by_name_id_and_steps(session: Open) -> None:
    with session() as run:
        ids = {}
        for name in ("one", "two", "three"):
            run.state[name] = run.context[name] = True
            ids[name] = run.checkpoint(name)

        run.rollback(to="two")
        assert run.state == run.context == {"one": True, "two": True}
        run.undo()
        run.rollback(to=ids["one"][:34])
        assert run.state == {"one": True}
        run.undo()
        run.rollback(to=ids["one"])
        assert run.state == {"one": True}
        run.rollback()  # one more
        assert run.state == {}
        with pytest.raises(RunError, match="only 0 checkpoints before"):
            run.rollback()

    with session() as run:
        assert run.state == {}


def test_every_rollback_goes_one_step_farther(session: Open) -> None:
    with session() as run:
        for n in range(1, 6):
            run.state["n"] = n
            run.checkpoint(str(n))

        run.rollback()
        assert run.state["n"] == 4
        run.rollback(steps=2)
        assert run.state["n"] == 2
        run.rollback(steps=0)
        assert run.state["n"] == 2
        run.state["n"] = 7
        run.checkpoint("another")
        run.rollback()
        assert run.state["n"] == 2
        run.rollback()
        assert run.state["n"] == 1


def test_what_was_not_saved_goes_back_with_no_steps(session: Open) -> None:
    with session() as run:
        run.state["good"] = True
        run.checkpoint("good")
        run.state["bad"] = True
        run.rollback(steps=0)

        assert run.state == {"good": True}
        run.undo()
        assert run.state == {"good": True, "bad": True}


def test_the_way_that_is_left_stays_in_the_tree(session: Open, client: Any) -> None:
    with session() as run:
        first = run.checkpoint("one")
        run.state["n"] = 2
        second = run.checkpoint("two")
        rolled = run.rollback(to="one")

        info = run.history(limit=1)[0]
        assert info.checkpoint_id == rolled.checkpoint_id == run.head
        assert (info.parent_id, info.step_name) == (first, "rolled back to one")
        assert rolled.target_id == first
    assert client.restore(second).execution_state == {"n": 2}


@pytest.mark.parametrize(
    ("how", "error", "complaint"),
    [
        ({"to": "nowhere"}, RunError, "no checkpoint is called 'nowhere'; there are start"),
        ({"steps": -1}, InvalidArgumentError, "steps"),
        ({"steps": True}, InvalidArgumentError, "steps"),
        ({"scope": ()}, InvalidArgumentError, "scope"),
        ({"scope": "tasks"}, InvalidArgumentError, "scope"),
    ],
)
def test_a_rollback_that_makes_no_sense_changes_nothing(
    session: Open, how: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    with session() as run:
        head = run.head
        with pytest.raises(error, match=complaint):
            run.rollback(**how)
        with pytest.raises(RunError, match="no rollback to undo"):
            run.undo()
        assert run.head == head


def test_a_checkpoint_of_another_session_is_no_place_to_go_back_to(
    session: Open, client: Any
) -> None:
    other = client.save(AGENT, execution_state={"other": 1}, session_id="other")

    with session() as run, pytest.raises(RunError, match=r"is of session 'other'.*adopt"):
        run.rollback(to=other)


def test_compensations_run_newest_first_with_output_and_arguments(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        book(run, tools, "flight")
        run.checkpoint("flight")
        book(run, tools, "hotel")
        run.call(tools.read, "x", effect="read")
        run.checkpoint("hotel")
        book(run, tools, "car")
        done = run.rollback(to="flight")

        assert undone == [(["book", "car", 4], "car"), (["book", "hotel", 2], "hotel")]
        assert [str(each) for each in done.compensated] == ["book('hotel')", "book('car')"]
        assert (done.remaining, done.problems) == ([], {})
        assert str(done).splitlines()[1:] == ["  undone: book('hotel')", "  undone: book('car')"]

        run.rollback(to="start")
        assert undone[2:] == [(["book", "flight", 1], "flight")]
    with session() as run:
        assert [each.compensated for each in run.effects if each.tool == "book"] == [True] * 3


def test_a_compensation_that_fails_is_told_and_the_others_are_done(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        book(run, tools, 1)
        book(run, tools, 2, compensate=unbook_failing)
        book(run, tools, 3)
        done = run.rollback(to="start")

    assert [call[1] for call in undone] == [3, 2, 1]
    assert [str(each) for each in done.compensated] == ["book(1)", "book(3)"]
    assert [str(each) for each in done.remaining] == ["book(2)"]
    assert list(done.problems.values()) == ["OSError: no connection"]
    assert "stays done (reversible): book(2): OSError: no connection" in str(done)


def test_what_cannot_be_undone_refuses_with_the_list_and_changes_nothing(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        run.checkpoint("before")
        run.call(tools.send, "ann", effect="irreversible")
        book(run, tools, "car")
        run.checkpoint("after")
        run.call(tools.send, "bob", effect="irreversible")
        head = run.head

        with pytest.raises(RollbackRefusedError) as refused:
            run.rollback(to="before")
        assert [str(each) for each in refused.value.effects] == ["send('ann')", "send('bob')"]
        assert "  send('ann')\n  send('bob')\n" in str(refused.value)
        assert (run.head, undone) == (head, [])

        done = run.rollback(to="before", accept_irreversible=True)
        assert [str(each) for each in done.remaining] == ["send('ann')", "send('bob')"]
        assert "stays done (irreversible): send('ann')" in str(done)
        assert len(undone) == 1

        # That they stay was accepted: going back once more asks nothing.
        run.checkpoint("again")
        run.rollback(to="before")


def test_what_was_sent_on_a_way_that_was_left_is_not_sent_again(
    session: Open, tools: Tools
) -> None:
    def send(*args: Any, **how: Any) -> Any:
        return run.call(tools.send, *args, effect="irreversible", **how)

    with session() as run:
        first = send("ann")
        run.rollback(to="start", accept_irreversible=True)
        assert send("ann") == first
        assert send("bob") != first  # another call is live
        assert send("ann") == ["send", "ann", 3]  # and so is a second one
    with power_cut(), session() as run:
        run.rollback(to="start", accept_irreversible=True)
        assert send("bob") == ["send", "bob", 2]
        raise PowerCut
    with session() as run:
        assert send("bob") == ["send", "bob", 2]
        assert send("ann", again=True) == ["send", "ann", 4]
    assert len(tools.ran) == 4


def test_other_calls_are_live_after_a_rollback(session: Open, tools: Tools) -> None:
    with session() as run:
        for effect in ("read", "local"):
            run.call(tools.read, effect=effect, key=f"key-{effect}")
            run.call(tools.read, effect=effect)
        book(run, tools, 1)
        run.rollback(to="start")
        assert len(tools.ran) == 5
        for effect in ("read", "local"):
            run.call(tools.read, effect=effect, key=f"key-{effect}")
            run.call(tools.read, effect=effect)
        book(run, tools, 1)
        assert len({each.id for each in run.effects}) == 10
    assert len(tools.ran) == 10


def test_a_call_with_a_key_that_stays_done_is_not_made_again(session: Open, tools: Tools) -> None:
    with session() as run:
        first = run.call(tools.send, effect="irreversible", key="k")
        run.rollback(to="start", accept_irreversible=True)
        assert run.call(tools.send, effect="irreversible", key="k") == first
        assert run.call(tools.send, effect="irreversible", key="k") == first

        booked = run.call(tools.book, effect="reversible", key="b", compensate=tools.cancel)
        run.rollback(to="start")
        again = run.call(tools.book, effect="reversible", key="b", compensate=tools.cancel)
        assert again != booked  # it was cancelled
        run.rollback(to="start")
    assert tools.names() == ["send", "book", "cancel", "book", "cancel"]


def test_undo_leads_back_and_undo_of_that_again(session: Open, tools: Tools) -> None:
    with session() as run:
        run.tasks.plan("a")
        run.state["n"] = 1
        run.checkpoint("one")
        with run.tasks["a"]:
            run.state["n"] = 2
            book(run, tools, 1)
        run.rollback(to="one")
        assert (run.state, run.tasks["a"].status) == ({"n": 1}, "pending")

        run.undo()
        assert (run.state, run.tasks["a"].status) == ({"n": 2}, "completed")
        assert [each.compensated for each in run.effects] == [True]  # it stays undone
        run.undo()
        assert (run.state, run.tasks["a"].status) == ({"n": 1}, "pending")
        run.undo()
        run.rollback(to="one")
        assert len(undone) == 1
    with session() as run:
        assert run.state == {"n": 1}


def test_undo_also_undoes_what_was_called_since(session: Open, tools: Tools) -> None:
    with session() as run:
        run.checkpoint("one")
        run.rollback(to="start")
        book(run, tools, 1)
        run.call(tools.send, effect="irreversible")
        with pytest.raises(RollbackRefusedError):
            run.undo()
        done = run.undo(accept_irreversible=True)

        assert [str(each) for each in done.compensated] == ["book(1)"]
        assert [str(each) for each in done.remaining] == ["send()"]
        assert run.call(tools.send, effect="irreversible") == ["send", 2]
    assert tools.names() == ["book", "send"]


def test_tasks_have_the_status_of_then_and_are_given_out_again(session: Open) -> None:
    done: list[str] = []
    with session() as run:
        for task in run.tasks.plan("a", "b", "c").remaining():
            with task:
                done.append(task.name)
            if task.name == "b" and len(done) == 2:
                run.rollback(to="a: started")
                statuses = {each.name: each.status for each in run.tasks}
                assert statuses == {"a": "in_progress", "b": "pending", "c": "pending"}
    assert done == ["a", "b", "a", "b", "c"]


def test_a_task_that_goes_back_in_its_middle_goes_on(session: Open, tools: Tools) -> None:
    def program(run: Any) -> None:
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                run.state["draft"] = run.call(tools.write, "bad")
                if run.call(tools.read, task.name)[1] == "b":
                    run.rollback(to="a: completed")
                    assert run.tasks["b"].status == "in_progress"
                    run.state["draft"] = run.call(tools.write, "good")

    with session() as run:
        program(run)
        assert {task.name: task.status for task in run.tasks} == {
            "a": "completed",
            "b": "completed",
        }
        assert run.state["draft"][1] == "good"


@pytest.mark.parametrize("when", ["run:before_tool", "run:after_end", "run:task_exit"])
def test_a_task_cut_off_after_it_went_back_is_done_from_its_beginning(
    session: Open, tools: Tools, when: str
) -> None:
    def program(run: Any) -> None:
        for task in run.tasks.plan("a").remaining():
            with task:
                run.call(tools.write, "bad")
                run.rollback(to="start")
                run.state["draft"] = run.call(tools.write, "good")
                run.call(tools.send, "x", effect="irreversible")

    times = {"run:before_tool": 3, "run:after_end": 3, "run:task_exit": 1}
    with cut_at(when, times[when]), session() as run:
        program(run)
    with session() as run:
        if when == "run:before_tool":
            run.unknown_effects()[-1].retry()
        program(run)
        assert run.state["draft"][1] == "good"
        assert run.tasks["a"].status == "completed"
    assert tools.names().count("send") == 1


def test_state_alone_or_files_alone_may_go_back(session: Open, tools: Tools) -> None:
    with session() as run:
        run.state["n"] = 1
        book(run, tools, 1)
        run.rollback(to="start", scope="files")
        assert (run.state, undone) == ({"n": 1}, [])
        run.rollback(to="start", scope=("state",))
        assert run.state == {}
        assert len(undone) == 1


@pytest.mark.parametrize("accept", [False, True])
def test_an_unknown_effect_is_neither_undone_nor_passed_by_silently(
    session: Open, tools: Tools, accept: bool
) -> None:
    with session() as run:
        with cut_at("run:after_tool"):
            book(run, tools, 1)
        if not accept:
            with pytest.raises(RollbackRefusedError, match=r"book\(1\) \(its end is unknown\)"):
                run.rollback(to="start")
            run.unknown_effects()[0].mark_done()
            return
        done = run.rollback(to="start", accept_irreversible=True)
        assert [str(each) for each in done.remaining] == ["book(1)"]
        assert "nobody knows" in str(done)
    assert undone == []


POINTS = [
    "run:rollback_begun",
    "run:before_compensation",
    "run:after_compensation",
    "run:compensated",
    "run:before_checkpoint",
    "run:rolled_back",
]


@pytest.mark.parametrize("point", POINTS)
def test_a_rollback_that_was_cut_off_is_finished_at_the_next_open(
    session: Open, tools: Tools, point: str
) -> None:
    with power_cut(), session() as run:
        run.state["n"] = 1
        book(run, tools, 1)
        book(run, tools, 2)
        run.checkpoint("two")
        run.state["n"] = 2
        time = 2 if point in ("run:before_checkpoint", "run:after_compensation") else 1
        with cut_at(point, time):
            run.rollback(to="start")
        raise PowerCut

    with session() as run:
        assert run.state == {}
        assert run.history(limit=1)[0].step_name == "rolled back to start"
        assert [each.compensated for each in run.effects] == [True, True]
        run.undo()
        assert run.state == {"n": 2}
    # A compensation whose end was not recorded runs again: it has to bear that.
    assert [call[1] for call in undone] == [2, 1, *([1] * (point == "run:after_compensation"))]


def test_a_rollback_that_was_cut_off_before_it_began_did_not_take_place(
    session: Open, tools: Tools
) -> None:
    with power_cut(), session() as run:
        book(run, tools, 1)
        with cut_at("run:before_checkpoint"):
            run.rollback(to="start")
        raise PowerCut

    with session() as run:
        book(run, tools, 1)
        assert [each.status for each in run.effects] == ["done"]
    assert (undone, len(tools.ran)) == ([], 1)


def test_a_compensation_that_is_not_loaded_is_named_and_can_be_given(
    session: Open, tools: Tools
) -> None:
    def inner(output: Any, *args: Any) -> None:
        undone.append(output)

    with power_cut(), session() as run:
        book(run, tools, 1, compensate=inner)
        with cut_at("run:before_compensation"):
            run.rollback(to="start")
        raise PowerCut

    for _ in range(2):  # and no lease is left behind
        with pytest.raises(RunError, match=r"book\(1\) is undone by .*inner.*tools=\[that"):
            with session():
                pass
    with session(tools=[inner]) as run:
        assert run.state == {}
    assert undone == [["book", 1, 1]]


def test_a_rollback_over_a_compensation_that_is_not_loaded_does_nothing(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        book(run, tools, 1)
        book(run, tools, 2, compensate=tools.cancel)  # of an object: it cannot be found again
    with session() as run:
        head = run.head
        with pytest.raises(RunError, match=r"Tools.cancel\(\), which this program has not given"):
            run.rollback(to="start")
        assert (run.head, undone) == (head, [])
    with session(tools=[unbook, tools.cancel]) as run:
        run.rollback(to="start")
    assert tools.names() == ["book", "book", "cancel"]


def test_compensations_of_several_objects_are_told_apart(session: Open, tools: Tools) -> None:
    other = Tools()
    with session() as run:
        book(run, tools, 1, compensate=tools.cancel)
        book(run, tools, 2, compensate=other.cancel)
        run.rollback(to="start")
    assert tools.names() == ["book", "book", "cancel"]
    assert other.names() == ["cancel"]


async def test_async_compensations_are_awaited(tools: Tools, tmp_path: Path) -> None:
    from holdfast import Client

    async def release(output: Any, *args: Any) -> None:
        undone.append((output, *args))

    async with Client.memory() as client, client.session(AGENT, session_id=SESSION) as run:
        await run.call(tools.book, 1, effect="reversible", compensate=release)
        done = await run.rollback(to="start")
        assert [str(each) for each in done.compensated] == ["book(1)"]
    assert len(undone) == 1


def test_every_point_of_a_rollback_is_named(session: Open, tools: Tools) -> None:
    reached: list[str] = []
    with session() as run:
        book(run, tools, 1)
        with crash_points.listening(reached.append):
            run.rollback(to="start")
    assert {point for point in reached if point.startswith("run:")} >= set(POINTS)
