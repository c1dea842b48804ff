"""A crew as CrewAI's own checkpoint: the same JSON, made between two tasks and never in part.

What CrewAI writes by itself comes from a pool of threads while the crew works on, and fails over
every tool that ``@tool`` made. Here copies of the crew, its agents and tasks are written down, so
that what is running stays as it is; functions and tools that only the program has are named
under ``live`` and come from the program again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from crewai import __version__ as crewai_version
from crewai.crew import Crew
from crewai.events.event_bus import crewai_event_bus
from crewai.llms.base_llm import BaseLLM
from crewai.tasks.conditional_task import ConditionalTask
from crewai.tools.base_tool import Tool
from pydantic_core import PydanticSerializationError

from holdfast.adapters.crewai.plain import NotPlainError, plain, plain_fields, without_secrets
from holdfast.errors import AdapterError

_CREW_FUNCTIONS = ("step_callback", "task_callback")
_AGENT_FUNCTIONS = ("step_callback", "guardrail")
_TASK_FUNCTIONS = ("callback", "guardrail", "guardrails", "converter_cls")
_MODELS = ("llm", "function_calling_llm", "manager_llm", "planning_llm", "chat_llm")


def crew_state(crew: Crew, finished: Collection[int], ours: Callable[..., Any]) -> dict[str, Any]:
    """Return a crew as it stands: which tasks (by their place) are done, and with what output."""
    live: list[str] = []
    try:
        entity = _Dump(crew, finished, ours, live).entity()
    except PydanticSerializationError as error:
        raise AdapterError(
            f"crew {crew.name!r} cannot be checkpointed, a field of it cannot be written down: "
            f"{error}"
        ) from error
    return {
        "crewai_version": crewai_version,
        "parent_id": None,
        "branch": "main",
        "entities": [without_secrets(entity)],
        "event_record": {"nodes": _events()},
        "live": live,
    }


def _events() -> dict[str, Any]:
    """Return what has happened so far, as CrewAI records it, but for references to live objects."""
    state = crewai_event_bus.runtime_state
    if state is None:
        return {}
    return {
        node.event.event_id: {
            "event": without_secrets(plain_fields(node.event)),
            "edges": {kind: list(ids) for kind, ids in node.edges.items()},
        }
        for node in state.event_record.all_nodes()
    }


class _WrittenModel:
    """Stands where a model is, for CrewAI to write down."""

    def __init__(self, written: dict[str, Any]) -> None:
        self._written = written

    def model_dump(self) -> dict[str, Any]:
        return self._written


class _Dump:
    """One writing down of a crew."""

    def __init__(
        self, crew: Crew, finished: Collection[int], ours: Callable[..., Any], live: list[str]
    ) -> None:
        self._crew = crew
        self._finished = finished
        self._ours = ours
        self._live = live
        self._agents: dict[int, Any] = {}
        self._tasks: dict[int, Any] = {}

    def entity(self) -> dict[str, Any]:
        crew = self._crew
        for place, agent in enumerate(crew.agents):
            self._agent(agent, f"agents[{place}]")
        for place, task in enumerate(crew.tasks):
            self._task(task, f"tasks[{place}]", self._output_of(place))
        copy = crew.model_copy(
            update={
                **self._without_functions(crew, _CREW_FUNCTIONS, "crew"),
                **self._models(crew, "crew"),
                "agents": [self._agents[id(agent)] for agent in crew.agents],
                "tasks": [self._tasks[id(task)] for task in crew.tasks],
                "manager_agent": self._agent(crew.manager_agent, "manager_agent"),
                "before_kickoff_callbacks": self._callbacks("before_kickoff_callbacks"),
                "after_kickoff_callbacks": self._callbacks("after_kickoff_callbacks"),
                "checkpoint": None,
                "execution_context": None,
                "checkpoint_inputs": self._inputs(),
                "checkpoint_train": crew._train,
                "checkpoint_kickoff_event_id": crew._kickoff_event_id,
            }
        )
        entity: dict[str, Any] = copy.model_dump(mode="json")
        self._fill_in(entity)
        return entity

    def _inputs(self) -> Any:
        try:
            return None if self._crew._inputs is None else plain(self._crew._inputs)
        except NotPlainError as error:
            raise AdapterError(
                f"the inputs of crew {self._crew.name!r} hold a {error}, which cannot be "
                "checkpointed: give kickoff plain data"
            ) from error

    def _callbacks(self, name: str) -> list[Any]:
        if getattr(self._crew, name):
            self._live.append(f"crew.{name}")
        return []

    def _without_functions(self, owner: Any, names: Collection[str], path: str) -> dict[str, None]:
        """Return the fields that hold functions, emptied: a name in a store is never called."""
        emptied: dict[str, None] = {}
        for name in names:
            value = vars(owner).get(name)
            if value is None or isinstance(value, str):  # a guardrail may be told in words
                continue
            if value is not self._ours:
                self._live.append(f"{path}.{name}")
            emptied[name] = None
        return emptied

    def _models(self, owner: Any, path: str) -> dict[str, _WrittenModel]:
        """Return an owner's models as text has them; of some it has the name alone."""
        written = {}
        for name in _MODELS:
            model = vars(owner).get(name)
            if not isinstance(model, BaseLLM):
                continue
            try:
                fields = plain(model.model_dump())
            except (NotPlainError, PydanticSerializationError):
                self._live.append(f"{path}.{name}")
                fields = {"llm_type": model.llm_type, "model": model.model}
            written[name] = _WrittenModel(fields)
        return written

    def _agent(self, agent: Any, path: str) -> Any:
        if agent is None:
            return None
        if id(agent) not in self._agents:
            self._agents[id(agent)] = agent.model_copy(
                update={
                    **self._without_functions(agent, _AGENT_FUNCTIONS, path),
                    **self._models(agent, path),
                    "agent_executor": None,  # nothing goes on inside a task
                    "tools": [],
                    "checkpoint": None,
                }
            )
        return self._agents[id(agent)]

    def _task(self, task: Any, path: str, output: Any) -> Any:
        if id(task) not in self._tasks:
            context = task.context
            if isinstance(context, list):
                context = [self._task(each, f"{path}.context", each.output) for each in context]
            self._tasks[id(task)] = task.model_copy(
                update={
                    **self._without_functions(task, _TASK_FUNCTIONS, path),
                    "agent": self._agent(task.agent, f"{path}.agent"),
                    "context": context,
                    "output": output,
                    "tools": [],
                    "checkpoint_original_description": task._original_description,
                    "checkpoint_original_expected_output": task._original_expected_output,
                }
            )
        return self._tasks[id(task)]

    def _output_of(self, place: int) -> Any:
        """Return the output of a task of this run: not what an earlier kickoff left there."""
        task = self._crew.tasks[place]
        if place in self._finished:
            return task.output
        # A conditional task that was passed over has no output, and CrewAI would begin again there.
        if isinstance(task, ConditionalTask) and any(done > place for done in self._finished):
            return task.get_skipped_task_output()
        return None

    def _fill_in(self, entity: dict[str, Any]) -> None:
        """Put in what CrewAI cannot write down: tools, and outputs of the users' classes."""
        if self._crew.manager_agent is not None:
            self._live.append("manager_agent")  # its tools are made of the crew's agents
        for agent, written in zip(self._crew.agents, entity["agents"], strict=True):
            written["tools"] = self._tools(agent.tools, f"agent {agent.role!r}")
        for place, written in enumerate(entity["tasks"]):
            task = self._crew.tasks[place]
            written["tools"] = self._tools(task.tools, f"task {place + 1}")
            output = self._output_of(place)
            if output is not None and output.pydantic is not None:
                written["output"]["pydantic"] = output.pydantic.model_dump(mode="json")
            if task.agent is not None and not any(task.agent is each for each in self._crew.agents):
                written["agent"]["tools"] = self._tools(task.agent.tools, f"task {place + 1}")

    def _tools(self, tools: Any, owner: str) -> list[dict[str, Any]]:
        written = []
        for tool in tools or ():
            try:
                if isinstance(tool, Tool):
                    raise NotPlainError(tool.name)
                written.append(tool.model_dump(mode="json"))
            except (NotPlainError, PydanticSerializationError):
                self._live.append(f"tool {tool.name!r} of {owner}")
        return written
