"""State that LangGraph's own checkpointers lose or alter comes back as it was, in a new process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, add_messages
from pydantic import BaseModel

from holdfast.adapters.langgraph import HoldfastSaver
from tests.clients import PERSISTENT, url_of
from tests.graphs import (
    Profile,
    Step,
    asking,
    chat,
    every_message,
    line,
    new_graph,
    rich_values,
    thread,
    types_of,
)
from tests.integration.fork_server import ForkServer

ONE = thread("1")
JOBS = "tests.integration.langgraph_jobs"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    with ForkServer(JOBS) as server:
        yield server


@pytest.mark.parametrize("store", PERSISTENT)
class TestInANewProcess:
    def test_values_of_every_kind_are_the_same_types(
        self, store: str, server: ForkServer, tmp_path: Path
    ) -> None:
        url = url_of(store, tmp_path)
        with HoldfastSaver.open(url) as saver:
            graph = line("a").compile(checkpointer=saver)
            graph.invoke({"log": [], "value": rich_values()}, ONE)

        (told,) = server.at_once((f"{JOBS}:compare_rich_values", url))

        assert told == [[]]

    def test_messages_of_every_kind_keep_all_they_carry(
        self, store: str, server: ForkServer, tmp_path: Path
    ) -> None:
        url = url_of(store, tmp_path)
        with HoldfastSaver.open(url) as saver:
            graph = chat().compile(checkpointer=saver)
            graph.invoke({"messages": every_message()}, ONE)

        (told,) = server.at_once((f"{JOBS}:compare_messages", url))

        assert told == [[], "answer 7"]

    def test_an_interrupt_is_answered_there(
        self, store: str, server: ForkServer, tmp_path: Path
    ) -> None:
        url = url_of(store, tmp_path)
        with HoldfastSaver.open(url) as saver:
            asking("who?", "why?").compile(checkpointer=saver).invoke({"log": []}, ONE)

        (told,) = server.at_once((f"{JOBS}:answer_twice", url))

        assert told == [["why?"], ["who? 1", "why? 2"]]

    def test_an_error_of_a_class_that_is_unknown_there_does_not_stop_it(
        self, store: str, server: ForkServer, tmp_path: Path
    ) -> None:
        url = url_of(store, tmp_path)
        module = tmp_path / "only_here.py"
        module.write_text("class Odd(Exception):\n    pass\n")

        (told,) = server.at_once((f"{JOBS}:fail_with_a_class_of", url, str(module)))
        assert told == ["Odd('x')"]
        (told,) = server.at_once((f"{JOBS}:show_the_error_and_go_on", url))

        assert told == ["Odd('x')", ["went on"]]


class Model(BaseModel):
    """A state that is a pydantic model."""

    log: Annotated[list[str], lambda old, new: old + new] = []
    profile: Profile | None = None


@dataclass
class Data:
    """A state that is a dataclass."""

    messages: Annotated[list[Any], add_messages]
    step: Step | None = None


def test_a_pydantic_state_is_given_to_nodes_as_the_model(tmp_path: Path) -> None:
    seen: list[Model] = []

    def node(state: Model) -> dict[str, Any]:
        seen.append(state)
        return {"log": ["a"], "profile": Profile(name="ada", age=len(seen))}

    builder = new_graph(Model).add_node("a", node).add_edge(START, "a")
    for _ in range(2):
        with HoldfastSaver.from_sqlite(tmp_path / "h.db") as saver:
            builder.compile(checkpointer=saver).invoke({"log": ["in"]}, ONE)

    assert seen[1] == Model(log=["in", "a", "in"], profile=Profile(name="ada", age=1))


def test_a_dataclass_state_is_given_to_nodes_as_the_dataclass(tmp_path: Path) -> None:
    seen: list[Data] = []

    def node(state: Data) -> dict[str, Any]:
        seen.append(state)
        return {"messages": [("ai", "hello")], "step": rich_values()["steps"][0]}

    builder = new_graph(Data).add_node("a", node).add_edge(START, "a")
    for _ in range(2):
        with HoldfastSaver.from_sqlite(tmp_path / "h.db") as saver:
            builder.compile(checkpointer=saver).invoke({"messages": [("user", "hi")]}, ONE)

    assert [m.content for m in seen[1].messages] == ["hi", "hello", "hi"]
    assert seen[1].step == rich_values()["steps"][0]
    assert type(seen[1].step) is Step


@pytest.mark.parametrize("store", PERSISTENT)
def test_writes_of_a_task_keep_types_too(store: str, tmp_path: Path) -> None:
    url = url_of(store, tmp_path)
    with HoldfastSaver.open(url) as saver:
        config = saver.put(thread("1", checkpoint_ns=""), empty_checkpoint(), {}, {})
        saver.put_writes(config, [("value", rich_values())], "task", "path")

    with HoldfastSaver.open(url) as saver:
        found = saver.get_tuple(config)

    assert found is not None
    ((task, channel, value),) = found.pending_writes or []
    assert (task, channel) == ("task", "value")
    assert value == rich_values()
    assert types_of(value) == types_of(rich_values())
