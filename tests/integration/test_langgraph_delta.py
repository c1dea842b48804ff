"""Delta channels: a checkpoint holds what changed, and nothing that removes may take the rest.

The plain channel of these graphs gets the same writes, so that it says what the others must be.
"""

import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph import START
from langgraph.types import Overwrite, interrupt

from holdfast import CheckpointIntegrityError, Keep
from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import STORES, url_of
from tests.graphs import (
    Both,
    Often,
    answer,
    delta_asking,
    delta_fan_out,
    deltas,
    nested,
    new_graph,
    thread,
    to_all,
)

ONE = thread("1")
CHANNELS = ["often", "seldom"]


@pytest.fixture(params=STORES)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return url_of(request.param, tmp_path)


@pytest.fixture
def saver(url: str) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(url) as saver:
        yield saver


class Outer(TypedDict, total=False):
    """What the outer graph knows of what the inner does."""

    plain: Annotated[list[Any], operator.add]


def check(graph: Any, config: Any = ONE) -> list[Any]:
    """At every step of a thread the delta channels are as the plain one; gives its newest state."""
    states = [snapshot.values for snapshot in graph.get_state_history(config)]
    for values in states:
        plain = values.get("plain", [])
        assert values.get("often", []) == plain
        assert values.get("seldom", []) == plain
    assert graph.get_state(config).values["seldom"] == states[0]["plain"]
    return states[0]["plain"]


def runs(graph: Any, count: int, config: Any = ONE, **options: Any) -> None:
    for run in range(count):
        graph.invoke(to_all(f"run {run}"), config, **options)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_delta_channel_is_as_a_plain_one_at_every_step(
    saver: HoldfastSaver, durability: Any
) -> None:
    graph = deltas().compile(checkpointer=saver)

    runs(graph, 5, durability=durability)

    assert len(check(graph)) == 15


def test_it_still_is_when_the_store_is_opened_again(url: str, tmp_path: Path) -> None:
    if url == "memory://":
        url = url_of("sqlite", tmp_path)
    for run in range(4):
        with HoldfastSaver.open(url) as saver:
            graph = deltas().compile(checkpointer=saver)
            runs(graph, 1)
            assert len(check(graph)) == 3 * (run + 1)


async def test_it_is_for_async_runs_too(saver: HoldfastSaver) -> None:
    graph = deltas().compile(checkpointer=saver)

    for run in range(5):
        await graph.ainvoke(to_all(f"run {run}"), ONE)

    state = await graph.aget_state(ONE)
    assert state.values["seldom"] == state.values["often"] == state.values["plain"]
    assert len(check(graph)) == 15


def test_tasks_at_once_are_replayed_in_the_order_of_their_paths(saver: HoldfastSaver) -> None:
    graph = delta_fan_out().compile(checkpointer=saver)

    runs(graph, 3)

    assert check(graph)[:6] == ["run 0", "plan", "d", "b", "c", "a"]


def test_the_history_is_what_the_base_class_finds(saver: HoldfastSaver) -> None:
    graph = delta_fan_out().compile(checkpointer=saver)
    runs(graph, 4)
    at_half = [*graph.get_state_history(ONE)][5].config
    graph.update_state(at_half, to_all("forked"), as_node="plan")
    runs(graph, 1)
    configs = [snapshot.config for snapshot in graph.get_state_history(ONE)]

    for config in [ONE, *configs]:
        for channels in (CHANNELS, ["often"], ["unknown"], []):
            found = saver.get_delta_channel_history(config=config, channels=channels)
            wanted = BaseCheckpointSaver.get_delta_channel_history(
                saver, config=config, channels=channels
            )
            assert found == wanted
    seeds = [
        "seed" in saver.get_delta_channel_history(config=c, channels=["often"])["often"]
        for c in configs
    ]
    assert True in seeds
    assert False in seeds


async def test_the_history_is_the_same_when_awaited(saver: HoldfastSaver) -> None:
    graph = deltas().compile(checkpointer=saver)
    runs(graph, 3)

    found = await saver.aget_delta_channel_history(config=ONE, channels=CHANNELS)

    assert found == saver.get_delta_channel_history(config=ONE, channels=CHANNELS)
    assert len(found["seldom"]["writes"]) == 9


class TestForks:
    def test_only_writes_on_the_path_count(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 2)
        early = next(s for s in graph.get_state_history(ONE) if len(s.values.get("plain", [])) == 2)

        graph.invoke(None, early.config)
        on_the_fork = check(graph)
        graph.update_state(ONE, to_all("edited"))
        runs(graph, 1)

        assert len(on_the_fork) == 3
        assert check(graph)[:5] == [*on_the_fork, "edited", "run 0"]

    def test_a_fork_made_by_holdfast_has_the_state_it_was_made_at(
        self, saver: HoldfastSaver
    ) -> None:
        graph = deltas(3).compile(checkpointer=saver)
        runs(graph, 2)
        snapshots = [*graph.get_state_history(ONE)]
        for number, snapshot in enumerate(snapshots):
            if not snapshot.values.get("plain"):
                continue
            checkpoint_id = snapshot.config["configurable"]["checkpoint_id"]
            (info,) = saver.client.find(tags={"thread_id": "1", "checkpoint_id": checkpoint_id})
            name = f"fork {number}"
            saver.client.fork(info.checkpoint_id, session_id=name)

            forked = graph.get_state(thread(name))
            assert forked.values == snapshot.values
            assert forked.next == snapshot.next

            runs(graph, 1, thread(name))
            values = check(graph, thread(name))
            assert values[: len(snapshot.values["plain"])] == snapshot.values["plain"]

    def test_a_copy_of_a_fork_is_whole(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 2)
        at = saver.client.timeline("langgraph", "1")[2]
        saver.client.fork(at.checkpoint_id, session_id="2")

        saver.copy_thread("2", "3")

        assert graph.get_state(thread("3")).values == graph.get_state(thread("2")).values
        runs(graph, 1, thread("3"))
        assert len(check(graph, thread("3"))) > 4

    def test_a_copy_of_a_thread_is_whole_when_the_first_is_deleted(
        self, saver: HoldfastSaver
    ) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 3)
        before = check(graph)

        saver.copy_thread("1", "2")
        saver.delete_thread("1")
        saver.client.gc(grace_seconds=0)

        assert check(graph, thread("2")) == before
        runs(graph, 1, thread("2"))
        assert check(graph, thread("2"))[:9] == before


class TestRemoval:
    """Of what is left, every checkpoint is whole, not only the newest."""

    @pytest.mark.parametrize("durability", ["sync", "exit"])
    @pytest.mark.parametrize("count", [1, 2, 4])
    def test_a_pruned_thread_keeps_its_state_and_goes_on(
        self, saver: HoldfastSaver, count: int, durability: Any
    ) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, count, durability=durability)
        before = graph.get_state(ONE).values

        saver.prune(["1"])
        saver.client.gc(grace_seconds=0)

        assert graph.get_state(ONE).values == before
        runs(graph, 2)
        assert check(graph)[: 3 * count] == before["plain"]

    def test_what_is_not_needed_is_removed(self, saver: HoldfastSaver) -> None:
        builder = new_graph(Often).add_node("a", lambda state: {"often": ["a"]})
        graph = builder.add_edge(START, "a").compile(checkpointer=saver)
        for run in range(12):
            graph.invoke({"often": [run]}, ONE)
        before = graph.get_state(ONE).values

        saver.prune(["1"])

        assert graph.get_state(ONE).values == before
        assert len([*saver.list(ONE)]) <= 6  # what lies between two snapshots of the channel

    def test_pruning_by_a_policy_keeps_what_is_needed(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 3)
        before = graph.get_state(ONE).values

        saver.client.prune(Keep(last=1))
        saver.client.gc(grace_seconds=0)

        assert graph.get_state(ONE).values == before
        runs(graph, 1)
        assert check(graph)[: len(before["plain"])] == before["plain"]

    def test_pruning_by_a_policy_keeps_what_a_fork_builds_on(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 3)
        third = saver.client.timeline("langgraph", "1", limit=None)[4]
        saver.client.fork(third.checkpoint_id, session_id="2")
        before = graph.get_state(thread("2")).values
        assert before["seldom"]

        saver.client.prune(Keep(last=1, session_id="2"))
        saver.client.prune(Keep(last=1))
        saver.client.gc(grace_seconds=0)

        assert graph.get_state(thread("2")).values == before
        check_alike = graph.get_state(ONE).values
        assert check_alike["seldom"] == check_alike["plain"]

    def test_deleting_a_run_keeps_what_later_runs_build_on(
        self, saver: HoldfastSaver, caplog: pytest.LogCaptureFixture
    ) -> None:
        graph = deltas().compile(checkpointer=saver)
        for number in range(4):
            graph.invoke(to_all(f"run {number}"), thread("1", run_id=f"run-{number}"))
        before = graph.get_state(ONE).values

        saver.delete_for_runs(["run-0", "run-2"])

        assert graph.get_state(ONE).values == before
        assert "kept" in caplog.text
        runs(graph, 1)
        assert graph.get_state(ONE).values["seldom"] == graph.get_state(ONE).values["plain"]

    def test_deleting_the_last_run_leaves_the_one_before(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        graph.invoke(to_all("first"), thread("1", run_id="first"))
        after_first = graph.get_state(ONE).values
        graph.invoke(to_all("second"), thread("1", run_id="second"))

        saver.delete_for_runs(["second"])

        assert graph.get_state(ONE).values == after_first
        saver.delete_for_runs(["first"])
        assert [*saver.list(ONE)] == []

    @pytest.mark.parametrize("remove", ["prune", "delete_for_runs"])
    def test_what_a_fork_in_another_thread_builds_on_is_kept(
        self, saver: HoldfastSaver, remove: str
    ) -> None:
        graph = deltas().compile(checkpointer=saver)
        for run in ("one", "two", "three"):
            graph.invoke(to_all(run), thread("1", run_id=run))
        at = saver.client.timeline("langgraph", "1", limit=None)[4]
        saver.client.fork(at.checkpoint_id, session_id="2")
        runs(graph, 1, thread("2"))
        before = check(graph, thread("2"))

        if remove == "prune":
            saver.prune(["1"])
        else:
            saver.delete_for_runs(["one", "two", "three"])

        assert check(graph, thread("2")) == before
        runs(graph, 1, thread("2"))
        check(graph, thread("2"))

    def test_a_thread_that_lost_what_it_builds_on_says_so(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 2)
        head, parent, *_ = saver.client.timeline("langgraph", "1")

        saver.client.expire(parent.checkpoint_id)

        with pytest.raises(CheckpointIntegrityError, match=r"seldom.*was removed") as caught:
            graph.get_state(ONE)
        assert caught.value.checkpoint_id == head.checkpoint_id

    @pytest.mark.parametrize("durability", ["sync", "exit"])
    def test_a_channel_that_was_never_written_is_empty_and_no_loss(
        self, saver: HoldfastSaver, durability: Any
    ) -> None:
        builder = new_graph(Both).add_node("a", lambda state: {"plain": ["a"]})
        graph = builder.add_edge(START, "a").compile(checkpointer=saver)
        for _ in range(2):
            graph.invoke({"plain": ["in"]}, ONE, durability=durability)
            saver.prune(["1"])

        assert graph.get_state(ONE).values["plain"] == ["in", "a", "in", "a"]
        assert not graph.get_state(ONE).values.get("seldom")

    def test_an_update_is_kept_by_a_prune(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 1)
        graph.update_state(ONE, to_all("edited"))
        before = graph.get_state(ONE).values
        assert before["seldom"][-1] == "edited"

        saver.prune(["1"])

        assert graph.get_state(ONE).values == before

    def test_an_overwritten_channel_is_kept_by_a_prune(self, saver: HoldfastSaver) -> None:
        graph = deltas().compile(checkpointer=saver)
        runs(graph, 2)
        graph.update_state(
            ONE, {"plain": Overwrite(["o"]), "often": Overwrite(["o"]), "seldom": Overwrite(["o"])}
        )
        runs(graph, 1)
        before = check(graph)
        assert before[0] == "o"

        saver.prune(["1"])

        assert graph.get_state(ONE).values["seldom"] == before


class TestPruningWhileItWaits:
    def test_an_interrupt_is_answered_after_a_prune(self, saver: HoldfastSaver) -> None:
        graph = delta_asking().compile(checkpointer=saver)
        graph.invoke(to_all("in"), ONE)

        saver.prune(["1"])
        assert [i.value for i in graph.get_state(ONE).interrupts] == ["well?"]
        result = graph.invoke(answer("yes"), ONE)

        assert result["plain"] == ["in", "step0 at 1", "told yes", "end"]
        assert result["seldom"] == result["often"] == result["plain"]

    def test_an_interrupt_deep_in_subgraphs_is_answered_after_a_prune(
        self, saver: HoldfastSaver
    ) -> None:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)

        saver.prune(["1"])
        saver.client.prune(Keep(last=1))
        saver.client.gc(grace_seconds=0)
        result = graph.invoke(answer("yes"), ONE)

        assert result["log"][-2:] == ["told yes", "last"]
        assert result["log"].count("deep") == result["log"].count("before") / 2 == 1

    def test_delta_channels_of_a_waiting_subgraph_are_kept(self, saver: HoldfastSaver) -> None:
        outer = new_graph(Outer)
        outer.add_node("sub", delta_asking().compile())
        graph = outer.add_edge(START, "sub").compile(checkpointer=saver)
        graph.invoke({"plain": ["in"]}, ONE)
        inner = graph.get_state(ONE, subgraphs=True).tasks[0].state.values

        saver.prune(["1"])

        assert graph.get_state(ONE, subgraphs=True).tasks[0].state.values == inner
        assert graph.invoke(answer("yes"), ONE)["plain"][-2:] == ["told yes", "end"]

    def test_tasks_that_finished_do_not_run_again_after_a_prune(self, saver: HoldfastSaver) -> None:
        ran: list[str] = []

        def work(state: Any) -> Any:
            ran.append(state["name"])
            if state["name"] == "b":
                return to_all(interrupt("b?"))
            return to_all(state["name"])

        compiled = delta_fan_out(work).compile(checkpointer=saver)
        compiled.invoke(to_all("in"), ONE)

        saver.prune(["1"])
        result = compiled.invoke(answer("B"), ONE)

        assert sorted(ran) == ["a", "b", "b", "c", "d"]
        assert result["plain"] == ["in", "plan", "d", "B", "c", "a"]
        assert result["seldom"] == result["plain"]
