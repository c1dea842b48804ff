"""Runs of many calls: whatever is in closed volumes of the log, a run does what it would without.

Programs that are made up are run twice: once with volumes of one entry, once with none.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast import Client, HoldfastError, RunError, SyncClient
from holdfast.session import terms, volumes
from holdfast.session.effects import Effect
from holdfast.session.run import Run
from holdfast.stores.base import Store
from holdfast.stores.urls import open_store
from holdfast.stores.wrapper import WrappedStore
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
@settings(max_examples=300, deadline=None)
def test_a_run_does_the_same_with_volumes_and_without(acts: list[Any], length: int) -> None:
    with volumes_of(10**6):
        without = Program(SyncClient.open("memory://")).run(acts)

    with volumes_of(length):
        assert Program(SyncClient.open("memory://")).run(acts) == without


def works(run: Run, count: int, tool: Any = str) -> None:
    for number in range(count):
        run.call(tool, number)
        run.checkpoint(f"after {number}")


class Counting(WrappedStore):
    """A store that counts the chunks it is asked for."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.fetched = 0
        self.loaded = 0

    def fetch(self, names: Any) -> dict[bytes, bytes]:
        found = super().fetch(names)
        self.fetched += sum(map(len, found.values()))
        return found

    def load(self, checkpoint_id: str, *more: Any, **named: Any) -> Any:
        record = super().load(checkpoint_id, *more, **named)
        self.loaded += sum(len(chunk) for chunk in record.chunks.values()) if record else 0
        return record


def test_what_opening_and_going_on_reads_does_not_grow_with_the_calls(tmp_path: Path) -> None:
    read = []
    for count in (150, 1500):
        url = f"sqlite:///{tmp_path}/{count}.db?durability=normal"
        with SyncClient.open(url) as client, client.session(AGENT, "s") as run:
            works(run, count)
        store = Counting(open_store(url))
        with SyncClient(store) as client:
            with client.session(AGENT, "s") as run:
                run.call(str, "more", effect="irreversible", key="more")
                run.checkpoint()
                run.rollback(steps=1, accept_irreversible=True)
            read.append(store.fetched + store.loaded)

    assert read[1] < 1.5 * read[0]


def test_a_checkpoint_holds_what_is_new_and_all_calls_can_be_listed(tmp_path: Path) -> None:
    with SyncClient.open(f"sqlite:///{tmp_path}/s.db") as client:
        with client.session(AGENT, "s") as run:
            works(run, 300)
            assert [call.args for call in run.effects] == [(number,) for number in range(300)]
        head = client.latest(AGENT, "s")
        assert head is not None
        assert len(head.effects) < 3 * volumes.LENGTH
        steps = [each for each in client.replay("s") if each.calls]
        assert [str(each.calls[0]) for each in steps] == [f"str({n})" for n in range(300)]


async def test_async_code_reads_old_calls_when_it_asks_for_them(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with SyncClient.open(url) as client, client.session(AGENT, "s") as run:
        works(run, 200)
    async with Client.open(url) as aio, aio.session(AGENT, "s") as opened:
        with pytest.raises(RunError, match=r"await run\.load_effects\(\)"):
            _ = opened.effects

        assert len(await opened.load_effects()) == 200
        for number in range(100):  # some of these go into volumes, too
            await opened.call(str, number)
            await opened.checkpoint()
        assert len(opened.effects) == 300
        await opened.rollback(steps=1)
        assert [call.abandoned for call in opened.effects] == [False] * 299 + [True]


def test_a_payment_of_long_ago_is_known_by_its_key_and_after_a_rollback() -> None:
    paid: list[int] = []

    def pay(amount: int) -> int:
        paid.append(amount)
        return amount

    client = SyncClient.open("memory://")
    with client.session(AGENT, "s") as run:
        run.checkpoint("start")
        run.call(pay, 1, effect="irreversible", key="rent")
        run.call(pay, 2, effect="irreversible")
        run.checkpoint()
        run.rollback("start", accept_irreversible=True)
        works(run, 200)
    with client.session(AGENT, "s") as run:
        assert run.call(pay, 1, effect="irreversible", key="rent") == 1
        assert run.call(pay, 2, effect="irreversible") == 2
        assert paid == [1, 2]
        run.checkpoint()
        works(run, 200)
        assert run.call(pay, 2, effect="irreversible") == 2  # that one was given once
    assert paid == [1, 2, 2]


def test_a_fork_long_after_a_payment_does_not_pay_again() -> None:
    paid: list[int] = []
    client = SyncClient.open("memory://")
    with client.session(AGENT, "s") as run:
        run.call(paid.append, 1, effect="irreversible")
        works(run, 200)
        (fork,) = run.fork(names=["b"])
        with fork:
            works(fork, 200)
            fork.call(paid.append, 1, effect="irreversible")
            name = fork.session_id
        run.adopt(name)
        assert len([call for call in run.effects if call.reused]) == 1
    assert paid == [1]


def test_volumes_are_kept_while_a_checkpoint_links_to_them_and_move_with_it(tmp_path: Path) -> None:
    with SyncClient.open(f"sqlite:///{tmp_path}/a.db") as client:
        with client.session(AGENT, "s") as run:
            works(run, 300)
        assert len(client.prune(last=1).removed) > 290
        client.gc(grace_seconds=0)
        assert client.verify().ok
        client.export(tmp_path / "bundle")
    with SyncClient.open(f"sqlite:///{tmp_path}/b.db") as other:
        other.import_(tmp_path / "bundle")
        with other.session(AGENT, "s") as run:
            assert len(run.effects) == 300


def test_a_run_whose_head_was_removed_writes_its_old_calls_once_more(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/s.db"
    with SyncClient.open(url) as client, client.session(AGENT, "s") as run:
        works(run, 300)
        with SyncClient.open(url) as operator:
            for info in operator.timeline(AGENT, "s", limit=None):
                operator.expire(info.checkpoint_id)
        run.call(str, "more")
        run.checkpoint()
        with SyncClient.open(url) as operator:
            operator.gc(grace_seconds=0)
            assert operator.verify().ok
        assert len(run.effects) == 301


@given(st.lists(st.integers(0, 4), min_size=2, max_size=12), st.data())
@settings(max_examples=25)
def test_a_diff_tells_of_calls_as_if_none_were_in_volumes(calls: list[int], data: Any) -> None:
    def changes(length: int, a: int, b: int) -> Any:
        with volumes_of(length), SyncClient.open("memory://") as client:
            ids = []
            with client.session(AGENT, "s", state={"n": 0}) as run:
                for step, count in enumerate(calls):
                    for number in range(count):
                        run.call(str, f"{step}.{number}")
                    run.state["n"] = step
                    ids.append(run.checkpoint(f"step {step}"))
            return in_common(client.diff(ids[a], ids[b]).as_dict())

    a, b = (data.draw(st.integers(0, len(calls) - 1)) for _ in "ab")
    assert changes(1, a, b) == changes(1000, a, b)


def in_common(found: Any) -> Any:
    """What was found, but for what no two runs have in common."""
    if isinstance(found, dict):
        return {
            name: in_common(value)
            for name, value in found.items()
            if name not in ("id", "passed") and not str(name).endswith("_at")
        }
    return [*map(in_common, found)] if isinstance(found, (list, tuple)) else found
