"""A LangGraph graph that adds a message a step, run on a saver: what its user waits for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

from benchmarks.contenders.base import Contender
from benchmarks.servers import PostgresPlace
from benchmarks.workloads.conversation import LONG_MESSAGE, message
from benchmarks.workloads.text import Writer
from benchmarks.workloads.typed import langchain_messages

_OFFICIAL = "langgraph.checkpoint.sqlite"
_OURS = "holdfast.adapters.langgraph"
_CONFIG = {"configurable": {"thread_id": "main"}, "recursion_limit": 1_000_000}
_FILE = "graph.db"


class GraphContender(Contender):
    """A graph on one saver; ``step`` lets it take the next step, durability "sync"."""

    requires = "langgraph.checkpoint.sqlite"

    def __init__(
        self,
        name: str,
        open_saver: Callable[[Path], Any],
        *,
        delta: bool = False,
        is_async: bool = False,
    ) -> None:
        self.name = name
        self._open_saver = open_saver
        self._delta = delta
        self._is_async = is_async
        self.durability = "normal" if open_saver is ours_normal else "full"

    async def open(self, directory: Path) -> None:
        self.directory = directory
        self._context = self._open_saver(directory)
        graph = _builder(self._delta)
        self._stream: Any
        if self._is_async:
            saver = await self._context.__aenter__()
            self._stream = graph.compile(checkpointer=saver).astream(*_input(), **_HOW)
        else:
            saver = self._context.__enter__()
            self._stream = graph.compile(checkpointer=saver).stream(*_input(), **_HOW)

    async def step(self) -> None:
        if self._is_async:
            await anext(self._stream)
        else:
            next(self._stream)

    async def close(self) -> None:
        if self._is_async:
            await self._stream.aclose()
            await self._context.__aexit__(None, None, None)
        else:
            self._stream.close()
            self._context.__exit__(None, None, None)

    async def save(self, step: int, state: Any, session: str = "main") -> None:
        raise NotImplementedError("a graph takes steps")

    async def restore_newest(self, session: str = "main") -> Any:
        raise NotImplementedError("a graph takes steps")


class PostgresGraph(GraphContender):
    """A graph on a saver in a PostgreSQL database of its own."""

    requires = "langgraph.checkpoint.postgres"

    def __init__(self, name: str, open_saver: Callable[[str], Any]) -> None:
        super().__init__(name, lambda _: open_saver(self._place.url))

    async def open(self, directory: Path) -> None:
        self._place = PostgresPlace()
        await super().open(directory)

    def bytes(self) -> int:
        return self._place.bytes()


_HOW: dict[str, Any] = {"durability": "sync", "stream_mode": "updates"}


def _input() -> tuple[dict[str, Any], dict[str, Any]]:
    return {"messages": []}, _CONFIG


def _builder(delta: bool) -> Any:
    """START → agent → agent → … with one message of about 1 KB a step."""
    graph = import_module("langgraph.graph")
    write, convert, numbers = Writer(2), langchain_messages(), iter(range(1, 10**9))

    def agent(state: dict[str, Any]) -> dict[str, Any]:
        return {"messages": [convert(message(write, next(numbers), LONG_MESSAGE))]}

    state = _delta_state() if delta else graph.MessagesState
    builder = graph.StateGraph(state).add_node("agent", agent)
    return builder.add_edge(graph.START, "agent").add_conditional_edges("agent", lambda _: "agent")


def _delta_state() -> Any:
    channel = import_module("langgraph.channels.delta").DeltaChannel
    from typing_extensions import TypedDict

    def extend(messages: list[Any], writes: Any) -> list[Any]:
        return operator.iadd(list(messages), [part for write in writes for part in write])

    # Not as a class: its annotations would be text, and the channel is known here only.
    return TypedDict("DeltaState", {"messages": Annotated[list, channel(extend)]})  # type: ignore[operator]


def official(directory: Path) -> AbstractContextManager[Any]:
    return import_module(_OFFICIAL).SqliteSaver.from_conn_string(str(directory / _FILE))


def official_async(directory: Path) -> AbstractAsyncContextManager[Any]:
    saver = import_module(f"{_OFFICIAL}.aio").AsyncSqliteSaver
    return saver.from_conn_string(str(directory / _FILE))


def ours(directory: Path) -> Any:
    return import_module(_OURS).HoldfastSaver.from_sqlite(directory / _FILE)


def ours_normal(directory: Path) -> Any:
    url = f"sqlite:///{directory / _FILE}?durability=normal"
    return import_module(_OURS).HoldfastSaver.open(url)


def ours_postgres(url: str) -> Any:
    return import_module(_OURS).HoldfastSaver.from_postgres(url)


@contextmanager
def official_postgres(url: str) -> Iterator[Any]:
    saver = import_module("langgraph.checkpoint.postgres").PostgresSaver
    with saver.from_conn_string(url) as opened:
        opened.setup()
        yield opened
