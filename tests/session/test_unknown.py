"""A call that began and never ended is unknown: what lasts is decided by the user, then goes on."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

from typing import Any

import pytest

from holdfast.errors import DivergenceError, RunError, SerializationError, UnknownEffectError
from tests.session.conftest import Open
from tests.session.kit import PowerCut, Tools, cut_at, power_cut

LASTING = ["reversible", "irreversible"]


def send(run: Any, tools: Tools, kind: str, *args: Any) -> Any:
    compensate = tools.cancel if kind == "reversible" else None
    return run.call(tools.send, *args, effect=kind, compensate=compensate)


@pytest.mark.parametrize("kind", LASTING)
@pytest.mark.parametrize("point", ["run:before_tool", "run:after_tool", "run:before_end"])
def test_what_lasts_is_unknown_until_it_is_decided(
    session: Open, tools: Tools, kind: str, point: str
) -> None:
    with cut_at(point), session() as run:
        send(run, tools, kind, "x")
    ran = len(tools.ran)

    for _ in range(2):  # it stays so over restarts
        with pytest.raises(UnknownEffectError, match=r"send\('x'\) was begun.*mark_done"):
            with session() as run:
                (unknown,) = run.unknown_effects()
                assert (unknown.tool, unknown.args, unknown.status) == ("send", ("x",), "started")
                assert "send('x')" in repr(unknown)
                for _ in range(2):
                    with pytest.raises(UnknownEffectError):
                        send(run, tools, kind, "x")
                send(run, tools, kind, "x")
    with pytest.raises(UnknownEffectError), session() as run:
        run.checkpoint()
    assert len(tools.ran) == ran


@pytest.mark.parametrize("kind", LASTING)
def test_a_call_marked_done_gives_what_was_said(session: Open, tools: Tools, kind: str) -> None:
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, kind, "x")

    with power_cut(), session() as run:
        run.unknown_effects()[0].mark_done({"id": 7})
        assert run.unknown_effects() == []
        raise PowerCut
    with session() as run:
        assert send(run, tools, kind, "x") == {"id": 7}
    with session() as run:
        assert [(each.status, each.output) for each in run.effects] == [("done", {"id": 7})]
    assert len(tools.ran) == 1


@pytest.mark.parametrize("error", [OSError("refused"), "refused"])
def test_a_call_marked_failed_raises_what_was_said(session: Open, tools: Tools, error: Any) -> None:
    expected = OSError if isinstance(error, OSError) else RunError
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, "irreversible", "x")

    with power_cut(), session() as run:
        run.unknown_effects()[0].mark_failed(error)
        raise PowerCut
    with session() as run:
        with pytest.raises(expected, match="refused"):
            send(run, tools, "irreversible", "x")
        send(run, tools, "irreversible", "x")  # a second one is another call
    assert len(tools.ran) == 2


def test_a_call_to_be_retried_is_made_again_under_the_same_id(session: Open) -> None:
    seen: list[str] = []

    def pay(idempotency_key: str) -> str:
        seen.append(idempotency_key)
        if len(seen) == 1:
            raise PowerCut
        return "paid"

    with power_cut(), session() as run:
        run.call(pay, effect="irreversible")
    with power_cut(), session() as run:
        run.unknown_effects()[0].retry()
        raise PowerCut  # the decision survives
    with session() as run:
        assert run.call(pay, effect="irreversible") == "paid"
        assert run.unknown_effects() == []
    assert seen[0] == seen[1]


def test_a_crash_in_a_retry_is_unknown_again(session: Open, tools: Tools) -> None:
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, "irreversible", "x")
    with cut_at("run:after_tool"), session() as run:
        run.unknown_effects()[0].retry()
        send(run, tools, "irreversible", "x")

    with session() as run:
        with pytest.raises(UnknownEffectError):
            send(run, tools, "irreversible", "x")
        run.unknown_effects()[0].mark_done()
        assert send(run, tools, "irreversible", "x") is None
    assert len(tools.ran) == 2


def test_a_retry_that_the_program_does_not_make_is_named(session: Open, tools: Tools) -> None:
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, "irreversible", "x")

    with pytest.raises(DivergenceError, match=r"send\('x'\)"), session() as run:
        run.unknown_effects()[0].retry()
        run.state["went on"] = True


@pytest.mark.parametrize("in_task", [False, True], ids=["in the session", "in a task"])
@pytest.mark.parametrize("decision", ["retry", "mark_done", "mark_failed"])
def test_what_was_decided_by_one_who_only_came_to_decide_holds(
    session: Open, tools: Tools, decision: str, in_task: bool
) -> None:
    def program(run: Any) -> None:
        if not in_task:
            send(run, tools, "irreversible", "x")
        for task in run.tasks.plan("mail").remaining() if in_task else ():
            with task:
                send(run, tools, "irreversible", "x")

    with cut_at("run:after_tool"), session() as run:
        program(run)
    with session() as run:
        head = run.head
        (unknown,) = run.unknown_effects()
        getattr(unknown, decision)(*(["refused"] if decision == "mark_failed" else []))
    with session() as run:
        assert run.head == head  # nothing was saved past what waits to be made again
        if decision == "mark_failed":
            with pytest.raises(Exception, match="refused"):
                program(run)
        else:
            program(run)
    assert len(tools.ran) == (2 if decision == "retry" else 1)


def test_a_session_whose_calls_wait_can_be_looked_at(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        run.call(tools.read, "y")
        raise PowerCut
    with session() as run:
        assert run.state == {}
    with session() as run:
        run.call(tools.read, "y")
    assert len(tools.ran) == 1


def test_a_decision_is_made_once(session: Open, tools: Tools) -> None:
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, "irreversible", "x")

    with session() as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_done()
        for decide in (unknown.mark_done, unknown.retry, lambda: unknown.mark_failed("no")):
            with pytest.raises(RunError, match="not unknown any more"):
                decide()
        send(run, tools, "irreversible", "x")


def test_what_is_said_of_a_call_has_to_be_something_that_can_be_kept(
    session: Open, tools: Tools
) -> None:
    with cut_at("run:after_tool"), session() as run:
        send(run, tools, "irreversible", "x")

    with session() as run:
        with pytest.raises(SerializationError):
            run.unknown_effects()[0].mark_done(iter([]))
        run.unknown_effects()[0].mark_done()
        send(run, tools, "irreversible", "x")


def test_reads_and_local_calls_of_unknown_end_are_listed_and_bother_nobody(
    session: Open, tools: Tools
) -> None:
    with power_cut(), session() as run:
        run.call(tools.cut, 1, effect="read")

    with session() as run:
        assert [each.tool for each in run.unknown_effects()] == ["cut"]
        run.checkpoint()
        assert run.unknown_effects() == []
    with session() as run:
        assert run.unknown_effects() == []


def test_an_output_of_a_lasting_call_that_cannot_be_kept_is_told(
    session: Open, tools: Tools
) -> None:
    def order() -> Any:
        tools.ran.append(("order",))
        return iter([])

    with pytest.raises(SerializationError, match="the output of order"), session() as run:
        run.call(order, effect="irreversible")

    with session() as run:
        with pytest.raises(UnknownEffectError, match="it returned, but its output could not"):
            run.call(order, effect="irreversible")
        run.unknown_effects()[0].mark_done("order 7")
        assert run.call(order, effect="irreversible") == "order 7"
    assert len(tools.ran) == 1


def test_a_call_with_a_key_of_unknown_end_is_not_made_elsewhere(
    session: Open, tools: Tools
) -> None:
    with cut_at("run:after_tool"), session() as run:
        for task in run.tasks.plan("one", "two").remaining():
            with task:
                run.call(tools.send, effect="irreversible", key="k")

    with session() as run:
        with pytest.raises(UnknownEffectError):
            run.call(tools.send, effect="irreversible", key="k")
        run.unknown_effects()[0].mark_done("sent")
        for task in run.tasks.plan("one", "two").remaining():
            with task:
                assert run.call(tools.send, effect="irreversible", key="k") == "sent"
    assert len(tools.ran) == 1


def test_a_failure_with_an_unknown_call_saves_nothing_so_that_it_stays_known(
    session: Open, tools: Tools
) -> None:
    with pytest.raises(OSError, match="lost"), session() as run:
        with cut_at("run:after_tool"):
            send(run, tools, "irreversible", "x")
        raise OSError("lost the connection")

    with pytest.raises(UnknownEffectError), session() as run:
        assert [info.step_name for info in run.history()] == ["start"]
        send(run, tools, "irreversible", "x")
    assert len(tools.ran) == 1
