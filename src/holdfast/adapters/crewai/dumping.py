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
_CREW_CALLBACKS = ("before_kickoff_callbacks", "after_kickoff_callbacks")
_AGENT_FUNCTIONS = ("step_callback", "guardrail")
_TASK_FUNCTIONS = ("callback", "guardrail", "guardrails", "converter_cls")
_TOLD_BY = ("entity_type", "id", "role", "goal", "backstory", "llm")
_MODELS = ("llm", "function_calling_llm", "manager_llm", "planning_llm", "chat_llm")


def crew_state(crew: Crew, finished: Collection[int], ours: Callable[..., Any]) -> dict[str, Any]:
    """Return a crew as it stands: which tasks (by their place) are done, and with what output."""
    dump = _Dump(crew, finished, ours)
    entity = dump.crew()
    return {
        "crewai_version": crewai_version,
        "parent_id": None,
        "branch": "main",
        "entities": [without_secrets(entity)],
        "event_record": {"nodes": _events()},
        "live": dump.live,
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


class _Dump:
    """One writing down of a crew."""

    def __init__(self, crew: Crew, finished: Collection[int], ours: Callable[..., Any]) -> None:
        self.live: list[str] = []
        """What text does not hold, by where it is."""
        self._crew = crew
        self._finished = finished
        self._ours = ours
        self._agents: dict[int, dict[str, Any]] = {}
        self._tasks: dict[int, dict[str, Any]] = {}

    def crew(self) -> dict[str, Any]:
        crew = self._crew
        if crew.manager_agent is not None:
            self.live.append("manager_agent")  # its tools are made of the crew's agents
        agents = [self._agent(each, f"agents[{place}]") for place, each in enumerate(crew.agents)]
        tasks = [
            self._task(each, f"tasks[{place}]", self._output_of(place))
            for place, each in enumerate(crew.tasks)
        ]
        emptied = {
            **self._without_functions(crew, _CREW_FUNCTIONS, "crew"),
            **{name: self._without_callbacks(name) for name in _CREW_CALLBACKS},
        }
        own = {
            "agents": [],
            "tasks": [],
            "manager_agent": None,
            "checkpoint": None,
            "execution_context": None,
            "checkpoint_inputs": self._inputs(),
            "checkpoint_train": crew._train,
            "checkpoint_kickoff_event_id": crew._kickoff_event_id,
        }
        return {
            **self._fields(crew, {**emptied, **own}, "crew"),
            "agents": agents,
            "tasks": tasks,
            "manager_agent": self._agent(crew.manager_agent, "manager_agent"),
        }

    def _fields(self, owner: Any, changed: dict[str, Any], path: str) -> dict[str, Any]:
        """Return what text holds of a crew, an agent or a task; what it does not is named."""
        models = {name: vars(owner).get(name) for name in _MODELS}
        models = {name: model for name, model in models.items() if isinstance(model, BaseLLM)}
        copy = owner.model_copy(update={**changed, **dict.fromkeys(models)})
        try:
            written: dict[str, Any] = copy.model_dump(mode="json")
        except (PydanticSerializationError, ValueError):
            written = {}
            for name in type(copy).model_fields:
                try:
                    written |= copy.model_dump(mode="json", include={name})
                except (PydanticSerializationError, ValueError):
                    self.live.append(f"{path}.{name}")
        return written | {name: self._model(each, path) for name, each in models.items()}

    def _model(self, model: BaseLLM, path: str) -> dict[str, Any]:
        """Return a model as text has it; of some it has the name alone."""
        try:
            fields: dict[str, Any] = plain(model.model_dump())
        except (NotPlainError, PydanticSerializationError):
            self.live.append(f"the model of {path}")
            fields = {"llm_type": model.llm_type, "model": model.model}
        return fields

    def _inputs(self) -> Any:
        try:
            return None if self._crew._inputs is None else plain(self._crew._inputs)
        except NotPlainError as error:
            raise AdapterError(
                f"the inputs of crew {self._crew.name!r} hold a {error}, which cannot be "
                "checkpointed: give kickoff plain data"
            ) from error

    def _without_callbacks(self, name: str) -> list[Any]:
        if vars(self._crew).get(name):
            self.live.append(f"crew.{name}")
        return []

    def _without_functions(self, owner: Any, names: Collection[str], path: str) -> dict[str, None]:
        """Return the fields that hold functions, emptied: a name in a store is never called."""
        emptied: dict[str, None] = {}
        for name in names:
            value = vars(owner).get(name)
            if value is None or isinstance(value, str):  # a guardrail may be told in words
                continue
            if value is not self._ours:
                self.live.append(f"{path}.{name}")
            emptied[name] = None
        return emptied

    def _agent(self, agent: Any, path: str) -> dict[str, Any] | None:
        if agent is None:
            return None
        if id(agent) not in self._agents:
            emptied = self._without_functions(agent, _AGENT_FUNCTIONS, path)
            # Nothing goes on inside a task, so its executor is of no use to anybody.
            own: dict[str, Any] = {"agent_executor": None, "tools": [], "checkpoint": None}
            self._agents[id(agent)] = {
                **self._fields(agent, {**emptied, **own}, path),
                "tools": self._tools(agent.tools, f"agent {agent.role!r}"),
            }
        return self._agents[id(agent)]

    def _task(self, task: Any, path: str, output: Any) -> dict[str, Any]:
        if id(task) in self._tasks:
            return self._tasks[id(task)]
        own: dict[str, Any] = {
            **self._without_functions(task, _TASK_FUNCTIONS, path),
            "agent": None,
            "output": output,
            "tools": [],
            "checkpoint_original_description": task._original_description,
            "checkpoint_original_expected_output": task._original_expected_output,
        }
        context: dict[str, Any] = {}
        if isinstance(task.context, list):
            own["context"] = None
            tasks = [self._task(each, f"{path}.context", each.output) for each in task.context]
            context = {"context": tasks}
        written = {
            **self._fields(task, own, path),
            **context,
            "agent": self._agent_of(task, path),
            "tools": self._tools(task.tools, f"the task {task.name or task.description!r}"),
        }
        if output is not None and output.pydantic is not None:  # CrewAI writes an empty one
            written["output"]["pydantic"] = output.pydantic.model_dump(mode="json")
        self._tasks[id(task)] = written
        return written

    def _agent_of(self, task: Any, path: str) -> dict[str, Any] | None:
        """Return a task's agent; of one of the crew's own what CrewAI finds it by."""
        written = self._agent(task.agent, f"{path}.agent")
        if written is None or not any(task.agent is each for each in self._crew.agents):
            return written
        return {name: written[name] for name in _TOLD_BY if name in written}

    def _output_of(self, place: int) -> Any:
        """Return the output of a task of this run: not what an earlier kickoff left there."""
        task = self._crew.tasks[place]
        if place in self._finished:
            return task.output
        # A conditional task that was passed over has no output, and CrewAI would begin again there.
        if isinstance(task, ConditionalTask) and any(done > place for done in self._finished):
            return task.get_skipped_task_output()
        return None

    def _tools(self, tools: Any, owner: str) -> list[dict[str, Any]]:
        written = []
        for tool in tools or ():
            try:
                if isinstance(tool, Tool):
                    raise NotPlainError(tool.name)
                written.append(tool.model_dump(mode="json"))
            except (NotPlainError, PydanticSerializationError, ValueError):
                self.live.append(f"tool {tool.name!r} of {owner}")
        return written
