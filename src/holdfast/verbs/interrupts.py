"""Open interrupts: what a LangGraph thread has asked and nobody has answered yet.

Read from the notes of its newest checkpoint, as plain data: LangGraph need not be installed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.core.raw import Raw, Sealed
from holdfast.model import CheckpointInfo, Framework
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Query
from holdfast.verbs import notes
from holdfast.verbs.read import restore
from holdfast.verbs.thread_names import thread_of

_ASKED = "__interrupt__"
_NOT_OUTPUT = frozenset({_ASKED, "__resume__", "__error__", "__error_source_node__"})
"""What a task writes that has not come to its end."""
_NO_TASK = "00000000-0000-0000-0000-000000000000"
_BY_NAME = "~__pregel_pull, "
_BY_SEND = "~__pregel_push, "
_SENT = "__pregel_tasks"
_NONE = object()


@dataclass(frozen=True, slots=True)
class OpenInterrupt:
    """A question that a graph stopped at, and waits for an answer to."""

    agent_id: str
    session_id: str
    thread_id: str
    checkpoint_id: str
    """The checkpoint it waits at."""
    node: str | None
    """The node that asked; None where that is encrypted."""
    interrupt_id: str | None
    """LangGraph's id of it; None where it is encrypted."""
    value: Any
    """What was asked: plain data, or a stand-in where it is encrypted or of an unknown class."""

    @property
    def resume(self) -> str:
        """How to answer it."""
        answer = "ANSWER" if self.interrupt_id is None else f"{{{self.interrupt_id!r}: ANSWER}}"
        return (
            f"graph.invoke(Command(resume={answer}), "
            f"{{'configurable': {{'thread_id': {self.thread_id!r}}}}})"
        )


def open_interrupts(
    engine: Engine, agent_id: str | None = None, session_id: str | None = None
) -> Plan[list[OpenInterrupt]]:
    """Return the questions that wait, of all threads or of one, the thread touched last first."""
    if session_id is not None:
        heads = yield from _heads_of(agent_id, session_id)
    else:
        heads = [session.head for session in (yield from steps.heads(agent_id))]
    threads = {head.checkpoint_id: head for head in heads if _is_thread(head)}
    if not threads:
        return []
    written: dict[str, list[Any]] = {}
    found = yield from notes.read(engine, list(threads), on_unknown="raw")
    for note, value in found:
        written.setdefault(note.scope, []).append(value)
    asked: list[OpenInterrupt] = []
    for checkpoint_id, head in threads.items():
        tasks = dict(_asking(written.get(checkpoint_id, ())))
        sent: Any = None
        if any(_sent_as(path) is not None for path, _ in tasks.values()):
            state = (yield from restore(engine, checkpoint_id, True, "raw")).execution_state
            sent = state["values"].get(_SENT) if _has_values(state) else None
        for path, value in tasks.values():
            asked += _asked(head, _node(path, sent), value)
    return asked


def _heads_of(agent_id: str | None, session_id: str) -> Plan[list[CheckpointInfo]]:
    """Return the newest checkpoint of the sessions of that name, one for each agent."""
    if agent_id is not None:
        return (yield from steps.query(Query(agent_id=agent_id, session_id=session_id, limit=1)))
    every = yield from steps.query(Query(session_id=session_id))
    return list({info.agent_id: info for info in reversed(every)}.values())


def _is_thread(head: CheckpointInfo) -> bool:
    """Return whether it is of a LangGraph thread; what its subgraphs ask is noted there too."""
    return head.framework is Framework.LANGGRAPH and not thread_of(head.session_id)[1]


def _has_values(state: Any) -> bool:
    return isinstance(state, dict) and isinstance(state.get("values"), dict)


def _asking(values: Iterable[Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    """Yield the tasks that wait for an answer: the path of each, and what it asked last."""
    asked: dict[str, tuple[Any, Any]] = {}
    done = set()
    for task_id, path, channel, value in _writes(values):
        if channel == _ASKED:
            asked[task_id] = path, value
        elif channel not in _NOT_OUTPUT:
            done.add(task_id)
    return ((task_id, each) for task_id, each in asked.items() if task_id not in done)


def _asked(head: CheckpointInfo, node: str | None, value: Any) -> Iterator[OpenInterrupt]:
    for each in value if isinstance(value, (list, tuple)) else [value]:
        question, interrupt_id = _question(each)
        yield OpenInterrupt(
            head.agent_id,
            head.session_id,
            thread_of(head.session_id)[0],  # a fork's metadata name the thread it was made of
            head.checkpoint_id,
            node,
            interrupt_id,
            question,
        )


def _writes(values: Iterable[Any]) -> Iterator[tuple[str, Any, str, Any]]:
    """Yield each write of a task; a note that is of another kind has none."""
    for value in values:
        if not isinstance(value, Mapping) or not isinstance(value.get("writes"), list):
            continue
        task_id = value.get("task_id")
        if not isinstance(task_id, str) or task_id == _NO_TASK:
            continue
        for row in value["writes"]:
            if isinstance(row, list) and len(row) == 4 and isinstance(row[1], str):
                yield task_id, value.get("task_path"), row[1], row[2]


def written_by_tasks(values: Iterable[Any], channel: str) -> list[Any]:
    """Return what tasks wrote to a channel that are over, while others of their step are not.

    ``values`` are those of the notes on a checkpoint.
    """
    return [value for _, _, written, value in _writes(values) if written == channel]


def _node(path: Any, sent: Any) -> str | None:
    """Return the node of a task: its path names it, or which of the things sent it is."""
    if isinstance(path, str) and path.startswith(_BY_NAME):
        return path.removeprefix(_BY_NAME).partition(", ")[0]
    index = _sent_as(path)
    if index is None or not isinstance(sent, list) or index >= len(sent):
        return None
    node = _field(sent[index], "node")
    return node if isinstance(node, str) else None


def _sent_as(path: Any) -> int | None:
    """Return which of the things sent (``Send``) led to a task; None where it runs otherwise."""
    if not isinstance(path, str) or not path.startswith(_BY_SEND):
        return None
    number = path.removeprefix(_BY_SEND).partition(", ")[0]
    return int(number) if number.isdecimal() and len(number) < 20 else None


def _question(interrupt: Any) -> tuple[Any, str | None]:
    """Return what an Interrupt asks, and its id, whether its class is known here or not."""
    value, interrupt_id = (_field(interrupt, name) for name in ("value", "id"))
    if isinstance(interrupt, Sealed) or value is _NONE:
        return interrupt, None
    return value, interrupt_id if isinstance(interrupt_id, str) else None


def _field(value: Any, name: str) -> Any:
    """Return a field of a value as it lies there; what its class makes of the name is not asked."""
    if isinstance(value, Raw):
        return value.get(name, _NONE)
    try:
        return object.__getattribute__(value, name)
    except AttributeError:
        return _NONE
