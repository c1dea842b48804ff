"""The checkpoints of an agent, step by step."""

from __future__ import annotations

import logging
import sys
from collections.abc import Collection
from typing import Any, Self

from smolagents.agent_types import handle_agent_output_types
from smolagents.agents import ActionOutput, MultiStepAgent
from smolagents.local_python_executor import LocalPythonExecutor
from smolagents.memory import ActionStep, FinalAnswerStep, MemoryStep, PlanningStep

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.adapters.smolagents.journaling import StepJournal
from holdfast.adapters.smolagents.messages import loaded
from holdfast.adapters.smolagents.steps import step_data
from holdfast.adapters.smolagents.variables import (
    kept_value,
    kept_values,
    loaded_value,
    put_back,
)
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError, SerializationError
from holdfast.model import Framework, checked_name
from holdfast.session.run import Run

_log = logging.getLogger("holdfast")
_ANSWER = "the answer"


class Checkpoints:
    """Keeps an agent after each of its steps, and goes on from there.

    ``checkpoints.run(agent, task)`` instead of ``agent.run(task)``: started again after a kill, it
    goes on. As one of ``step_callbacks`` it keeps the steps of whatever runs the agent.
    """

    def __init__(
        self,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = Framework.SMOLAGENTS.value,
        effects: Effects | None = None,
        exclude: Collection[str] = (),
        workspace: Any = None,
    ) -> None:
        self.session_id = checked_name("session_id", session_id)
        self._effects = checked_effects(effects)
        self._exclude = frozenset([exclude] if isinstance(exclude, str) else exclude)
        self._store = AdapterStore.given(client, url)
        self._agent_id = checked_name("agent_id", agent_id)
        self._workspace = workspace
        self._kept = KeptSessions(self._store, Framework.SMOLAGENTS, agent_id)
        self._run: Run | None = None
        self._journal: StepJournal | None = None
        self._asked: str | None = None
        self._agent: Any = None
        self._handled = sys.exc_info()[1]
        self._planning_interval: int | None = None
        self._answer: Any = None

    @property
    def client(self) -> SyncClient:
        """The client of the store, to look at what was kept."""
        return self._store.client

    def __call__(self, step: MemoryStep, agent: Any) -> None:
        """Keep the agent with a step that it has just made; smolagents calls this."""
        if not isinstance(step, (ActionStep, PlanningStep)) or not _is_whole(step):
            return
        if sys.exc_info()[1] is not self._handled:
            return  # the step was cut off, and is made again
        if self._run is not None and agent is not self._agent:
            return  # an agent that this one has asked: a part of its step
        if self._journal is not None:
            self._journal.check()
        # smolagents calls back before the step is among the others.
        steps = [each for each in agent.memory.steps if each is not step]
        state = self._state(agent, [*steps, step])
        name = f"step {step.step_number}" if isinstance(step, ActionStep) else "plan"
        if self._run is None:
            self._store.sync.run(self._kept.update(self.session_id, lambda _: state, name=name))
        else:
            self._run.state = state
            self._run.checkpoint(name)
        if isinstance(step, ActionStep) and self._planning_interval is not None:
            agent.planning_interval, self._planning_interval = self._planning_interval, None

    def run(
        self,
        agent: MultiStepAgent,
        task: str,
        *,
        max_steps: int | None = None,
        images: list[Any] | None = None,
        additional_args: dict[str, Any] | None = None,
    ) -> Any:
        """Run the agent on a task and return its answer, as ``agent.run`` does.

        Called again with the same task after a kill or an error it goes on where it stopped:
        steps that are kept are not made again, and of the step that was cut, answers of the model
        and of tools are taken from the journal. A task that is done gives its answer again; with
        another task the agent goes on with its memory as it stands.
        """
        if not isinstance(agent, MultiStepAgent):
            raise InvalidArgumentError(f"run is given an agent, not {type(agent).__name__}")
        if not isinstance(task, str) or not task.strip():
            raise InvalidArgumentError("run is given a task as text that is not empty")
        if self._run is not None:
            raise InvalidArgumentError(
                f"session {self.session_id!r} is running already; give each agent its own session"
            )
        session = self._store.client.session(
            self._agent_id,
            self.session_id,
            framework=Framework.SMOLAGENTS,
            workspace=self._workspace,
            on_divergence="live",  # the agent's code may do something else, and then does it
        )
        with session as run:
            self._run, self._agent, self._asked = run, agent, task
            self._journal = journal = StepJournal(run, self._effects)
            self._handled = sys.exc_info()[1]
            planning_interval = agent.planning_interval
            added = self._listen(agent)
            try:
                return self._go_on(run, journal, agent, task, max_steps, images, additional_args)
            finally:
                agent.planning_interval = planning_interval
                for callbacks in added:
                    callbacks.remove(self)
                self._run = self._journal = self._agent = self._planning_interval = None
                self._answer = None
                self._handled = None

    def _listen(self, agent: Any) -> list[list[Any]]:
        """Be called at every step, and return where that had to be arranged."""
        registered = agent.step_callbacks._callbacks
        added = []
        for kind in (ActionStep, PlanningStep):
            if self not in registered.get(kind, ()):
                agent.step_callbacks.register(kind, self)
                added.append(registered[kind])
        return added

    def _go_on(
        self,
        run: Run,
        journal: StepJournal,
        agent: Any,
        task: str,
        max_steps: int | None,
        images: list[Any] | None,
        additional_args: dict[str, Any] | None,
    ) -> Any:
        before = _checked(run.state, self.session_id)
        is_same = bool(before) and task in (before.get("asked"), _last_task(before["steps"]))
        if before:
            self._load(agent, before)
        if is_same and _is_finished(before["steps"]):
            self._load_variables(agent, before)
            if _ANSWER in before.get("left_out", ()):
                raise AdapterError(
                    f"session {self.session_id!r}: the task is done, but its answer was of a kind "
                    "that cannot be kept; take another session_id to have it done again"
                )
            return handle_agent_output_types(agent.memory.steps[-1].action_output)
        limit = max_steps or agent.max_steps
        if is_same:
            asked = _last_task(before["steps"])
            steps = agent.run(asked, stream=True, reset=False, max_steps=limit)
            agent.memory.steps.pop()  # the task, which is there already
            done = _steps_done(before["steps"])
            if done >= limit:
                with journal.of(agent):
                    return handle_agent_output_types(agent._handle_max_steps_reached(agent.task))
            _number_from(agent, done + 1)
            if before["steps"][-1]["type"] == "planning":  # the plan for this step is made
                self._planning_interval, agent.planning_interval = agent.planning_interval, None
        else:
            steps = agent.run(
                task,
                stream=True,
                reset=not before,
                images=images,
                additional_args=additional_args,
                max_steps=limit,
            )
            run.state = self._state(agent, agent.memory.steps)
            run.checkpoint("task")
        if before:
            self._load_variables(agent, before)
        output = None
        with journal.of(agent):
            for each in steps:
                journal.check()
                if isinstance(each, ActionOutput) and each.is_final_answer:
                    self._answer = each.output
                if isinstance(each, FinalAnswerStep):
                    output = each.output
        return output

    def _state(self, agent: Any, steps: list[MemoryStep]) -> dict[str, Any]:
        values, left_out = kept_values(agent.state, "$.state", self._exclude)
        executor = getattr(agent, "python_executor", None)
        variables: dict[str, Any] = {}
        if isinstance(executor, LocalPythonExecutor):
            variables, more = kept_values(executor.state, "$.variables", self._exclude)
            left_out += [*more, *executor.custom_tools]
        elif executor is not None:
            left_out.append(f"all variables of {type(executor).__name__}, which are elsewhere")
        written = [step_data(step, f"$.steps[{place}]") for place, step in enumerate(steps)]
        if written[-1].get("is_final_answer") and written[-1]["output"] is None:
            written[-1]["output"] = self._answer  # agents that call tools do not note it
        for place, step in enumerate(written):
            if "output" in step:
                try:
                    step["output"] = kept_value(step["output"], f"$.steps[{place}].output")
                except SerializationError:  # its observations say what the model was told of it
                    step["output"] = None
                    left_out.append(
                        _ANSWER if step["is_final_answer"] else f"$.steps[{place}].output"
                    )
        return {
            "system_prompt": agent.memory.system_prompt.system_prompt,
            "steps": written,
            "asked": self._asked,
            "state": values,
            "variables": {name: variables[name] for name in variables if name not in values},
            "left_out": sorted(set(left_out)),
        }

    def _load(self, agent: Any, before: dict[str, Any]) -> None:
        steps = loaded(before["steps"])
        for place, step in enumerate(steps):
            if isinstance(step, ActionStep):
                step.action_output = loaded_value(step.action_output, f"$.steps[{place}].output")
        agent.memory.steps = steps
        for name, value in before.get("state", {}).items():
            agent.state[name] = loaded_value(value, f"$.state.{name}")

    def _load_variables(self, agent: Any, before: dict[str, Any]) -> None:
        executor = getattr(agent, "python_executor", None)
        if isinstance(executor, LocalPythonExecutor):
            put_back(before.get("variables", {}), executor, "$.variables")
        if before.get("left_out"):
            _log.warning(
                "session %r: not kept, and gone for the agent's code: %s",
                self.session_id,
                ", ".join(before["left_out"]),
            )

    def close(self) -> None:
        """Close the store, if it was opened for this."""
        self._kept.close()
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _is_whole(step: ActionStep | PlanningStep) -> bool:
    """Return whether a step came to its end: one whose model failed has said nothing."""
    if isinstance(step, PlanningStep):
        return True
    return step.model_output_message is not None or step.error is not None


def _checked(state: Any, session_id: str) -> dict[str, Any]:
    """Return the kept state of an agent; an empty one if there is none yet."""
    if state == {}:
        return {}
    if isinstance(state, dict) and isinstance(state.get("steps"), list):
        found: dict[str, Any] = state
        for place, step in enumerate(found["steps"]):
            if not isinstance(step, dict):
                raise AdapterError(
                    f"session {session_id!r}: $.steps[{place}] is no step of smolagents; go back "
                    "to an older checkpoint"
                )
        return found
    raise AdapterError(
        f"session {session_id!r} holds no steps of smolagents: it was kept by something else, or "
        "is damaged; use another session_id"
    )


def _last_task(steps: list[dict[str, Any]]) -> str | None:
    return next((step.get("task") for step in reversed(steps) if step.get("type") == "task"), None)


def _steps_done(steps: list[dict[str, Any]]) -> int:
    """Return how many steps were made on the newest task."""
    for step in reversed(steps):
        if step.get("type") == "action":
            return int(step["step_number"])
        if step.get("type") == "task":
            break
    return 0


def _is_finished(steps: list[dict[str, Any]]) -> bool:
    last = steps[-1] if steps else {}
    error = last.get("error") or {}
    return bool(last.get("is_final_answer")) or error.get("type") == "AgentMaxStepsError"


def _number_from(agent: Any, first: int) -> None:
    """Have the next run of an agent count its steps from a number: smolagents begins with 1."""
    kind = type(agent)
    make: Any = type(kind)  # agents are of an abstract class, made by another than ``type``

    def begin(self: Any, _: int) -> None:
        self.__class__ = kind
        self.step_number = first

    number = property(lambda self: vars(self).get("step_number"), begin)
    agent.__class__ = make(kind.__name__, (kind,), {"step_number": number})
