"""Holdfast's own verbs on the threads of LangGraph: they read well, fork, move and resume."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langgraph.prebuilt import create_react_agent

from holdfast import Framework, InvalidArgumentError
from holdfast.adapters.langgraph import HoldfastSaver, LangGraphAdapter
from tests.clients import STORES, url_of
from tests.graphs import answer, asking, chat, fan_out, line, nested, thread

ONE = thread("1")


@pytest.fixture(params=STORES)
def saver(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.open(url_of(request.param, tmp_path)) as saver:
        yield saver


def test_the_timeline_names_the_nodes_and_shows_the_state(saver: HoldfastSaver) -> None:
    graph = line("plan", "work").compile(checkpointer=saver)
    graph.invoke({"log": ["go"]}, ONE)

    found = saver.client.timeline("langgraph", "1", with_state=True)

    assert [c.step_name for c in found] == ["work", "plan", "__start__", "input"]
    assert [c.step_index for c in found] == [3, 2, 1, 0]
    assert {c.framework for c in found} == {Framework.LANGGRAPH}
    assert found[0].execution_state["values"]["log"] == ["go", "plan", "work"]
    assert [c.parent_id for c in found] == [*(c.checkpoint_id for c in found[1:]), None]
    assert all(c.verify_integrity() for c in found)


def test_a_step_of_what_was_sent_is_named_after_its_node(saver: HoldfastSaver) -> None:
    graph = fan_out(lambda sent: {"log": [sent["name"]]}).compile(checkpointer=saver)
    graph.invoke({"log": []}, ONE)

    found = saver.client.timeline("langgraph", "1")

    assert [c.step_name for c in found] == ["join", "work", "plan", "__start__", "input"]


class Calling(GenericFakeChatModel):
    """A model that calls tools as it is told."""

    def bind_tools(self, *tools: Any, **options: Any) -> Any:
        return self


def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}!"


def agent(saver: HoldfastSaver, **options: Any) -> Any:
    """An agent that calls two tools at once, then one, then answers."""
    calls = [{"name": "look_up", "args": {"word": word}, "id": word} for word in "abc"]
    said = [
        AIMessage("", tool_calls=calls[:2]),
        AIMessage("", tool_calls=calls[2:]),
        AIMessage("done"),
    ]
    return create_react_agent(
        Calling(messages=iter(said)), [look_up], checkpointer=saver, **options
    )


@pytest.mark.filterwarnings("ignore:create_react_agent:DeprecationWarning")
@pytest.mark.parametrize("durability", ["async", "sync"])
def test_the_steps_of_an_agent_are_named_after_what_ran(
    saver: HoldfastSaver, durability: Any
) -> None:
    agent(saver).invoke({"messages": [("user", "go")]}, ONE, durability=durability)

    names = [c.step_name for c in saver.client.timeline("langgraph", "1")]

    assert names == ["agent", "tools", "agent", "tools", "agent", "__start__", "input"]


@pytest.mark.filterwarnings("ignore:create_react_agent:DeprecationWarning")
def test_the_steps_of_an_agent_that_goes_on_elsewhere_are_named_too(saver: HoldfastSaver) -> None:
    agent(saver, interrupt_before=["tools"]).invoke({"messages": [("user", "go")]}, ONE)
    other = HoldfastSaver(saver.client)

    agent(other).invoke(None, ONE)

    assert saver.client.timeline("langgraph", "1")[0].step_name == "agent"
    assert "loop" not in [c.step_name for c in saver.client.timeline("langgraph", "1")]


def test_a_diff_says_what_a_node_changed(saver: HoldfastSaver) -> None:
    graph = chat().compile(checkpointer=saver)
    graph.invoke({"messages": [("user", "hi")]}, ONE)
    new, old, *_ = saver.client.timeline("langgraph", "1")

    diff = saver.client.diff(old.checkpoint_id, new.checkpoint_id)

    assert diff.added["values.messages[1]"].content == "answer 1"
    assert "answer 1" in str(diff)


def test_the_tree_shows_the_branches_of_a_thread(saver: HoldfastSaver) -> None:
    graph = line("a", "b").compile(checkpointer=saver)
    graph.invoke({"log": []}, ONE)
    at_b = next(s for s in graph.get_state_history(ONE) if s.next == ("b",))
    graph.update_state(at_b.config, {"log": ["other"]})

    tree = saver.client.tree("langgraph", "1")

    branching = [node for node in tree if len(node.children) > 1]
    assert [node.info.step_name for node in branching] == ["a"]
    assert len(tree.roots) == 1


def test_subgraphs_are_sessions_of_their_own(saver: HoldfastSaver) -> None:
    nested().compile(checkpointer=saver).invoke({"log": []}, ONE)

    sessions = {s.session_id: s.head.step_name for s in saver.client.sessions("langgraph")}

    assert len(sessions) == 3
    assert sessions["1"] == "first"
    assert {name.partition(":")[0] for name in sessions} == {"1", "1|middle"}


def test_a_fork_is_continued_as_a_thread(saver: HoldfastSaver) -> None:
    graph = line("a", "b", "c").compile(checkpointer=saver)
    graph.invoke({"log": ["x"]}, ONE)
    at_b = next(i for i in saver.client.timeline("langgraph", "1") if i.step_name == "a")

    saver.client.fork(at_b.checkpoint_id, session_id="2")
    assert graph.get_state(thread("2")).next == ("b",)
    result = graph.invoke(None, thread("2"))
    again = graph.invoke({"log": ["y"]}, thread("2"))

    assert result["log"] == ["x", "a", "b", "c"]
    assert again["log"] == ["x", "a", "b", "c", "y", "a", "b", "c"]
    assert graph.get_state(ONE).values["log"] == ["x", "a", "b", "c"]
    states = [s.values["log"] for s in graph.get_state_history(thread("2"))]
    assert states[-3:] == [["x", "a", "b", "c"], ["x", "a", "b"], ["x", "a"]]


def test_an_edited_fork_is_continued_with_the_edit(saver: HoldfastSaver) -> None:
    graph = line("a", "b").compile(checkpointer=saver)
    graph.invoke({"log": ["x"]}, ONE)
    at_b = next(i for i in saver.client.timeline("langgraph", "1") if i.step_name == "a")
    state = saver.client.restore(at_b.checkpoint_id).execution_state
    state["values"]["log"] = ["edited"]

    saver.client.fork(at_b.checkpoint_id, session_id="2", execution_state=state)

    assert graph.invoke(None, thread("2"))["log"] == ["edited", "b"]


def test_a_fork_of_a_waiting_thread_asks_again_and_goes_on(saver: HoldfastSaver) -> None:
    graph = asking("who?").compile(checkpointer=saver)
    graph.invoke({"log": []}, ONE)
    head = saver.client.timeline("langgraph", "1")[0]

    saver.client.fork(head.checkpoint_id, session_id="2")
    asked = graph.invoke(None, thread("2"))["__interrupt__"]
    result = graph.invoke(answer("ada"), thread("2"))

    assert [i.value for i in asked] == ["who?"]
    assert result["log"] == ["who? ada"]
    assert graph.invoke(answer("bob"), ONE)["log"] == ["who? bob"]


def test_a_fork_can_be_reopened_by_another_saver(tmp_path: Path) -> None:
    graph = line("a", "b", "c")
    url = url_of("sqlite", tmp_path)
    with HoldfastSaver.open(url) as saver:
        compiled = graph.compile(checkpointer=saver, interrupt_after=["a"])
        compiled.invoke({"log": []}, ONE)
        head = saver.client.timeline("langgraph", "1")[0]
        saver.client.fork(head.checkpoint_id, session_id="2")
    with HoldfastSaver.open(url) as saver:
        compiled = graph.compile(checkpointer=saver, interrupt_after=["b"])
        state = compiled.get_state(thread("2"))
        assert compiled.get_state(state.config).values == {"log": ["a"]}
        compiled.invoke(None, state.config)
    with HoldfastSaver.open(url) as saver:
        compiled = graph.compile(checkpointer=saver)
        named = compiled.get_state(compiled.get_state(thread("2")).parent_config)
        assert named.values == {"log": ["a"]}
        assert compiled.invoke(None, thread("2"))["log"] == ["a", "b", "c"]


@pytest.mark.parametrize("target", STORES)
def test_a_thread_that_waits_is_exported_and_answered_in_another_store(
    saver: HoldfastSaver, target: str, tmp_path: Path
) -> None:
    graph = nested()
    graph.compile(checkpointer=saver).invoke({"log": []}, ONE)
    (tmp_path / "target").mkdir()

    saver.client.export(tmp_path / "moved.holdfast", agent_id="langgraph")
    with HoldfastSaver.open(url_of(target, tmp_path / "target")) as other:
        other.client.import_(tmp_path / "moved.holdfast")
        compiled = graph.compile(checkpointer=other)
        waiting = compiled.get_state(ONE).interrupts
        result = compiled.invoke(answer("there"), ONE)

    assert [i.value for i in waiting] == ["how deep?"]
    assert result["log"][-2:] == ["told there", "last"]


def test_what_finished_before_an_export_is_not_run_again_after_it(
    saver: HoldfastSaver, tmp_path: Path
) -> None:
    runs: list[str] = []
    fails = True

    def pending() -> list[Any]:
        found = saver.get_tuple(ONE)
        return [] if found is None else [w for w in found.pending_writes or () if w[1] == "log"]

    def work(sent: dict[str, Any]) -> Any:
        runs.append(sent["name"])
        if sent["name"] == "d" and fails:
            while len(pending()) < 3:  # the others have finished for sure
                pass
            raise RuntimeError("d")
        return {"log": [sent["name"]]}

    graph = fan_out(work)
    with pytest.raises(RuntimeError):
        graph.compile(checkpointer=saver).invoke({"log": []}, ONE, durability="sync")
    fails = False
    saver.client.export(tmp_path / "moved.holdfast", agent_id="langgraph")

    with HoldfastSaver.open("memory://") as other:
        other.client.import_(tmp_path / "moved.holdfast")
        result = graph.compile(checkpointer=other).invoke(None, ONE)

    assert result["log"] == ["plan", "a", "b", "c", "d", "joined 5"]
    assert sorted(runs) == ["a", "b", "c", "d", "d"]


def test_checkpoints_of_others_in_the_session_of_a_thread_are_left_alone(
    saver: HoldfastSaver,
) -> None:
    graph = line("a", "b").compile(checkpointer=saver, interrupt_after=["a"])
    graph.invoke({"log": []}, ONE)
    by_hand = LangGraphAdapter.extract(graph.get_state(ONE))
    saver.client.put(by_hand)
    for agent in ("langgraph", "other"):
        saver.client.save(agent, execution_state={"n": 1}, session_id="1")

    state = graph.get_state(ONE)
    assert graph.get_state(state.config).values == state.values == {"log": ["a"]}
    assert graph.invoke(None, ONE)["log"] == ["a", "b"]
    assert len([*graph.get_state_history(ONE)]) == 4
    saver.delete_thread("1")

    assert [info.checkpoint_id for info in saver.client.timeline("langgraph", "1")][-1:] == [
        by_hand.checkpoint_id
    ]
    assert len(saver.client.timeline("other", "1")) == 1


def test_a_thread_that_was_handed_over_goes_on(saver: HoldfastSaver) -> None:
    graph = line("a").compile(checkpointer=saver)
    graph.invoke({"log": ["x"]}, ONE)
    head = saver.client.timeline("langgraph", "1")[0]

    saver.client.handoff(head.checkpoint_id, "reviewer")

    assert graph.invoke({"log": ["y"]}, ONE)["log"] == ["x", "a", "y", "a"]


def test_two_savers_with_agents_of_their_own_share_a_store_and_no_threads(
    saver: HoldfastSaver,
) -> None:
    other = HoldfastSaver(saver.client, agent_id="other")
    graph = line("a")
    graph.compile(checkpointer=saver).invoke({"log": ["mine"]}, ONE)
    graph.compile(checkpointer=other).invoke({"log": ["theirs"]}, ONE)

    assert graph.compile(checkpointer=saver).get_state(ONE).values["log"] == ["mine", "a"]
    assert graph.compile(checkpointer=other).get_state(ONE).values["log"] == ["theirs", "a"]
    mine = saver.get_tuple(ONE)
    assert mine is not None
    assert other.get_tuple(mine.config) is None
    other.delete_thread("1")
    assert graph.compile(checkpointer=saver).get_state(ONE).values["log"] == ["mine", "a"]


def test_a_fork_into_a_thread_that_exists_is_refused(saver: HoldfastSaver) -> None:
    graph = line("a").compile(checkpointer=saver)
    for name in ("1", "2"):
        graph.invoke({"log": []}, thread(name))
    head = saver.client.timeline("langgraph", "1")[0]

    with pytest.raises(InvalidArgumentError, match="'2'"):
        saver.client.fork(head.checkpoint_id, session_id="2")
