"""Threads as LangGraph's own savers keep them, and what has to be the same after a move."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import StateGraph

from tests.graphs import (
    answer,
    asking,
    chat,
    delta_asking,
    delta_fan_out,
    deltas,
    fan_out,
    line,
    nested,
    thread,
)

KEY = b"0123456789abcdef"
"""Of serializers that encrypt."""


class Work:
    """The work of a fan-out: who did it is written down, and one fails until it is mended."""

    def __init__(self, failing: str = "d") -> None:
        self.failing: str | None = failing
        self.done: list[str] = []

    def do(self, sent: dict[str, Any]) -> Any:
        if sent["name"] == self.failing:
            raise RuntimeError("broken")
        self.done.append(sent["name"])
        return {"log": [sent["name"]]}


class Threads:
    """A thread of each kind: finished, waiting, failed half-way, forked, with delta channels."""

    def __init__(self) -> None:
        self.work = Work()
        self.graphs: dict[str, StateGraph] = {
            "chat": chat(),
            "nested": nested(),
            "asking": asking("who?", "when?"),
            "fan-out": fan_out(self.work.do),
            "forked": line("one", "two", "three"),
            "deltas": deltas(2),
            "delta-asking": delta_asking(),
            "delta-fan-out": delta_fan_out(),
        }

    def inputs(self) -> Iterator[tuple[str, Any]]:
        """What each thread is given, in turn."""
        for number in range(3):
            yield "chat", {"messages": [("user", f"question {number}")]}
            yield "deltas", {"plain": [number], "often": [number], "seldom": [number]}
        yield "nested", {}
        yield "asking", {}
        yield "asking", answer("ada")
        yield "fan-out", {}
        yield "forked", {}
        yield "delta-asking", {}
        yield "delta-fan-out", {}

    def write(self, saver: BaseCheckpointSaver[str]) -> None:
        """Run them all on a saver."""
        for name, given in self.inputs():
            self.run(saver, name, given)
        graph = self.graphs["forked"].compile(checkpointer=saver)
        early = [state for state in graph.get_state_history(thread("forked")) if state.next][-2]
        graph.update_state(early.config, {"log": ["another way"]})
        self.run(saver, "forked", None)

    async def awrite(self, saver: BaseCheckpointSaver[str]) -> None:
        """The same on a saver that is async, but for the fork."""
        for name, given in self.inputs():
            graph = self.graphs[name].compile(checkpointer=saver)
            try:
                await graph.ainvoke(given, _one_at_a_time(name))
            except RuntimeError:
                assert name == "fan-out"

    def next_inputs(self) -> Iterator[tuple[str, Any]]:
        """What those that wait are answered, and those that do not are asked next."""
        yield "nested", answer("7 deep")
        yield "asking", answer("today")
        yield "fan-out", None
        yield "chat", {"messages": [HumanMessage("and now?", id="now")]}
        yield "forked", {"log": ["again"]}
        yield "deltas", {"plain": ["x"], "often": ["x"], "seldom": ["x"]}
        yield "delta-asking", answer("well")

    def run(self, saver: BaseCheckpointSaver[str], name: str, given: Any) -> Any:
        """Give a thread something; what it answers."""
        graph = self.graphs[name].compile(checkpointer=saver)
        try:
            return graph.invoke(given, _one_at_a_time(name))
        except RuntimeError:
            assert name == "fan-out"
            assert self.work.failing is not None

    def history(self, saver: BaseCheckpointSaver[str]) -> dict[str, list[Any]]:
        """Every state of every thread, as users see them."""
        return {
            name: [*graph.compile(checkpointer=saver).get_state_history(thread(name))]
            for name, graph in self.graphs.items()
        }


def _one_at_a_time(name: str) -> Any:
    """So that what is done when one task fails is the same each time."""
    return {**thread(name), "max_concurrency": 1}


def assert_same(
    got: BaseCheckpointSaver[str], expected: BaseCheckpointSaver[str], at_least: int = 1
) -> None:
    """Two savers give the same answers to everything that LangGraph asks them."""
    ours, theirs = _everything(got), _everything(expected)
    assert len(theirs) >= at_least
    assert ours == theirs
    for found in theirs:
        assert got.get_tuple(found.config) == found
    for thread_id, namespace in {_place(found)[:2] for found in theirs}:
        newest = thread(thread_id, checkpoint_ns=namespace)
        assert got.get_tuple(newest) == expected.get_tuple(newest)
        assert [*got.list(newest)] == [*expected.list(newest)]
    for found in theirs:
        channels = [*found.metadata.get("counters_since_delta_snapshot", {})]
        assert got.get_delta_channel_history(
            config=found.config, channels=channels
        ) == expected.get_delta_channel_history(config=found.config, channels=channels)


def _everything(saver: BaseCheckpointSaver[str]) -> list[CheckpointTuple]:
    return sorted(saver.list(None), key=_place)


def _place(found: CheckpointTuple) -> tuple[str, str, str]:
    at = found.config["configurable"]
    return at["thread_id"], at["checkpoint_ns"], at["checkpoint_id"]


@contextmanager
def sqlite_saver(path: Path, serde: SerializerProtocol | None = None) -> Iterator[SqliteSaver]:
    """LangGraph's own saver on a file."""
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        yield SqliteSaver(connection, serde=serde)


def write_chat(path: Path, turns: int = 1, thread_id: str = "chat") -> None:
    """A conversation of so many turns; each is three checkpoints and one write or more."""
    with sqlite_saver(path) as saver:
        graph = chat().compile(checkpointer=saver)
        for number in range(turns):
            graph.invoke({"messages": [("user", f"question {number}")]}, thread(thread_id))


def counts(path: Path) -> tuple[int, int]:
    """The checkpoints and writes of another saver's file."""
    with closing(sqlite3.connect(path)) as db:
        (checkpoints,) = db.execute("SELECT count(*) FROM checkpoints").fetchone()
        (writes,) = db.execute(
            "SELECT count(*) FROM writes JOIN checkpoints "
            "USING (thread_id, checkpoint_ns, checkpoint_id)"
        ).fetchone()
    return checkpoints, writes


def assert_goes_on(
    threads: Threads, ours: BaseCheckpointSaver[str], theirs: BaseCheckpointSaver[str]
) -> None:
    """All goes on as it would have, and nothing that was done is done again."""
    assert threads.work.done == ["a", "b", "c"]
    threads.work.failing = None

    for name, given in threads.next_inputs():
        answered = threads.run(ours, name, given)
        if name == "fan-out":
            assert threads.work.done == ["a", "b", "c", "d"]
        assert answered == threads.run(theirs, name, given)


class Interfering(JsonPlusSerializer):
    """A serializer that does something else when it has read a few values."""

    def __init__(self, interfere: Callable[[], None]) -> None:
        super().__init__()
        self._left = 5
        self._interfere = interfere

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        self._left -= 1
        if self._left == 0:
            self._interfere()
        return super().loads_typed(data)
