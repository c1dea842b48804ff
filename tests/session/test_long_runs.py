"""Runs of many calls: whatever is in closed volumes of the log, a run does what it would without.

Programs that are made up are run twice: once with volumes of one entry, once with none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import HoldfastError, SyncClient
from holdfast.session import terms, volumes
from holdfast.session.effects import Effect
from holdfast.session.run import Run
from tests.session.kit import PowerCut

AGENT = "coder"


@contextmanager
def volumes_of(length: int) -> Iterator[None]:
    """Close volumes of that many entries, and fill levels and pages soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(volumes, "LENGTH", length)
        patch.setattr(volumes, "FULL", 2)
        patch.setattr(terms, "_PAGE", 2)
        yield


CALLS = st.tuples(
    st.sampled_from(["read", "local", "reversible", "irreversible"]),
    st.integers(0, 2),
    st.sampled_from([None, None, "k1", "k2"]),
)
ACTS = st.one_of(
    CALLS.map(lambda call: ("call", *call)),
    CALLS.map(lambda call: ("call", *call)),
    st.just(("checkpoint",)),
    st.tuples(st.just("cut off"), st.sampled_from(["local", "irreversible"]), st.integers(0, 2)),
    st.just(("kill",)),
    st.just(("reopen",)),
    st.just(("fail",)),
    st.tuples(st.just("task"), st.lists(CALLS, max_size=3), st.booleans()),
    st.tuples(st.just("rollback"), st.integers(1, 3), st.booleans()),
    st.just(("undo",)),
    st.tuples(st.just("fork"), st.lists(CALLS, max_size=3), st.booleans()),
)


@dataclass
class Program:
    """A program that does as it is told, and writes down what came of it."""

    client: SyncClient
    said: list[Any] = field(default_factory=list)
    tasks: int = 0
    forks: int = 0

    def tool(self, kind: str, number: int) -> str:
        self.said.append(("did", kind, number))
        return f"{kind} {number}"

    def undo(self, output: str, *arguments: Any) -> None:
        self.said.append(("undid", output))

    def broken(self, kind: str, number: int) -> str:
        raise PowerCut

    def session(self) -> Any:
        return self.client.session(AGENT, "s", on_divergence="live", takeover=True)

    def run(self, acts: list[Any]) -> list[Any]:
        left = list(acts)
        while True:
            try:
                with self.session() as run:
                    self.settle(run)
                    while left:
                        act = left.pop(0)
                        if act[0] == "reopen":
                            break
                        self.do(run, act)
                    else:
                        self.said.append([told(each) for each in run.effects])
                        return self.said
            except PowerCut:
                self.said.append("cut")
            except ZeroDivisionError:
                self.said.append("failed")

    def settle(self, run: Run) -> None:
        for number, each in enumerate(run.unknown_effects()):
            (each.mark_done if number % 2 else each.mark_failed)("so it was")

    def do(self, run: Run, act: Any) -> None:
        match act:
            case ("kill",):
                raise PowerCut
            case ("fail",):
                raise ZeroDivisionError
        try:
            self.said.append(self.done(run, act))
        except HoldfastError as error:
            self.said.append(type(error))

    def done(self, run: Run, act: Any) -> Any:
        match act:
            case ("call", kind, number, key):
                return self.call(run, kind, number, key)
            case ("cut off", kind, number):
                return run.call(self.broken, kind, number, effect=kind)
            case ("checkpoint",):
                run.checkpoint()
            case ("task", calls, fails):
                self.tasks += 1
                return self.task(run, f"t{self.tasks}", calls, fails)
            case ("rollback", steps, accept):
                back = run.rollback(steps=steps, accept_irreversible=accept)
                return [list(map(str, each)) for each in (back.compensated, back.remaining)]
            case ("undo",):
                back = run.undo(accept_irreversible=True)
                return [list(map(str, each)) for each in (back.compensated, back.remaining)]
            case ("fork", calls, adopts):
                self.forks += 1
                (forked,) = run.fork(names=[str(self.forks)])
                with forked:
                    for call in calls:
                        self.said.append(self.call(forked, *call))
                    name = forked.session_id
                if adopts:
                    run.adopt(name)
        return None

    def call(self, run: Run, kind: Any, number: int, key: str | None) -> Any:
        undo = self.undo if kind == "reversible" else None
        return run.call(self.tool, kind, number, effect=kind, compensate=undo, key=key)

    def task(self, run: Run, name: str, calls: list[Any], fails: bool) -> Any:
        run.tasks.plan(*(each.name for each in run.tasks), name)
        with run.tasks[name]:
            for call in calls:
                self.said.append(self.call(run, *call))
            if fails:
                raise ZeroDivisionError
        return "task"


def told(call: Effect) -> tuple[Any, ...]:
    marks = (call.abandoned, call.compensated, call.left, call.reused is None)
    return (call.tool, call.args, call.status, call.key, call.task, *marks)


@given(st.lists(ACTS, max_size=25), st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_a_run_does_the_same_with_volumes_and_without(acts: list[Any], length: int) -> None:
    with volumes_of(10**6):
        without = Program(SyncClient.open("memory://")).run(acts)

    with volumes_of(length):
        assert Program(SyncClient.open("memory://")).run(acts) == without
