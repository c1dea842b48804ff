"""Tool calls are journaled: a resumed program gets what they gave, and nothing runs twice."""

# ruff: noqa: PT012, SIM117  (a run is a block, and some raise as it ends)

import threading
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import DivergenceError, InvalidArgumentError, RunError, SerializationError
from tests.session.conftest import Open
from tests.session.kit import AGENT, PowerCut, Tools, cut_at, power_cut


@dataclass
class Page:
    title: str
    tags: set[str]


class Broken(Exception):
    def __init__(self, code: int, path: Path) -> None:
        super().__init__(f"code {code}")
        self.code, self.path = code, path


def page(title: str) -> Page:
    return Page(title, {"a", "b"})


def broken(code: int) -> None:
    raise Broken(code, Path("/tmp"))


def test_a_resumed_program_gets_recorded_outputs_in_order(session: Open, tools: Tools) -> None:
    def program(run: Any) -> list[Any]:
        first = [run.call(tools.read, "a") for _ in range(3)]
        return [*first, run.call(tools.write, "b", effect="local")]

    with power_cut(), session() as run:
        given = program(run)
        raise PowerCut

    with session() as run:
        assert program(run) == given
        assert run.call(tools.read, "a") == ["read", "a", 5]
    assert tools.names() == ["read", "read", "read", "write", "read"]


def test_outputs_and_exceptions_come_back_with_their_exact_types(session: Open) -> None:
    def program(run: Any) -> list[Any]:
        found = [run.call(page, "one"), run.call(Decimal, "1.50"), run.call(tuple, [1, (2,)])]
        with pytest.raises(Broken) as caught:
            run.call(broken, 7)
        return [*found, (caught.value.code, caught.value.path, str(caught.value))]

    with power_cut(), session() as run:
        first = program(run)
        raise PowerCut

    with session() as run:
        again = program(run)
    assert again == first
    assert [type(each) for each in again] == [Page, Decimal, tuple, tuple]
    assert again[-1] == (7, Path("/tmp"), "code 7")


def test_a_call_is_kept_with_all_that_is_known_of_it(session: Open, tools: Tools) -> None:
    with session() as run:
        run.call(tools.send, "ann", effect="irreversible", key="mail-1")
        with pytest.raises(ValueError, match="no such"):
            run.call(tools.fail, 1)

    with session() as run:
        sent, failed = run.effects
    assert (sent.tool, sent.kind, sent.args, sent.kwargs) == ("send", "irreversible", ("ann",), {})
    assert (sent.status, sent.output, sent.key) == ("done", ["send", "ann", 1], "mail-1")
    assert sent.started_at <= sent.ended_at
    assert (failed.status, repr(failed.error)) == ("failed", "ValueError('no such file', 2)")
    assert str(sent) == "send('ann')"


def test_what_the_program_changes_later_is_not_changed_in_the_record(session: Open) -> None:
    def give(messages: list[str]) -> list[str]:
        return [*messages]

    with session() as run:
        messages = ["hi"]
        out = run.call(give, messages)
        messages.append("later")
        out.append("later")

    with session() as run:
        assert run.effects[0].args == (["hi"],)
        assert run.effects[0].output == ["hi"]


def test_a_tool_gets_the_very_objects_of_the_program(session: Open) -> None:
    box: list[int] = []

    with session() as run:
        run.call(list.append, box, 1)

    assert box == [1]


def test_bound_methods_lambdas_partials_builtins_and_classes_are_tools(
    session: Open, tools: Tools
) -> None:
    def program(run: Any) -> list[Any]:
        return [
            run.call(tools.read, "x"),
            run.call(lambda n: n + 1, 1),
            run.call(partial(tools.read, "a"), "b"),
            run.call(partial(dict, key="k", effect="e")),
            run.call(len, "four"),
            run.call("a-b".split, "-"),
            run.call(Page, "t", {"x"}),
        ]

    with power_cut(), session() as run:
        first = program(run)
        raise PowerCut

    with session() as run:
        assert program(run) == first
        assert [str(effect) for effect in run.effects] == [
            "read('x')",
            "<lambda>(1)",
            "read('a', 'b')",
            "dict(key='k', effect='e')",
            "len('four')",
            "split('-')",
            "Page('t', {'x'})",
        ]
    assert len(tools.ran) == 2


def test_partials_that_bind_other_arguments_are_other_calls(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        run.call(partial(tools.read, "a"))
        raise PowerCut

    with pytest.raises(DivergenceError, match=r"read\('b'\).*read\('a'\)"), session() as run:
        run.call(partial(tools.read, "b"))


def test_arguments_that_cannot_be_kept_are_named_before_anything_runs(
    session: Open, tools: Tools
) -> None:
    with session() as run:
        with pytest.raises(SerializationError) as error:
            run.call(tools.read, 1, [2, iter([])])
        assert error.value.path == "the arguments of read, $[1][1]"
        with pytest.raises(SerializationError, match="not called"):
            run.call(tools.read, file=threading.Lock())
        assert run.effects == []
    assert tools.ran == []


@pytest.mark.parametrize("effect", ["read", "local"])
def test_an_output_that_cannot_be_kept_is_named_and_runs_again_once_it_can(
    session: Open, effect: Any
) -> None:
    outputs: list[Any] = [iter([]), "text"]

    def tool() -> Any:
        return outputs.pop(0)

    with session() as run:
        with pytest.raises(SerializationError, match="the output of tool"):
            run.call(tool, effect=effect)
        assert run.call(tool, effect=effect) == "text"

    with session() as run:
        assert [(each.status, each.output) for each in run.effects] == [("done", "text")]


def test_an_exception_that_cannot_be_kept_is_raised_and_on_resume_told(
    session: Open, tools: Tools
) -> None:
    class WithLock(Exception):
        def __init__(self) -> None:
            super().__init__("status 404")
            self.lock = threading.Lock()

    def tool() -> None:
        tools.ran.append(("tool",))
        raise WithLock

    with power_cut(), session() as run:
        with pytest.raises(WithLock) as caught:
            run.call(tool)
        assert "on resume" in caught.value.__notes__[0]
        raise PowerCut

    with session() as run, pytest.raises(RunError, match=r"WithLock: status 404.*could not"):
        run.call(tool)
    assert len(tools.ran) == 1


def test_large_outputs_are_stored_once(session: Open, client: Any, url: str) -> None:
    large = [f"{number:08}" * 32 for number in range(4000)]

    def tool() -> list[str]:
        return large

    with session() as run:
        for _ in range(3):
            run.state["large"] = run.call(tool)
    if client.store.shares_chunks:
        assert client.stats().stored_bytes < 2.2 * len("".join(large))

    with session() as run:
        assert run.state["large"] == run.effects[2].output == large


def test_an_idempotency_key_is_handed_over_and_stays_the_same(session: Open) -> None:
    seen: list[tuple[str, str]] = []

    def charge(amount: int, idempotency_key: str) -> None:
        seen.append(("charge", idempotency_key))
        if len(seen) < 3:
            raise PowerCut

    for _ in range(2):
        with power_cut(), session() as run:
            run.call(charge, 5, effect="read")
    with session() as run:
        run.call(charge, 5, effect="read")
        run.call(charge, 5, effect="read")
        run.call(charge, 5, effect="read", idempotency_key="mine")
        run.call(charge, 5, effect="read", key="order-7")

    keys = [key for _, key in seen]
    assert keys[0] == keys[1] == keys[2]
    assert len({keys[2], keys[3], "mine", "order-7"}) == 4
    assert keys[4:] == ["mine", "order-7"]


def test_equal_calls_have_ids_of_their_own_everywhere(client: Any, tools: Tools) -> None:
    ids = []
    for session_id in ("one", "two"):
        for _ in range(2):
            with client.session(AGENT, session_id=session_id) as run:
                run.call(tools.read)
                run.call(tools.read)
                run.checkpoint()
                run.call(tools.read)
                for task in run.tasks.plan("a", "b").remaining():
                    with task:
                        run.call(tools.read)
        with client.session(AGENT, session_id=session_id) as run:
            ids += [effect.id for effect in run.effects]
    assert len(ids) == len(set(ids)) == 16


def test_a_key_makes_a_call_once_in_a_session(session: Open, tools: Tools) -> None:
    with session() as run:
        first = run.call(tools.send, "a", key="k")
        assert run.call(tools.send, "a", key="k") == first
        run.checkpoint()
        assert run.call(tools.send, "a", key="k") == first
        assert run.call(tools.send, "a", key="other") != first

    with session() as run:
        assert run.call(tools.send, "a", key="k") == first
        with pytest.raises(DivergenceError, match=r"'k'.*another key"):
            run.call(tools.send, "b", key="k")
        assert run.call(tools.read, "a", key="k")[0] == "read"
    assert tools.names() == ["send", "send", "read"]


def test_a_call_with_a_key_that_failed_may_be_made_again(session: Open, tools: Tools) -> None:
    with session() as run:
        with pytest.raises(ValueError, match="no such"):
            run.call(tools.fail, key="k")
        with pytest.raises(ValueError, match="no such"):
            run.call(tools.fail, key="k")
        assert len({effect.id for effect in run.effects}) == 2
    assert tools.names() == ["fail", "fail"]


def test_a_program_that_calls_something_else_is_named(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        run.call(tools.read, "a")
        run.call(tools.write, "b")
        raise PowerCut

    with pytest.raises(DivergenceError) as error, session() as run:
        run.call(tools.read, "a")
        run.call(tools.write, "c")
    assert "the program calls write('c') where write('b') was recorded" in str(error.value)
    assert 'on_divergence="live"' in str(error.value)

    with session() as run:  # nothing was lost by that
        run.call(tools.read, "a")
        run.call(tools.write, "b")
    assert tools.names() == ["read", "write"]


@pytest.mark.parametrize("by", ["checkpoint", "another state", "task", "fork"])
def test_a_program_that_goes_past_recorded_calls_is_named(
    session: Open, tools: Tools, by: str
) -> None:
    with power_cut(), session() as run:
        run.call(tools.read, "a")
        raise PowerCut

    with pytest.raises(DivergenceError, match=r"comes to a checkpoint where read\('a'\)"):
        with session() as run:
            if by == "checkpoint":
                run.checkpoint()
            if by == "another state":
                run.state["n"] = 1
            if by == "fork":
                run.fork()
            if by == "task":
                with run.tasks.plan("x")["x"]:
                    pass


def test_on_divergence_live_goes_on_and_leaves_what_was_recorded(
    session: Open, tools: Tools
) -> None:
    with power_cut(), session() as run:
        run.call(tools.read, "a")
        run.call(tools.send, "x", effect="irreversible")
        run.call(tools.read, "z")
        raise PowerCut

    with session(on_divergence="live") as run:
        assert run.call(tools.read, "a") == ["read", "a", 1]
        assert run.call(tools.write, "b") == ["write", "b", 4]
        assert run.call(tools.read, "z") == ["read", "z", 5]
        assert run.call(tools.send, "x", effect="irreversible") == ["send", "x", 2]
    with session() as run:
        standing = [str(each) for each in run.effects if not each.abandoned]
        assert standing == ["read('a')", "write('b')", "read('z')", "send('x')"]
    assert tools.names() == ["read", "send", "read", "write", "read"]


def test_on_divergence_live_also_goes_past_recorded_calls(session: Open, tools: Tools) -> None:
    with power_cut(), session() as run:
        run.call(tools.read, "a")
        raise PowerCut

    with session(on_divergence="live") as run:
        run.state["n"] = 1
    with session() as run:
        assert run.state == {"n": 1}
        assert [effect.abandoned for effect in run.effects] == [True]


def test_calls_before_an_own_checkpoint_are_not_made_again(session: Open, tools: Tools) -> None:
    def program(run: Any) -> None:
        for number in range(run.state.get("n", 0), 3):
            run.call(tools.read)
            if number == 2 and not run.resumed:
                raise PowerCut
            run.state["n"] = number + 1
            run.checkpoint()

    with power_cut(), session() as run:
        program(run)
    with session() as run:
        program(run)

    assert len(tools.ran) == 3  # the last was recorded, the others are in the state


def test_calls_around_tasks_come_from_the_record_too(session: Open, tools: Tools) -> None:
    """The natural program: look first, then a task after the other, each with parts."""

    def program(run: Any) -> None:
        config = run.call(tools.read, "config")
        for task in run.tasks.plan("a", "b").remaining():
            with task:
                run.call(tools.read, "for", task.name, config)
                for part in task.plan("one", "two").remaining():
                    with part:
                        run.call(tools.write, part.id)
                        if part.id == "b/two" and not run.state.get("again"):
                            raise PowerCut
                        run.state[part.id] = True

    with power_cut(), session() as run:
        program(run)
    before = list(tools.ran)
    with session() as run:
        run.state["again"] = True
        program(run)

    assert tools.ran == before
    with session() as run:
        assert len(run.effects) == len(before) == 7


def test_a_new_run_after_a_clean_end_calls_anew(session: Open, tools: Tools) -> None:
    for _ in range(2):
        with session() as run:
            run.call(tools.read, "a")
            for task in run.tasks.plan("x").remaining():
                with task:
                    pass

    assert len(tools.ran) == 2


def test_a_run_after_a_failed_one_calls_anew_but_sends_nothing_twice(
    session: Open, tools: Tools
) -> None:
    def program(run: Any) -> list[Any]:
        run.call(tools.read, "a")
        sent = run.call(tools.send, "x", effect="irreversible")
        if len(tools.ran) < 3:
            raise OSError("a bug, mended later")
        return sent

    with pytest.raises(OSError, match="mended"), session() as run:
        program(run)
    with session() as run:
        assert program(run) == ["send", "x", 2]
        assert run.call(tools.send, "x", effect="irreversible") == ["send", "x", 4]

    assert tools.names() == ["read", "send", "read", "send"]


def test_again_makes_a_call_that_stands(session: Open, tools: Tools) -> None:
    with pytest.raises(OSError, match="a bug"), session() as run:
        run.call(tools.send, "x", effect="irreversible")
        raise OSError("a bug")

    with session() as run:
        run.call(tools.send, "x", effect="irreversible", again=True)
    assert len(tools.ran) == 2


def test_a_decorated_tool_is_called_through_the_run(session: Open, tools: Tools) -> None:
    def program(run: Any) -> list[Any]:
        look = run.tool(tools.read)
        send = run.tool(effect="irreversible")(tools.send)
        return [look("a"), send("b", key="k"), send("b", key="k")]

    with power_cut(), session() as run:
        first = program(run)
        raise PowerCut
    with session() as run:
        assert program(run) == first
        assert [effect.kind for effect in run.effects][:2] == ["local", "irreversible"]
    assert tools.names() == ["read", "send"]


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ({"effect": "write"}, "effect is one of read, local"),
        ({"effect": "reversible"}, "needs compensate="),
        ({"effect": "local", "compensate": print}, "goes with"),
        ({"effect": "reversible", "compensate": partial(print, 1)}, "found again"),
        ({"key": ""}, "key is a string"),
        ({"key": 7}, "key is a string"),
    ],
)
def test_calls_that_make_no_sense_are_refused(
    session: Open, tools: Tools, call: dict[str, Any], complaint: str
) -> None:
    with session() as run:
        with pytest.raises(InvalidArgumentError, match=complaint):
            run.call(tools.read, **call)
        with pytest.raises(InvalidArgumentError, match="takes a function"):
            run.call("read")
    assert tools.ran == []


@pytest.mark.parametrize(
    "point", ["run:before_journal", "run:before_tool", "run:after_tool", "run:before_end"]
)
@pytest.mark.parametrize("effect", ["read", "local"])
def test_a_call_that_was_cut_off_runs_again_if_it_may(
    session: Open, tools: Tools, point: str, effect: Any
) -> None:
    with cut_at(point), session() as run:
        run.call(tools.read, "a", effect=effect)

    with session() as run:
        run.call(tools.read, "a", effect=effect)
        assert [each.status for each in run.effects] == ["done"]
    assert len(tools.ran) == 1 + (point in ("run:after_tool", "run:before_end"))


def test_a_call_cut_off_past_its_end_does_not_run_again(session: Open, tools: Tools) -> None:
    with cut_at("run:after_end"), session() as run:
        run.call(tools.read, "a")

    with session() as run:
        assert run.call(tools.read, "a") == ["read", "a", 1]


def test_the_arguments_of_a_tool_may_have_any_name(session: Open) -> None:
    def tool(**given: Any) -> list[str]:
        return sorted(given)

    with session() as run:
        assert run.call(tool, function=1, self=2, args=3, kwargs=4, step=5) == [
            *("args", "function", "kwargs", "self", "step")
        ]
