"""Graphs and values that the tests of the LangGraph adapter share.

At the top level of a module, so that other processes can build the same ones.
"""

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import UUID
from zoneinfo import ZoneInfo

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.runnables import RunnableConfig
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from pydantic import BaseModel


def thread(thread_id: Any, **configurable: Any) -> RunnableConfig:
    """The config of a thread."""
    return {"configurable": {"thread_id": thread_id, **configurable}}


def new_graph(schema: Any) -> Any:
    """A graph without nodes; not typed, since the nodes of tests take and give odd things."""
    return StateGraph(schema)


class Log(TypedDict, total=False):
    """What most graphs here do: write down what they did."""

    log: Annotated[list[str], operator.add]
    value: Any


class Counter(TypedDict, total=False):
    """What a subgraph keeps for itself."""

    count: Annotated[int, operator.add]


def says(*words: str) -> Callable[[Log], Log]:
    """A node that writes these down."""
    return lambda state: {"log": [*words]}


def line(*names: str) -> Any:
    """Nodes one after the other, each of which writes its name down."""
    builder = new_graph(Log)
    for before, name in zip((START, *names), names, strict=False):
        builder.add_node(name, says(name))
        builder.add_edge(before, name)
    return builder


def asking(*questions: str, name: str = "ask") -> Any:
    """One node that asks several things in turn."""

    def ask(state: Log) -> Log:
        return {"log": [f"{question} {interrupt(question)}" for question in questions]}

    return new_graph(Log).add_node(name, ask).add_edge(START, name)


def nested(checkpointer: Any = None) -> Any:
    """A graph in a graph in a graph; the innermost asks before it ends."""
    inner = line("deep")
    inner.add_node("ask", lambda state: {"log": [f"told {interrupt('how deep?')}"]})
    inner.add_edge("deep", "ask")
    middle = line("before")
    middle.add_node("inner", inner.compile(checkpointer=checkpointer))
    middle.add_edge("before", "inner")
    outer = line("first")
    outer.add_node("middle", middle.compile(checkpointer=checkpointer))
    outer.add_edge("first", "middle")
    outer.add_node("last", says("last"))
    outer.add_edge("middle", "last")
    return outer


def fan_out(
    work: Callable[[dict[str, Any]], Log], names: Sequence[str] = ("a", "b", "c", "d")
) -> Any:
    """As many tasks at once as there are names, sent to one node; then one that joins them."""
    builder = new_graph(Log)
    builder.add_node("plan", says("plan"))
    builder.add_node("work", work)
    builder.add_node("join", lambda state: {"log": [f"joined {len(state['log'])}"]})
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send("work", {"name": name}) for name in names], ["work"]
    )
    builder.add_edge("work", "join")
    return builder


def looping(last: int) -> Any:
    """One node that runs again and again until the log is so long."""
    builder = new_graph(Log)
    builder.add_node("step", lambda state: {"log": [str(len(state.get("log", [])))]})
    builder.add_edge(START, "step")
    builder.add_conditional_edges(
        "step", lambda state: "step" if len(state["log"]) < last else END, ["step", END]
    )
    return builder


class Talk(TypedDict):
    """A conversation."""

    messages: Annotated[list[AnyMessage], add_messages]


def chat(answer: Callable[[int], str] = "answer {}".format) -> Any:
    """A conversation; the answer to message n is what the function says."""

    def reply(state: Talk) -> dict[str, Any]:
        number = len(state["messages"])
        return {"messages": [AIMessage(answer(number), id=f"ai-{number}")]}

    return new_graph(Talk).add_node("reply", reply).add_edge(START, "reply")


def every_message() -> list[AnyMessage]:
    """A message of every kind, with all they can carry."""
    call = {"name": "search", "args": {"q": "holdfast", "n": 3}, "id": "call-1"}
    return [
        SystemMessage("be brief", id="m1"),
        HumanMessage([{"type": "text", "text": "look"}, {"type": "text", "text": "up"}], id="m2"),
        AIMessage(
            "searching",
            id="m3",
            tool_calls=[{**call, "type": "tool_call"}],
            invalid_tool_calls=[
                {
                    "name": "broken",
                    "args": "{",
                    "id": "call-2",
                    "error": "not JSON",
                    "type": "invalid_tool_call",
                }
            ],
            usage_metadata={"input_tokens": 3, "output_tokens": 5, "total_tokens": 8},
            response_metadata={"model": "fake", "logprobs": None},
            additional_kwargs={"reasoning": ["why", "not"]},
        ),
        ToolMessage(
            "found", id="m4", tool_call_id="call-1", artifact={"rows": [1, 2]}, status="error"
        ),
        FunctionMessage(content="old way", id="m5", name="search"),
        ChatMessage(content="narrated", id="m6", role="narrator"),
        AIMessage("done", id="m8", name="helper"),
    ]


class Colour(Enum):
    """An enum whose values are not its names."""

    RED = "r"
    BLUE = "b"


class Point(NamedTuple):
    """A named tuple."""

    x: int
    y: float = 0.0


@dataclass
class Step:
    """A dataclass that holds others."""

    title: str
    at: Point
    colour: Colour = Colour.RED
    parts: list["Step"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Frozen:
    """A dataclass without a dict."""

    name: str
    tags: frozenset[str] = frozenset()


class Profile(BaseModel):
    """A pydantic model."""

    name: str
    age: int
    colours: list[Colour] = []
    nested: "Profile | None" = None


def rich_values() -> dict[str, Any]:
    """Values of which other checkpointers lose the type, or all."""
    return {
        "tuple": (1, "two", (3.0,)),
        "set": {1, 2, 3},
        "frozenset": frozenset({"a"}),
        "bytes": b"\x00\xff",
        "bytearray": bytearray(b"\x01"),
        "decimal": Decimal("1.10"),
        "fraction": Fraction(1, 3),
        "big": 2**200,
        "zoned": datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin")),
        "offset": datetime(2026, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=45))),
        "utc": datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC),
        "naive": datetime(2026, 1, 1),
        "delta": timedelta(days=-1, microseconds=5),
        "uuid": UUID(int=7),
        "path": Path("/tmp/x"),
        "int_keys": {1: "one", (2, 3): "pair", None: "none"},
        "enum": Colour.BLUE,
        "point": Point(1, 2.5),
        "steps": [Step("outer", Point(0), parts=[Step("inner", Point(1), Colour.BLUE)])],
        "frozen": Frozen("f", frozenset({"x"})),
        "profile": Profile(name="ada", age=36, nested=Profile(name="byron", age=1)),
        "nan_free": [float("inf"), -0.0],
        "complex": 1 + 2j,
        "range": range(3),
    }


def types_of(value: Any) -> Any:
    """The types of a value and all it holds, to compare what == would take as equal."""
    if isinstance(value, dict):
        return type(value), [(types_of(k), types_of(v)) for k, v in value.items()]
    if isinstance(value, (list, tuple)):
        return type(value), [types_of(each) for each in value]
    if hasattr(value, "__dict__") and not isinstance(value, (Enum, type)):
        return type(value), {name: types_of(each) for name, each in vars(value).items()}
    return type(value)


def append(state: list[Any], writes: Sequence[Any]) -> list[Any]:
    """A reducer of a delta channel; what it is given is added, in order."""
    return [*state, *(each for write in writes for each in write)]


class Both(TypedDict, total=False):
    """The same things in a plain channel and in delta channels."""

    plain: Annotated[list[Any], operator.add]
    often: Annotated[list[Any], DeltaChannel(append, snapshot_frequency=3)]
    seldom: Annotated[list[Any], DeltaChannel(append, snapshot_frequency=1000)]


class Often(TypedDict, total=False):
    """One delta channel that is stored whole every third time."""

    often: Annotated[list[Any], DeltaChannel(append, snapshot_frequency=3)]


def to_all(*things: Any) -> Both:
    """A write to all three channels."""
    return {"plain": [*things], "often": [*things], "seldom": [*things]}


def deltas(steps: int = 2) -> Any:
    """Every run goes through so many steps, each of which writes to all channels."""
    builder = new_graph(Both)
    before = START
    for step in range(steps):
        name = f"step{step}"
        builder.add_node(name, lambda state, name=name: to_all(f"{name} at {len(state['plain'])}"))
        builder.add_edge(before, name)
        before = name
    return builder


def delta_asking() -> Any:
    """A step with delta channels, then one that asks; and one after it."""
    builder = deltas(1)
    builder.add_node("ask", lambda state: to_all(f"told {interrupt('well?')}"))
    builder.add_edge("step0", "ask")
    builder.add_node("end", lambda state: to_all("end"))
    builder.add_edge("ask", "end")
    return builder


def delta_fan_out(work: Callable[[Any], Both] = lambda sent: to_all(sent["name"])) -> Any:
    """Tasks at once that write to delta channels, in an order that only their paths tell."""
    builder = new_graph(Both)
    builder.add_node("plan", lambda state: to_all("plan"))
    builder.add_node("work", work)
    builder.add_edge(START, "plan")
    builder.add_conditional_edges(
        "plan", lambda state: [Send("work", {"name": name}) for name in "dbca"], ["work"]
    )
    return builder


def answer(value: Any, **parts: Any) -> Command:
    """The answer to an interrupt."""
    return Command(resume=value, **parts)
