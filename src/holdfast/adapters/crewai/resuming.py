"""What a session holds of a crew, put onto the crew that the program made."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from crewai.crew import Crew
from crewai.tasks.task_output import TaskOutput

from holdfast.errors import AdapterError

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][\w-]*)\}")
_AS_THEY_ARE = ("prompt_context", "used_tools", "tools_errors", "delegations", "retry_count")


def kept_crew(state: Any, session_id: str) -> dict[str, Any]:
    """Return the crew in a kept state; other things that CrewAI keeps are an error."""
    entities = state.get("entities") if isinstance(state, dict) else None
    for entity in entities if isinstance(entities, list) else ():
        if isinstance(entity, dict) and entity.get("entity_type") == "crew" and _is_whole(entity):
            found: dict[str, Any] = entity
            return found
    raise AdapterError(
        f"session {session_id!r} holds no crew of CrewAI: it was kept by something else "
        "(a flow, a conversation), or is damaged; use another session_id"
    )


def _is_whole(entity: dict[str, Any]) -> bool:
    """Return whether a crew has what is read of it here."""
    lists = (entity.get("tasks"), entity.get("agents"))
    return all(isinstance(each, list) and all(isinstance(x, dict) for x in each) for each in lists)


def finished_in(entity: dict[str, Any]) -> set[int]:
    """Return the places of the tasks that a kept crew has done."""
    return {place for place, task in enumerate(entity["tasks"]) if task.get("output") is not None}


def put_onto(crew: Crew, entity: dict[str, Any], session_id: str) -> set[int]:
    """Give a crew the outputs of what was done before; returns the places of those tasks."""
    finished = finished_in(entity)
    for place in sorted(finished):
        _check_same_task(crew, entity, place, session_id)
    for place, task in enumerate(crew.tasks):
        task.output = None
        if place in finished:
            try:
                _put_task(task, entity["tasks"][place])
            except (TypeError, ValueError) as error:  # pydantic's own are ValueErrors
                raise AdapterError(
                    f"session {session_id!r}: the output of task {place + 1} is damaged ({error}); "
                    "go back to an older checkpoint"
                ) from error
    inputs = entity.get("checkpoint_inputs")
    if inputs is not None:
        crew._inputs = inputs
        for task in crew.tasks:
            task.interpolate_inputs_and_add_conversation_history(inputs)
        for agent in crew.agents:
            agent.interpolate_inputs(inputs)
    watched = [each for each in crew.before_kickoff_callbacks if not isinstance(each, SameInputs)]
    names = _placeholders(crew, finished)
    crew.before_kickoff_callbacks = [*watched, SameInputs(crew, inputs, names, session_id)]
    # CrewAI begins at the first task without an output only where this is set.
    crew.checkpoint_kickoff_event_id = entity.get("checkpoint_kickoff_event_id") or "holdfast"
    return finished


class SameInputs:
    """Is called by the next kickoff, and refuses other inputs than finished tasks were given."""

    def __init__(self, crew: Crew, kept: Any, names: set[str], session_id: str) -> None:
        self._crew = crew
        self._kept = kept
        self._names = names
        self._session_id = session_id

    def __call__(self, inputs: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the inputs of the kickoff: those that are kept, if it is given none."""
        if not inputs:
            inputs = self._kept
        before = self._kept or {}
        for name in sorted(self._names):
            now = (inputs or {}).get(name)
            if str(now) != str(before.get(name)):
                raise AdapterError(
                    f"session {self._session_id!r}: a task that is done was given {name}="
                    f"{before.get(name)!r}, and kickoff is given {now!r}; go back to before that "
                    "task, or use another session_id"
                )
        self._crew.before_kickoff_callbacks.remove(self)  # it is the last, so none is skipped
        return inputs


def _placeholders(crew: Crew, finished: set[int]) -> set[str]:
    """Return the names of the inputs in the texts of finished tasks and their agents."""
    texts: list[str | None] = []
    for place in finished:
        task: Any = crew.tasks[place]
        for owner in (task, task.agent):
            for name in ("description", "expected_output", "role", "goal", "backstory"):
                now = getattr(owner, name, None)
                texts.append(getattr(owner, f"_original_{name}", None) or now)
    return {name for text in texts if text for name in _PLACEHOLDER.findall(text)}


def _check_same_task(crew: Crew, entity: dict[str, Any], place: int, session_id: str) -> None:
    kept = entity["tasks"][place]
    before = kept.get("checkpoint_original_description") or kept.get("description")
    if place < len(crew.tasks):
        task = crew.tasks[place]
        now = task._original_description or task.description
        if now == before:
            return
    else:
        now = None
    raise AdapterError(
        f"session {session_id!r} holds another crew: its task {place + 1}, which is done, was "
        f"{before!r}, and is {'none' if now is None else repr(now)} here; go back to before that "
        "task, or use another session_id"
    )


def _put_task(task: Any, kept: dict[str, Any]) -> None:
    """Give a task what it came to."""
    task.output = _output(task, kept)
    for name in _AS_THEY_ARE:
        setattr(task, name, kept.get(name, getattr(task, name)))
    for name in ("start_time", "end_time"):
        at = kept.get(name)
        setattr(task, name, None if at is None else datetime.fromisoformat(at))
    task.processed_by_agents = set(kept.get("processed_by_agents") or ())


def _output(task: Any, kept: dict[str, Any]) -> TaskOutput:
    """Return a task's output; that of a class comes back as one, if the task still names it."""
    fields = dict(kept["output"])
    made = fields.pop("pydantic", None)
    output = TaskOutput.model_validate(fields)
    if made is not None and task.output_pydantic is not None:
        output.pydantic = task.output_pydantic.model_validate(made)
    return output


def relink(crew: Crew) -> None:
    """Have tasks take their context from the crew's own tasks, not from copies made of them."""
    by_id = {task.id: task for task in crew.tasks}
    for task in crew.tasks:
        if isinstance(task.context, list):
            task.context = [by_id.get(each.id, each) for each in task.context]
