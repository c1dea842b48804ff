"""A long thread costs what changed at each step, not what it holds."""

import operator
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import HumanMessage
from langgraph.graph import END, START

from holdfast.adapters.langgraph import HoldfastSaver
from tests.graphs import chat, new_graph, thread

ONE = thread("1")
MB = 2**20
STORE = "holdfast.db"


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[HoldfastSaver]:
    with HoldfastSaver.from_sqlite(tmp_path / STORE) as saver:
        yield saver


def words(chance: random.Random, count: int) -> str:
    """Text that does not compress to nothing."""
    return " ".join(f"{chance.getrandbits(40):x}" for _ in range(count))


def size_on_disk(saver: HoldfastSaver, directory: Path) -> int:
    """The size of the database once it is closed."""
    saver.close()
    return sum(path.stat().st_size for path in directory.glob(f"{STORE}*"))


def test_a_thread_of_five_hundred_messages_is_not_stored_five_hundred_times(
    saver: HoldfastSaver, tmp_path: Path
) -> None:
    chance = random.Random(1)
    graph = chat(lambda number: words(chance, 40)).compile(checkpointer=saver)
    for number in range(250):
        message = HumanMessage(words(chance, 40), id=f"h{number}")
        graph.invoke({"messages": [message]}, ONE)

    stats = saver.client.stats()
    assert len(graph.get_state(ONE).values["messages"]) == 500
    assert stats.checkpoints == 750
    assert stats.logical_bytes > 100 * MB
    assert stats.stored_bytes < 5 * MB
    assert stats.chunks < 10 * stats.checkpoints
    assert size_on_disk(saver, tmp_path) < 10 * MB


def last_forty(old: list[str], new: list[str]) -> list[str]:
    """A window that slides."""
    return [*old, *new][-40:]


class Window(TypedDict, total=False):
    """A window of the latest entries, and how many there were."""

    window: Annotated[list[str], last_forty]
    count: Annotated[int, operator.add]


def test_a_sliding_window_of_two_hundred_steps_is_stored_in_parts(
    saver: HoldfastSaver, tmp_path: Path
) -> None:
    chance = random.Random(2)
    builder = new_graph(Window)
    builder.add_node("step", lambda state: {"window": [words(chance, 100)], "count": 1})
    builder.add_edge(START, "step")
    builder.add_conditional_edges(
        "step", lambda state: "step" if state["count"] < 200 else END, ["step", END]
    )
    graph = builder.compile(checkpointer=saver)
    graph.invoke({"count": 0}, {**ONE, "recursion_limit": 300})

    stats = saver.client.stats()
    assert stats.checkpoints == 202
    assert stats.logical_bytes > 7 * MB
    assert stats.stored_bytes < 2 * MB
    assert size_on_disk(saver, tmp_path) < 4 * MB


def merged(old: dict[str, str], new: dict[str, str]) -> dict[str, str]:
    """Files by name; those that are given replace the old."""
    return {**old, **new}


class Files(TypedDict, total=False):
    """What an agent that writes code has."""

    files: Annotated[dict[str, str], merged]
    count: Annotated[int, operator.add]


def test_a_channel_of_fifty_files_stores_the_one_that_changed(
    saver: HoldfastSaver, tmp_path: Path
) -> None:
    chance = random.Random(3)
    builder = new_graph(Files)

    def edit(state: Files) -> Any:
        name = f"file{chance.randrange(50)}.py"
        return {"files": {name: state["files"][name][:2000] + words(chance, 20)}, "count": 1}

    builder.add_node("edit", edit)
    builder.add_edge(START, "edit")
    builder.add_conditional_edges(
        "edit", lambda state: "edit" if state["count"] < 150 else END, ["edit", END]
    )
    graph = builder.compile(checkpointer=saver)
    files = {f"file{number}.py": words(chance, 300) for number in range(50)}
    graph.invoke({"files": files, "count": 0}, {**ONE, "recursion_limit": 300})

    stats = saver.client.stats()
    assert stats.checkpoints == 152
    assert stats.logical_bytes > 18 * MB
    assert stats.stored_bytes < 4 * MB
    assert stats.chunks < 8 * stats.checkpoints
    assert size_on_disk(saver, tmp_path) < 6 * MB


def test_what_a_prune_leaves_is_small_once_it_is_collected(saver: HoldfastSaver) -> None:
    chance = random.Random(4)
    graph = chat(lambda number: words(chance, 40)).compile(checkpointer=saver)
    for number in range(40):
        graph.invoke({"messages": [HumanMessage(words(chance, 40), id=f"h{number}")]}, ONE)
    before = saver.client.stats()
    state = graph.get_state(ONE).values

    saver.prune(["1"])
    saver.client.gc(grace_seconds=0)

    after = saver.client.stats()
    assert after.checkpoints == 1
    assert after.stored_bytes < before.stored_bytes / 2
    assert graph.get_state(ONE).values == state


def test_a_copied_thread_adds_no_states(saver: HoldfastSaver) -> None:
    chance = random.Random(5)
    graph = chat(lambda number: words(chance, 40)).compile(checkpointer=saver)
    for number in range(20):
        graph.invoke({"messages": [HumanMessage(words(chance, 40), id=f"h{number}")]}, ONE)
    before = saver.client.stats()

    saver.copy_thread("1", "2")

    after = saver.client.stats()
    assert after.checkpoints == 2 * before.checkpoints
    assert (after.chunks, after.stored_bytes) == (before.chunks, before.stored_bytes)
