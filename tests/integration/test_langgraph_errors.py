"""Errors of tasks: what every saver of LangGraph's gives, and values that cannot be kept."""

import asyncio
import operator
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from langchain_core.messages import AIMessage
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.errors import NodeInterrupt
from langgraph.graph import START, MessagesState
from langgraph.types import RetryPolicy, Send, interrupt

from holdfast import SerializationError, SyncClient
from holdfast.adapters.langgraph import HoldfastSaver
from holdfast.core.codec import pack
from holdfast.core.raw import Sealed
from holdfast.verbs.notes import NoteBatch
from tests.clients import url_of
from tests.graphs import Log, answer, line, new_graph, says, thread

pytest_plugins = ["tests.integration.moving_fixtures"]

ONE = thread("1")


class Custom(Exception):
    """With a text of its own."""

    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code

    def __repr__(self) -> str:
        return f"<Custom {self.code}>"


class Holding(Exception):
    """With something in it that nothing can keep."""

    def __init__(self) -> None:
        super().__init__("held", threading.Lock())

    def __repr__(self) -> str:
        return "Holding()"


@dataclass
class Data(Exception):
    """An error that is a dataclass, which LangGraph's serializer makes again."""

    code: int


def raising(make: Callable[[], BaseException]) -> Callable[[Any], Any]:
    def node(state: Any) -> Any:
        raise make()

    return node


ERRORS: dict[str, Callable[[], BaseException]] = {
    "plain": lambda: ValueError("no"),
    "without arguments": ValueError,
    "of the system": lambda: FileNotFoundError(2, "No such file", "a.txt"),
    "with several": lambda: KeyError("a", 2, None),
    "custom": lambda: Custom(7),
    "holding a lock": Holding,
    "a dataclass": lambda: Data(3),
    "a group": lambda: ExceptionGroup("many", [ValueError(1), KeyError("k")]),
    "nested groups": lambda: ExceptionGroup("a", [ExceptionGroup("b", [Custom(1)]), OSError(5)]),
    "unicode": lambda: ValueError("naïve 🦊 \n"),
    "a lone surrogate": lambda: ValueError("\udc80"),
    "undecodable": lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    "long": lambda: RuntimeError("x" * 10_000),
}


@pytest.fixture
def savers(theirs: PostgresSaver, tmp_path: Path) -> Iterator[list[BaseCheckpointSaver[str]]]:
    """Those of LangGraph, and after them ours."""
    with ExitStack() as stack:
        yield [
            stack.enter_context(SqliteSaver.from_conn_string(str(tmp_path / "theirs.db"))),
            InMemorySaver(),
            theirs,
            *(
                stack.enter_context(HoldfastSaver.open(url_of(store, tmp_path)))
                for store in ("memory", "sqlite", "file")
            ),
        ]


def told(saver: BaseCheckpointSaver[str], builder: Any, given: Any = None, turns: int = 1) -> Any:
    """All that a snapshot and the writes say of the tasks, after that many runs."""
    graph = builder.compile(checkpointer=saver)
    for turn in range(turns):
        try:
            graph.invoke({"log": []} if given is None or turn else given, ONE)
        except BaseException as error:
            if not isinstance(error, (Exception, KeyboardInterrupt)):
                raise
    state = graph.get_state(ONE)
    found = saver.get_tuple(ONE)
    assert found is not None
    return (
        state.values,
        state.next,
        [(task.name, task.error, type(task.error)) for task in state.tasks],
        [i.value for i in state.interrupts],
        [value for _, name, value in found.pending_writes or () if name == "__error__"],
    )


def same_for_all(savers: list[BaseCheckpointSaver[str]], builder: Any, turns: int = 1) -> Any:
    first, *others = [told(saver, builder, turns=turns) for saver in savers]
    for other in others:
        assert other == first
    return first


@pytest.mark.parametrize("kind", ERRORS)
def test_an_error_is_told_as_every_other_saver_tells_it(
    savers: list[BaseCheckpointSaver[str]], kind: str
) -> None:
    builder = new_graph(Log).add_node("a", raising(ERRORS[kind])).add_edge(START, "a")

    _, _, ((name, error, _),), _, _ = same_for_all(savers, builder)

    assert name == "a"
    if kind == "a dataclass":
        assert error == Data(3)
    else:
        assert isinstance(error, str)


def test_errors_and_questions_of_tasks_at_once_are_told_the_same(
    savers: list[BaseCheckpointSaver[str]],
) -> None:
    builder = new_graph(Log)
    builder.add_node("fine", says("fine")).add_edge(START, "fine")
    builder.add_node("ask", lambda state: {"log": [interrupt({"q": "sure?"})]})
    builder.add_edge(START, "ask")

    _, _, tasks, asked, _ = same_for_all(savers, builder)

    assert {name for name, _, _ in tasks} == {"ask", "fine"}
    assert asked == [{"q": "sure?"}]


def test_a_question_that_is_answered_with_an_error_is_told_the_same(
    savers: list[BaseCheckpointSaver[str]],
) -> None:
    def ask(state: Any) -> Any:
        raise Custom(interrupt("code?"))

    builder = new_graph(Log).add_node("ask", ask).add_edge(START, "ask")
    answers = []
    for saver in savers:
        graph = builder.compile(checkpointer=saver)
        graph.invoke({"log": []}, ONE)
        with pytest.raises(Custom):
            graph.invoke(answer(4), ONE)
        tasks = graph.get_state(ONE).tasks
        answers.append([(t.name, t.error, [i.value for i in t.interrupts]) for t in tasks])

    assert all(each == answers[0] for each in answers)
    assert answers[0][0][1] == "<Custom 4>"


def test_a_node_that_is_tried_again_is_told_the_same(
    savers: list[BaseCheckpointSaver[str]],
) -> None:
    policy = RetryPolicy(max_attempts=2, initial_interval=0.001, retry_on=ValueError)
    builder = new_graph(Log)
    builder.add_node("a", raising(lambda: ValueError("again")), retry_policy=policy)
    builder.add_edge(START, "a")

    _, _, ((_, error, _),), _, _ = same_for_all(savers, builder, turns=2)

    assert error == "ValueError('again')"


def test_tasks_that_were_sent_and_failed_are_told_the_same(
    savers: list[BaseCheckpointSaver[str]],
) -> None:
    builder = new_graph(Log)
    builder.add_node("plan", says("plan")).add_edge(START, "plan")
    builder.add_node("work", raising(lambda: Custom(1)))
    builder.add_conditional_edges("plan", lambda state: [Send("work", {})], ["work"])

    _, _, ((name, error, _),), _, _ = same_for_all(savers, builder)

    assert (name, error) == ("work", "<Custom 1>")


def test_an_old_interrupt_that_is_raised_is_told_the_same(
    savers: list[BaseCheckpointSaver[str]],
) -> None:
    builder = new_graph(Log).add_node("a", raising(lambda: NodeInterrupt("wait")))
    builder.add_edge(START, "a")

    with pytest.warns(DeprecationWarning, match="NodeInterrupt"):
        _, _, _, asked, _ = same_for_all(savers, builder)

    assert asked == ["wait"]


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("old"), "ValueError('old')"),
        (ExceptionGroup("g", [KeyError(1)]), "ExceptionGroup('g', [KeyError(1)])"),
        (Data(3), Data(3)),
    ],
)
def test_an_error_that_an_earlier_holdfast_kept_is_told_as_text_too(error: Any, text: Any) -> None:
    with HoldfastSaver.open("memory://") as saver:
        line("a").compile(checkpointer=saver).invoke({"log": []}, ONE)
        head = saver.client.sessions()[0].head
        written = NoteBatch()
        row = [-1, "__error__", Sealed("error", pack(error)), True]
        note = {"task_id": "t", "task_path": "", "writes": [row]}
        written.add(saver.client.runtime.engine, head.checkpoint_id, "old", note)
        saver.client.runtime.run(written.write())

        found = saver.get_tuple(ONE)

    assert found is not None
    assert found.pending_writes == [("t", "__error__", text)]


class Messages(MessagesState):
    """Messages, and anything else."""

    value: Annotated[list[Any], operator.add]


def _lock() -> Any:
    return threading.Lock()


def _generator() -> Any:
    return (n for n in range(3))


UNKEEPABLE: dict[str, tuple[Callable[[], Any], str]] = {
    "lock": (_lock, "_thread.lock"),
    "generator": (_generator, "generator"),
    "function": (lambda: lambda: 1, "function"),
    "socket": (lambda: socket.socket(), "socket.socket"),
}


@pytest.mark.parametrize("durability", ["async", "sync", "exit", None])
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", UNKEEPABLE)
def test_a_value_that_cannot_be_kept_is_named_by_its_path(
    kind: str, is_async: bool, durability: Any
) -> None:
    make, name = UNKEEPABLE[kind]
    value = make()

    def node(state: Any) -> Any:
        return {"messages": [AIMessage("x", additional_kwargs={"held": [1, value]})]}

    builder = new_graph(Messages).add_node("a", node).add_edge(START, "a")
    with SyncClient.memory() as client:
        graph = builder.compile(checkpointer=HoldfastSaver(client))
        given = {"messages": [("user", "hi")]}
        options = {} if durability is None else {"durability": durability}

        def run() -> None:
            if is_async:
                asyncio.run(graph.ainvoke(given, ONE, **options))
            else:
                graph.invoke(given, ONE, **options)

        with pytest.raises(SerializationError) as caught:
            run()
    if kind == "socket":
        value.close()

    said = str(caught.value)
    assert said.startswith("$.channel_values.messages[")
    assert f".additional_kwargs.held[1]: {name} cannot be checkpointed" in said
    assert "register_type" in said


@pytest.mark.parametrize("durability", ["async", "sync", "exit"])
def test_what_comes_in_and_cannot_be_kept_is_named_as_well(durability: Any) -> None:
    with SyncClient.memory() as client:
        graph = line("a").compile(checkpointer=HoldfastSaver(client))
        with pytest.raises(SerializationError, match=r"^\$\.channel_values\..*value\b.*_thread"):
            graph.invoke({"log": [], "value": {"k": _lock()}}, ONE, durability=durability)


class Typed(TypedDict):
    """A state of one channel."""

    value: Any


def test_a_model_that_hides_what_cannot_be_kept_is_named_with_both_ways_out() -> None:
    from pydantic import BaseModel, PrivateAttr

    class Model(BaseModel):
        n: int
        _lock: Any = PrivateAttr(default_factory=threading.Lock)

    builder = new_graph(Typed).add_node("a", lambda state: {"value": Model(n=1)})
    builder.add_edge(START, "a")
    with SyncClient.memory() as client:
        graph = builder.compile(checkpointer=HoldfastSaver(client))
        with pytest.raises(SerializationError, match=r"_lock: _thread.lock .*serde=JsonPlus"):
            graph.invoke({"value": None}, ONE)
