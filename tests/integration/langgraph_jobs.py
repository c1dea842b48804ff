"""What children of the LangGraph tests do: open a store anew, run graphs, be killed in them."""

import asyncio
import operator
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START
from langgraph.types import Send

from holdfast.adapters.langgraph import HoldfastSaver
from tests.graphs import (
    answer,
    asking,
    chat,
    every_message,
    line,
    new_graph,
    rich_values,
    thread,
    types_of,
)
from tests.integration.fork_server import tell

ONE = thread("1")
ROUNDS = 4
WORKERS = ("a", "b", "c", "d")


class Work(TypedDict, total=False):
    """The state of the graph that is killed."""

    done: Annotated[list[str], operator.add]
    round: int


def compare_rich_values(url: str) -> None:
    """Tell the names of those values that are not what they were."""
    with HoldfastSaver.open(url) as saver:
        values = line("a").compile(checkpointer=saver).get_state(ONE).values["value"]
    wanted = rich_values()
    assert list(values) == list(wanted)
    tell(
        [
            name
            for name in wanted
            if values[name] != wanted[name] or types_of(values[name]) != types_of(wanted[name])
        ]
    )


def compare_messages(url: str) -> None:
    """Tell which messages are not what they were, and what was answered."""
    with HoldfastSaver.open(url) as saver:
        *messages, last = chat().compile(checkpointer=saver).get_state(ONE).values["messages"]
    wanted = every_message()
    assert len(messages) == len(wanted)
    tell(
        [
            message.id
            for message, other in zip(messages, wanted, strict=True)
            if type(message) is not type(other) or message.model_dump() != other.model_dump()
        ]
    )
    tell(last.content)


def answer_twice(url: str) -> None:
    """Answer the questions of a thread that another process asked."""
    with HoldfastSaver.open(url) as saver:
        graph = asking("who?", "why?").compile(checkpointer=saver)
        tell([i.value for i in graph.invoke(answer(1), ONE)["__interrupt__"]])
        tell(graph.invoke(answer(2), ONE)["log"])


def fail_with_a_class_of(url: str, module: str) -> None:
    """Run a node that raises an error that only this process knows."""
    sys.path.insert(0, str(Path(module).parent))

    def fail(state: Any) -> Any:
        raise import_module(Path(module).stem).Odd("x")

    graph = new_graph(Work).add_node("a", fail).add_edge(START, "a")
    with HoldfastSaver.open(url) as saver:
        compiled = graph.compile(checkpointer=saver)
        try:
            compiled.invoke({"round": 1}, ONE)
        except Exception as error:
            tell(repr(error))


def show_the_error_and_go_on(url: str) -> None:
    """Tell what is known of the error, and of the run that goes on."""
    graph = new_graph(Work).add_node("a", lambda state: {"done": ["went on"]}).add_edge(START, "a")
    with HoldfastSaver.open(url) as saver:
        compiled = graph.compile(checkpointer=saver)
        error = compiled.get_state(ONE).tasks[0].error
        tell(error)
        tell(compiled.invoke(None, ONE)["done"])


class Telling(HoldfastSaver):
    """A saver that writes down, beside what ran, which writes are kept for sure."""

    journal = ""

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        super().put_writes(config, writes, task_id, task_path)
        note_kept(self.journal, writes)

    async def aput_writes(
        self, config: Any, writes: Any, task_id: str, task_path: str = ""
    ) -> None:
        await super().aput_writes(config, writes, task_id, task_path)
        note_kept(self.journal, writes)


def note_kept(journal: str, writes: Any) -> None:
    """Write down what a task did, now that it is kept."""
    for channel, value in writes:
        if channel == "done":
            note(journal, f"kept {value[0].partition(' of ')[0]}")


def note(journal: str, line: str) -> None:
    """Add a line in one piece, whoever else does."""
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, f"{line}\n".encode())
    os.close(descriptor)


def working(journal: str, die_in: str | None, after: Sequence[str]) -> Any:
    """Rounds of a plan, tasks at once and a join; in one of them the process may kill itself.

    Before it does, it waits until the journal has these lines.
    """

    def enter(name: str) -> None:
        note(journal, f"ran {name}")
        tell(name)
        if name == die_in:
            while not {*after} <= {*Path(journal).read_text().splitlines()}:
                pass
            os.kill(os.getpid(), signal.SIGKILL)

    def plan(state: Work) -> Work:
        number = state.get("round", 0) + 1
        enter(f"plan {number}")
        return {"round": number, "done": [f"plan {number}"]}

    def work(sent: dict[str, Any]) -> Work:
        name = f"work {sent['round']} {sent['name']}"
        enter(name)
        return {"done": [name]}

    def join(state: Work) -> Work:
        enter(f"join {state['round']}")
        return {"done": [f"join {state['round']} of {len(state['done'])}"]}

    builder = new_graph(Work)
    builder.add_node("plan", plan).add_node("work", work).add_node("join", join)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan",
        lambda state: [Send("work", {"round": state["round"], "name": name}) for name in WORKERS],
        ["work"],
    )
    builder.add_edge("work", "join")
    builder.add_conditional_edges(
        "join", lambda state: "plan" if state["round"] < ROUNDS else END, ["plan", END]
    )
    return builder


def work_until_killed(
    url: str,
    journal: str,
    name: str,
    face: str,
    die_in: str | None = None,
    after: Sequence[str] = (),
) -> None:
    """Start a thread, or go on where the process before was killed."""
    config = thread(name)
    with Telling.open(url) as saver:
        saver.journal = journal
        graph = working(journal, die_in, after).compile(checkpointer=saver)
        given: Any = None if saver.get_tuple(config) else {"done": ["begin"]}
        if face == "async":
            asyncio.run(graph.ainvoke(given, config, durability="sync"))
        else:
            graph.invoke(given, config, durability="sync")
    tell("ended")
