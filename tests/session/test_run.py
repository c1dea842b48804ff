"""A session is worked on in a run: it is saved when it is left, and goes on where it stopped."""

# ruff: noqa: PT012  (a run is a block, and some raise as it ends)

from typing import Any

import numpy
import pytest

from holdfast.errors import InvalidArgumentError, RunError, SerializationError, StoreClosedError
from tests.clients import end
from tests.session.conftest import Open
from tests.session.kit import AGENT, SESSION, PowerCut, Tools, cut_at, plainly, power_cut


def test_a_new_session_begins_with_an_empty_dict(session: Open) -> None:
    with session() as run:
        assert (run.state, run.context, run.resumed, run.progress) == ({}, {}, False, 0.0)
        assert run.workspace is None
        assert [info.step_name for info in run.history()] == ["start"]


def test_leaving_the_block_saves_and_the_next_run_goes_on(session: Open, client: Any) -> None:
    with session(state={"n": 1}, context={"user": "ann"}) as run:
        run.state["n"] += 1
        run.context["seen"] = True

    with session(state={"n": 100}, context={"lang": "en"}) as run:
        assert run.resumed
        assert run.state == {"n": 2}
        assert run.context == {"user": "ann", "seen": True, "lang": "en"}
    assert client.latest(AGENT, SESSION).execution_state == {"n": 2}


def test_a_state_may_be_any_value_that_can_be_kept(session: Open) -> None:
    with session(state=[1]) as run:
        run.state = ("a tuple", {1, 2}, 1.5)

    with session() as run:
        assert run.state == ("a tuple", {1, 2}, 1.5)


def test_an_exception_saves_a_checkpoint_marked_failed_and_goes_on(session: Open) -> None:
    with pytest.raises(ValueError, match="broken"), session() as run:
        run.state["n"] = 1
        raise ValueError("broken")

    with session() as run:
        (newest, *_) = run.history()
        assert (newest.step_name, newest.metadata["failed"]) == ("failed", True)
        assert newest.metadata["error"] == "ValueError: broken"
        assert run.state == {"n": 1}


@pytest.mark.parametrize("error", [PowerCut, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_saves_nothing_and_lets_go(
    session: Open, error: type[BaseException]
) -> None:
    def program() -> None:
        with session() as run:
            run.state["half"] = 1
            raise error

    with pytest.raises(error):
        program()

    with session() as run:
        assert run.state == {}
        assert [info.step_name for info in run.history()] == ["start"]


def test_a_checkpoint_has_a_name_and_tags_of_its_own(session: Open, client: Any) -> None:
    with session(team="red") as run:
        run.state["n"] = 1
        saved = run.checkpoint("good", failed="a tag", block="another")

        assert run.head == saved
        assert [info.step_name for info in run.history(limit=1)] == ["good"]
    kept = client.restore(saved)
    assert kept.metadata == {"team": "red", "failed": "a tag", "block": "another"}
    assert kept.execution_state == {"n": 1}


def test_checkpoints_follow_each_other(session: Open, client: Any) -> None:
    with session() as run:
        first = run.head
        second = run.checkpoint()
        third = run.checkpoint()

    assert [info.checkpoint_id for info in client.ancestors(third)] == [second, first]
    assert [info.step_index for info in client.timeline(AGENT, SESSION)] == [3, 2, 1, 0]


def test_a_state_that_cannot_be_kept_is_named_and_nothing_is_written(session: Open) -> None:
    def program() -> None:
        with session() as run:
            run.state["lock"] = open
            run.state["file"] = iter([])
            run.checkpoint()

    with pytest.raises(SerializationError, match=r"\$"):
        program()

    with session() as run:
        assert [info.step_name for info in run.history()] == ["start"]
        assert run.state == {}


def test_a_run_that_is_over_says_so(session: Open, tools: Tools) -> None:
    with session() as run:
        pass

    for use in (
        lambda: run.checkpoint(),
        lambda: run.call(tools.read),
        lambda: run.rollback(),
        lambda: run.undo(),
        lambda: run.fork(),
    ):
        with pytest.raises(RunError, match="open the session again"):
            use()
    assert tools.ran == []


def test_a_run_that_was_not_opened_says_so(session: Open) -> None:
    with pytest.raises(RunError, match=r"with client\.session"):
        _ = session().head


def test_a_run_can_be_opened_again(session: Open, tools: Tools) -> None:
    run = session()
    with run:
        run.state["n"] = 1
    with run:
        assert run.resumed
        assert run.state == {"n": 1}
        run.call(tools.read)
        run.close()
        run.close()


def test_sessions_without_a_name_are_told_apart(client: Any) -> None:
    with client.session(AGENT) as one, client.session(AGENT) as other:
        assert one.session_id != other.session_id


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"lease_seconds": 0}, "lease_seconds"),
        ({"lease_seconds": "long"}, "lease_seconds"),
        ({"on_divergence": "ignore"}, "on_divergence"),
        ({"approval": "ask"}, "approval"),
        ({"approval": lambda _: True, "approve_when": [1]}, "approve_when"),
        ({"context": [1]}, "context"),
        ({"session_id": ""}, "session_id"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    client: Any, options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(InvalidArgumentError, match=complaint):
        client.session(AGENT, **options)


def test_a_closed_client_opens_no_session(face: Any) -> None:
    opened = face.open("memory://")
    client = plainly(opened)
    client.close()

    with pytest.raises(StoreClosedError), client.session(AGENT):
        pass
    end(opened)


def test_a_head_that_was_removed_leaves_the_session_at_the_one_before(
    session: Open, client: Any
) -> None:
    with session() as run:
        run.state["n"] = 1
        run.checkpoint("good")
        run.state["n"] = 2
    client.expire(client.latest(AGENT, SESSION).checkpoint_id)

    with session() as run:
        assert run.state == {"n": 1}
        run.state["n"] = 3
        run.checkpoint("after")
    with session() as run:
        assert run.state == {"n": 3}


@pytest.mark.parametrize("point", ["run:before_checkpoint", "run:after_checkpoint"])
def test_a_checkpoint_that_was_cut_off_is_there_whole_or_not_at_all(
    session: Open, point: str
) -> None:
    with cut_at(point, 2), session() as run:
        run.state["n"] = 1
        run.checkpoint("one")

    with session() as run:
        assert run.state == ({"n": 1} if point == "run:after_checkpoint" else {})


@pytest.mark.parametrize("point", ["run:before_checkpoint", "run:after_checkpoint"])
def test_a_program_that_outlives_an_interrupt_goes_on(session: Open, point: str) -> None:
    with session() as run:
        run.state["n"] = 1
        with cut_at(point):
            run.checkpoint("one")
        run.state["n"] = 2
        run.checkpoint("two")
        run.state["n"] = 3

    with session() as run:
        assert run.state == {"n": 3}
        steps = [info.step_name for info in run.history()]
        assert steps == ["end", "two", *(["one"] * (point == "run:after_checkpoint")), "start"]


def test_arrays_are_kept_in_state_arguments_outputs_and_tasks(session: Open) -> None:
    array = numpy.arange(4)

    with power_cut(), session() as run:
        run.state["array"] = array
        for task in run.tasks.plan({"name": "sum", "data": array}).remaining():
            with task:
                out = run.call(numpy.add, array, array)
                assert out.tolist() == [0, 2, 4, 6]
                raise PowerCut

    with session() as run:
        assert run.state["array"].tolist() == [0, 1, 2, 3]
        for task in run.tasks.plan({"name": "sum", "data": array}).remaining():
            with task:
                assert run.call(numpy.add, array, array).tolist() == [0, 2, 4, 6]
        assert run.tasks["sum"].data.tolist() == [0, 1, 2, 3]
        assert len(run.effects) == 1
