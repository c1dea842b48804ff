"""Graphs on a HoldfastSaver: what LangGraph promises of threads holds on every store."""

import copy
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.func import entrypoint, task
from langgraph.graph import START
from langgraph.types import Command, Send, interrupt

from holdfast import (
    CheckpointConflictError,
    Client,
    InvalidArgumentError,
    SerializationError,
    StoreClosedError,
    SyncClient,
)
from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import STORES, url_of
from tests.graphs import (
    Counter,
    Log,
    answer,
    asking,
    chat,
    fan_out,
    line,
    looping,
    nested,
    new_graph,
    says,
    thread,
)

ONE = thread("1")


@pytest.fixture(params=STORES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as saver:
        yield saver


def log_of(graph: Any, config: Any = ONE) -> list[str]:
    return graph.get_state(config).values.get("log", [])


def history(graph: Any, config: Any = ONE, **options: Any) -> list[list[str]]:
    """The logs of a thread's checkpoints, newest first."""
    found = graph.get_state_history(config, **options)
    return [snapshot.values.get("log", []) for snapshot in found]


class TestSubgraphs:
    def test_nested_graphs_keep_their_own_namespaces_and_resume_inside(
        self, saver: HoldfastSaver
    ) -> None:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)

        snapshot = graph.get_state(ONE, subgraphs=True)
        middle = snapshot.tasks[0].state
        inner = middle.tasks[0].state
        assert (snapshot.next, middle.next, inner.next) == (("middle",), ("inner",), ("ask",))
        assert inner.values["log"] == ["first", "before", "deep"]
        assert middle.config["configurable"]["checkpoint_ns"].count("|") == 0
        assert inner.config["configurable"]["checkpoint_ns"].count("|") == 1
        assert [i.value for i in snapshot.interrupts] == ["how deep?"]

        result = graph.invoke(answer("two"), ONE)

        # Each graph gives its parent all it has, which the parent adds to what it had.
        assert result["log"][-2:] == ["told two", "last"]
        assert result["log"].count("told two") == 1
        assert graph.get_state(ONE).next == ()

    def test_a_subgraph_that_keeps_its_state_goes_on_from_it_in_the_next_run(
        self, saver: HoldfastSaver
    ) -> None:
        inner = new_graph(Counter).add_node("count", lambda state: {"count": 1})
        memory = inner.add_edge(START, "count").compile(checkpointer=True)
        outer = new_graph(Log).add_node("memory", memory).add_edge(START, "memory")
        graph = outer.compile(checkpointer=saver)

        for run in ("one", "two", "three"):
            graph.invoke({"log": [run]}, ONE)

        kept = saver.get_tuple(thread("1", checkpoint_ns="memory"))
        assert kept is not None
        assert kept.checkpoint["channel_values"]["count"] == 3
        names = {found.config["configurable"]["checkpoint_ns"] for found in saver.list(ONE)}
        assert names == {"", "memory"}

    def test_deep_graphs_that_keep_their_state_resume(self, saver: HoldfastSaver) -> None:
        graph = nested(checkpointer=True).compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)

        result = graph.invoke(answer("here"), ONE)

        assert result["log"][-2:] == ["told here", "last"]

    def test_state_of_a_subgraph_can_be_updated_while_it_waits(self, saver: HoldfastSaver) -> None:
        inner = asking("name?").compile()
        graph = new_graph(Log).add_node("sub", inner).add_edge(START, "sub")
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": ["start"]}, ONE)
        sub = compiled.get_state(ONE, subgraphs=True).tasks[0].state

        compiled.update_state(sub.config, {"log": ["edited"]})

        assert compiled.invoke(answer("ada"), ONE)["log"][-2:] == ["edited", "name? ada"]


class TestFunctions:
    def test_tasks_of_a_function_do_not_run_again_when_it_is_resumed(
        self, saver: HoldfastSaver
    ) -> None:
        runs: list[int] = []

        @task
        def double(number: int) -> int:
            runs.append(number)
            return number * 2

        @entrypoint(checkpointer=saver)
        def flow(number: int, *, previous: Any = None) -> Any:
            first = double(number).result()
            second = double(first).result()
            told = interrupt("go on?")
            return entrypoint.final(value=[second, told, previous], save=second)

        results = []
        for number in (1, 10):
            flow.invoke(number, ONE)
            results.append(flow.invoke(answer("yes"), ONE))

        assert results == [[4, "yes", None], [40, "yes", 4]]
        assert runs == [1, 2, 10, 20]


class TestFanOut:
    def test_sent_tasks_all_run_and_join_once(self, saver: HoldfastSaver) -> None:
        graph = fan_out(lambda sent: {"log": [sent["name"]]}).compile(checkpointer=saver)

        result = graph.invoke({"log": []}, ONE)

        assert result["log"] == ["plan", "a", "b", "c", "d", "joined 5"]
        assert history(graph)[:3] == [result["log"], result["log"][:-1], ["plan"]]

    def test_only_the_tasks_that_failed_run_again(self, saver: HoldfastSaver) -> None:
        runs: list[str] = []
        broken = {"b", "d"}

        def written() -> set[str]:
            found = saver.get_tuple(ONE)
            assert found is not None
            return {
                word
                for _, name, words in found.pending_writes or ()
                if name == "log"
                for word in words
            }

        def work(sent: dict[str, Any]) -> Log:
            runs.append(sent["name"])
            if sent["name"] in broken:
                while not written() >= {"a", "c"}:  # their writes are kept, then this one fails
                    pass
                raise RuntimeError(sent["name"])
            return {"log": [sent["name"]]}

        graph = fan_out(work).compile(checkpointer=saver)
        with pytest.raises(RuntimeError):
            graph.invoke({"log": []}, ONE, durability="sync")
        assert any("RuntimeError" in str(task.error) for task in graph.get_state(ONE).tasks)
        runs_before = len(runs)
        broken.clear()

        result = graph.invoke(None, ONE)

        assert sorted(runs[runs_before:]) == ["b", "d"]
        assert result["log"] == ["plan", "a", "b", "c", "d", "joined 5"]


class TestInterrupts:
    def test_several_questions_in_one_node_are_asked_one_after_the_other(
        self, saver: HoldfastSaver
    ) -> None:
        graph = asking("a?", "b?", "c?").compile(checkpointer=saver)

        steps = [graph.invoke({"log": []}, ONE), *(graph.invoke(answer(n), ONE) for n in (1, 2))]
        result = graph.invoke(answer(3), ONE)

        asked = [step["__interrupt__"][0].value for step in steps]
        assert asked == ["a?", "b?", "c?"]
        assert result["log"] == ["a? 1", "b? 2", "c? 3"]

    def test_questions_of_parallel_tasks_are_answered_by_their_ids(
        self, saver: HoldfastSaver
    ) -> None:
        graph = fan_out(lambda sent: {"log": [f"{sent['name']}{interrupt(sent['name'])}"]})
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": []}, ONE)
        waiting = compiled.get_state(ONE).interrupts
        assert sorted(i.value for i in waiting) == ["a", "b", "c", "d"]

        some = {i.id: 1 for i in waiting if i.value in "ac"}
        left = compiled.invoke(answer(some), ONE)["__interrupt__"]
        assert sorted(i.value for i in left) == ["b", "d"]
        result = compiled.invoke(answer({i.id: 2 for i in left}), ONE)

        assert result["log"] == ["plan", "a1", "b2", "c1", "d2", "joined 5"]

    def test_an_answer_that_also_updates_and_routes_is_kept_whole(
        self, saver: HoldfastSaver
    ) -> None:
        graph = asking("a?", "b?")
        graph.add_node("side", says("side"))
        compiled = graph.compile(checkpointer=saver)
        compiled.invoke({"log": []}, ONE)

        compiled.invoke(answer(1, update={"log": ["noted 1"]}), ONE)
        result = compiled.invoke(answer(2, update={"log": ["noted 2"]}, goto="side"), ONE)

        assert sorted(result["log"]) == ["a? 1", "b? 2", "noted 1", "noted 2", "side"]

    def test_a_newer_answer_takes_the_place_of_an_older_one(self, saver: HoldfastSaver) -> None:
        config = saver.put(thread("1", checkpoint_ns=""), empty_checkpoint(), {}, {})

        for given in ("old", "new"):
            saver.put_writes(config, [("log", ["same"]), ("__resume__", given)], "task")

        found = saver.get_tuple(config)
        assert found is not None
        assert found.pending_writes == [("task", "__resume__", "new"), ("task", "log", ["same"])]

    def test_stops_before_and_after_nodes_are_resumed_with_nothing(
        self, saver: HoldfastSaver
    ) -> None:
        graph = line("a", "b", "c").compile(
            checkpointer=saver, interrupt_before=["b"], interrupt_after=["b"]
        )

        seen = [graph.invoke({"log": []}, ONE)["log"]]
        seen += [graph.invoke(None, ONE)["log"] for _ in range(2)]

        assert seen == [["a"], ["a", "b"], ["a", "b", "c"]]


class TestTime:
    def test_going_back_starts_a_new_branch_and_leaves_the_old_one(
        self, saver: HoldfastSaver
    ) -> None:
        graph = line("a", "b", "c").compile(checkpointer=saver)
        graph.invoke({"log": ["x"]}, ONE)
        old = [*graph.get_state_history(ONE)]
        at_b = next(s for s in old if s.next == ("b",))

        result = graph.invoke(None, at_b.config)

        assert result["log"] == ["x", "a", "b", "c"]
        now = [*graph.get_state_history(ONE)]
        assert [s.values for s in now[-len(old) :]] == [s.values for s in old]
        assert len(now) > len(old)
        assert graph.get_state(ONE).config != old[0].config
        chain = []
        step = graph.get_state(ONE)
        while step.parent_config is not None:
            chain.append(step.config["configurable"]["checkpoint_id"])
            step = graph.get_state(step.parent_config)
        assert at_b.config["configurable"]["checkpoint_id"] in chain
        assert old[0].config["configurable"]["checkpoint_id"] not in chain

    def test_an_update_forks_as_the_node_it_is_made_for(self, saver: HoldfastSaver) -> None:
        graph = line("a", "b", "c").compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)
        at_b = next(s for s in graph.get_state_history(ONE) if s.next == ("b",))

        forked = graph.update_state(at_b.config, {"log": ["instead of b"]}, as_node="b")

        assert graph.get_state(forked).next == ("c",)
        assert graph.invoke(None, forked)["log"] == ["a", "instead of b", "c"]
        assert graph.get_state(at_b.config).values == {"log": ["a"]}
        sources = [s.metadata["source"] for s in graph.get_state_history(ONE)]
        assert sources.count("update") == 1

    def test_an_update_begins_a_new_thread_after_a_node(self, saver: HoldfastSaver) -> None:
        graph = line("a", "b").compile(checkpointer=saver)

        graph.update_state(ONE, {"log": ["given"]}, as_node="a")

        assert graph.invoke(None, ONE)["log"] == ["given", "b"]

    def test_history_is_filtered_paged_and_limited(self, saver: HoldfastSaver) -> None:
        graph = line("a", "b", "c").compile(checkpointer=saver)
        for run in range(3):
            graph.invoke({"log": [str(run)]}, ONE, durability="sync")
        everything = [*graph.get_state_history(ONE)]
        assert len(everything) == 15

        inputs = [*graph.get_state_history(ONE, filter={"source": "input"})]
        assert [s.metadata["step"] for s in inputs] == [9, 4, -1]
        assert [*graph.get_state_history(ONE, limit=4)] == everything[:4]
        older = [*graph.get_state_history(ONE, before=everything[3].config, limit=2)]
        assert older == everything[4:6]
        step_two = [*graph.get_state_history(ONE, filter={"source": "loop", "step": 2})]
        assert [s.values["log"] for s in step_two] == [["0", "a", "b"]]
        assert [*graph.get_state_history(ONE, filter={"step": 99})] == []
        assert [*graph.get_state_history(ONE, limit=0)] == []

    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_every_durability_ends_with_the_same_state(
        self, saver: HoldfastSaver, durability: Any
    ) -> None:
        graph = looping(6).compile(checkpointer=saver)

        graph.invoke({"log": ["x"]}, ONE, durability=durability)

        assert log_of(graph) == ["x", "1", "2", "3", "4", "5"]
        checkpoints = len([*saver.list(ONE)])
        assert checkpoints == (1 if durability == "exit" else 7)

    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_every_durability_resumes_an_interrupt(
        self, saver: HoldfastSaver, durability: Any
    ) -> None:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE, durability=durability)

        result = graph.invoke(answer("yes"), ONE, durability=durability)

        assert result["log"][-2:] == ["told yes", "last"]

    def test_a_failed_node_runs_again_and_those_before_it_do_not(
        self, saver: HoldfastSaver
    ) -> None:
        runs: list[str] = []

        def node(name: str) -> Any:
            def run(state: Log) -> Log:
                runs.append(name)
                if runs == ["a", "b"]:
                    raise ConnectionError("lost")
                return {"log": [name]}

            return run

        builder = new_graph(Log).add_node("a", node("a")).add_node("b", node("b"))
        builder.add_edge(START, "a").add_edge("a", "b")
        graph = builder.compile(checkpointer=saver)
        with pytest.raises(ConnectionError):
            graph.invoke({"log": []}, ONE)
        assert graph.get_state(ONE).tasks[0].error == "ConnectionError('lost')"

        assert graph.invoke(None, ONE)["log"] == ["a", "b"]
        assert runs == ["a", "b", "b"]

    def test_conditional_sends_and_commands_are_kept_between_steps(
        self, saver: HoldfastSaver
    ) -> None:
        builder = new_graph(Log)
        builder.add_node(
            "route",
            lambda state: Command(
                update={"log": ["route"]}, goto=[Send("work", {"n": 1}), "other"]
            ),
        )
        builder.add_node("work", lambda sent: {"log": [f"work {sent['n']}"]})
        builder.add_node("other", says("other"))
        builder.add_edge(START, "route")
        graph = builder.compile(checkpointer=saver, interrupt_after=["route"])
        graph.invoke({"log": []}, ONE)

        assert sorted(graph.get_state(ONE).next) == ["other", "work"]
        assert sorted(graph.invoke(None, ONE)["log"]) == ["other", "route", "work 1"]


class TestThreads:
    ODD = ("a|b", "a%7Cb", "%", "a/b", "with space", "日本語 ✓", "a", "A", "..", 'q"q', "x" * 300)

    def test_odd_names_are_threads_of_their_own(self, saver: HoldfastSaver) -> None:
        graph = nested().compile(checkpointer=saver)
        for name in self.ODD:
            graph.invoke({"log": [name]}, thread(name))

        for name in self.ODD:
            found = [*saver.list(thread(name))]
            assert {f.config["configurable"]["thread_id"] for f in found} == {name}
            assert len({f.config["configurable"]["checkpoint_ns"] for f in found}) == 3
            assert graph.invoke(answer(name), thread(name))["log"][0] == name

    def test_a_number_names_the_same_thread_as_its_digits(self, saver: HoldfastSaver) -> None:
        graph = line("a").compile(checkpointer=saver)

        graph.invoke({"log": ["n"]}, thread(7))

        assert log_of(graph, thread("7")) == log_of(graph, thread(7)) == ["n", "a"]

    def test_a_copied_thread_goes_on_apart_from_the_first(self, saver: HoldfastSaver) -> None:
        graph = nested().compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)
        before = [*saver.list(ONE)]

        saver.copy_thread("1", "2")
        first = graph.invoke(answer("one"), ONE)
        second = graph.invoke(answer("two"), thread("2"))

        assert first["log"][-2:] == ["told one", "last"]
        assert second["log"][-2:] == ["told two", "last"]
        copied = [*saver.list(thread("2"))][-len(before) :]
        assert [c.checkpoint for c in copied] == [c.checkpoint for c in before]
        assert [c.metadata for c in copied] == [c.metadata for c in before]
        assert {c.config["configurable"]["thread_id"] for c in copied} == {"2"}

    def test_deleting_a_thread_leaves_those_with_similar_names(self, saver: HoldfastSaver) -> None:
        graph = nested().compile(checkpointer=saver)
        for name in ("1", "11", "1|", "1%7C"):
            graph.invoke({"log": []}, thread(name))

        saver.delete_thread("1")

        assert [*saver.list(ONE)] == []
        assert graph.get_state(ONE).values == {}
        for name in ("11", "1|", "1%7C"):
            assert graph.invoke(answer("x"), thread(name))["log"][-1] == "last"

    def test_a_deleted_thread_begins_anew(self, saver: HoldfastSaver) -> None:
        graph = chat().compile(checkpointer=saver)
        graph.invoke({"messages": [("user", "hi")]}, ONE)

        saver.delete_thread("1")
        result = graph.invoke({"messages": [("user", "again")]}, ONE)

        assert [m.content for m in result["messages"]] == ["again", "answer 1"]


class TestSharing:
    def test_copies_of_a_saver_use_the_same_store(self, saver: HoldfastSaver) -> None:
        graph = line("a").compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)

        others: list[Any] = [copy.copy(saver), saver.with_allowlist([("tests.graphs", "Step")])]
        for other in others:
            assert other.client.store is saver.client.store
            assert log_of(line("a").compile(checkpointer=other)) == ["a"]

    @pytest.mark.parametrize("cls", [Client, SyncClient])
    async def test_a_client_that_was_passed_in_stays_open(
        self, cls: type[Client] | type[SyncClient], tmp_path: Path
    ) -> None:
        client = cls.sqlite(tmp_path / "h.db")
        with HoldfastSaver(client) as saver:
            line("a").compile(checkpointer=saver).invoke({"log": []}, ONE)
        async with HoldfastSaver(client) as saver:
            assert await saver.aget_tuple(ONE) is not None

        if isinstance(client, Client):
            assert len(await client.sessions()) == 1
            await client.close()
        else:
            assert len(client.sessions()) == 1
            client.close()

    async def test_a_saver_closes_what_it_opened_however_it_was_used(self, tmp_path: Path) -> None:
        graph = line("a")
        async with HoldfastSaver.from_sqlite(tmp_path / "h.db") as saver:
            await graph.compile(checkpointer=saver).ainvoke({"log": []}, ONE)
            graph.compile(checkpointer=saver).invoke({"log": []}, ONE)
        await saver.aclose()
        saver.close()

        with pytest.raises(StoreClosedError):
            saver.get_tuple(ONE)
        with pytest.raises(StoreClosedError):
            await saver.aget_tuple(ONE)
        with HoldfastSaver.from_conn_string(str(tmp_path / "h.db")) as again:
            assert len([*again.list(ONE)]) == 6


class TestMistakes:
    @pytest.mark.parametrize("config", [{}, {"configurable": {}}, thread(None), thread(" ")])
    def test_a_config_without_a_thread_is_refused(self, saver: HoldfastSaver, config: Any) -> None:
        calls = [
            lambda: saver.get_tuple(config),
            lambda: [*saver.list(config)],
            lambda: saver.put(config, empty_checkpoint(), {}, {}),
            lambda: saver.put_writes(config, [], "task"),
        ]
        for call in calls:
            with pytest.raises(InvalidArgumentError, match="thread_id"):
                call()

    def test_writes_need_the_checkpoint_they_belong_to(self, saver: HoldfastSaver) -> None:
        with pytest.raises(InvalidArgumentError, match="checkpoint_id"):
            saver.put_writes(ONE, [("log", 1)], "task")

    def test_an_unknown_way_to_prune_is_refused_and_removes_nothing(
        self, saver: HoldfastSaver
    ) -> None:
        graph = line("a").compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)

        with pytest.raises(InvalidArgumentError, match="keep_latest"):
            saver.prune(["1"], strategy="keep_best")

        assert len([*saver.list(ONE)]) == 3

    def test_a_value_that_cannot_be_kept_is_named_and_nothing_is_written(
        self, saver: HoldfastSaver
    ) -> None:
        checkpoint = {**empty_checkpoint(), "channel_values": {"socket": [threading.Lock()]}}

        with pytest.raises(
            SerializationError, match=r"^\$\.channel_values\.socket\[0\]: _thread\.lock"
        ):
            saver.put(thread("1", checkpoint_ns=""), checkpoint, {}, {"socket": "1"})  # type: ignore[arg-type]

        assert [*saver.list(ONE)] == []
        assert saver.client.stats().checkpoints == 0

    def test_a_write_that_cannot_be_kept_is_named(self, saver: HoldfastSaver) -> None:
        builder = new_graph(Log).add_node("a", lambda state: {"value": {"k": threading.Lock()}})
        graph = builder.add_edge(START, "a").compile(checkpointer=saver)

        with pytest.raises(SerializationError, match=r"value.*lock"):
            graph.invoke({"log": []}, ONE, durability="sync")

    async def test_a_saver_on_a_closed_client_says_so(self, tmp_path: Path) -> None:
        client = SyncClient.sqlite(tmp_path / "h.db")
        saver = HoldfastSaver(client)
        client.close()

        with pytest.raises(StoreClosedError):
            line("a").compile(checkpointer=saver).invoke({"log": []}, ONE)
        with pytest.raises(StoreClosedError):
            await line("a").compile(checkpointer=saver).ainvoke({"log": []}, ONE)

    def test_a_saver_is_made_from_a_client(self) -> None:
        with pytest.raises(InvalidArgumentError, match=r"HoldfastSaver\.open"):
            HoldfastSaver("sqlite:///x.db")  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", ["", "a\x00b", "\ud800", "x" * 2000])
    def test_a_name_that_no_store_can_keep_is_refused_when_it_is_read(
        self, saver: HoldfastSaver, name: str
    ) -> None:
        with pytest.raises(InvalidArgumentError, match="thread_id"):
            saver.get_tuple(thread(name))

    def test_the_same_checkpoint_put_twice_is_there_once_and_another_under_its_id_is_refused(
        self, saver: HoldfastSaver
    ) -> None:
        config, checkpoint = thread("1", checkpoint_ns=""), empty_checkpoint()

        first = saver.put(config, checkpoint, {"source": "input"}, {})
        again = saver.put(config, checkpoint, {"source": "input"}, {})
        with pytest.raises(CheckpointConflictError):
            saver.put(config, {**checkpoint, "channel_values": {"a": 1}}, {"source": "input"}, {})

        assert first == again
        (found,) = saver.list(ONE)
        assert found.checkpoint["channel_values"] == {}
