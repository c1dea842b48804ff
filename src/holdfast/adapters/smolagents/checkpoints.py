"""The checkpoints of an agent, step by step."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable
from typing import Any

from smolagents.agent_types import handle_agent_output_types
from smolagents.agents import ActionOutput, MultiStepAgent
from smolagents.memory import ActionStep, FinalAnswerStep, MemoryStep, PlanningStep
from smolagents.utils import AgentError

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.adapters.smolagents.journaling import StepJournal
from holdfast.adapters.smolagents.memory import (
    ANSWER,
    checked,
    is_finished,
    last_task,
    load_steps,
    load_variables,
    state_of,
    steps_done,
)
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework, checked_name
from holdfast.session.run import Run


class Checkpoints(OnStore):
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

    def _let_go(self) -> None:
        self._kept.close()

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
                self._answer = self._asked = self._handled = None

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
        before = checked(run.state, self.session_id)
        is_same = bool(before) and task in (before.get("asked"), last_task(before["steps"]))
        if before:
            load_steps(agent, before)
        if is_same and is_finished(before["steps"]):
            return self._answer_again(agent, before)
        limit = max_steps or agent.max_steps
        if is_same:
            asked = last_task(before["steps"])
            steps = agent.run(asked, stream=True, reset=False, max_steps=limit)
            agent.memory.steps.pop()  # the task, which is there already
            load_variables(agent, before, self.session_id)
            done = steps_done(before["steps"])
            if done >= limit:
                with journal.of(agent):
                    return handle_agent_output_types(agent._handle_max_steps_reached(agent.task))
            _number_from(agent, done + 1)
            if before["steps"][-1]["type"] == "planning":  # the plan for this step is made
                self._planning_interval, agent.planning_interval = agent.planning_interval, None
        else:
            given = {"images": images, "additional_args": additional_args, "max_steps": limit}
            steps = agent.run(task, stream=True, reset=not before, **given)
            if before:
                load_variables(agent, before, self.session_id)
            run.state = self._state(agent, agent.memory.steps)
            run.checkpoint("task")
        with journal.of(agent):
            return self._last(steps, journal)

    def _last(self, steps: Iterable[Any], journal: StepJournal) -> Any:
        """Have all steps made, and return the answer."""
        output = None
        try:
            for each in steps:
                journal.check()
                if isinstance(each, ActionOutput) and each.is_final_answer:
                    self._answer = each.output
                if isinstance(each, FinalAnswerStep):
                    output = each.output
        except AgentError:
            journal.check()  # which smolagents may have taken for a failure of the model
            raise
        return output

    def _answer_again(self, agent: Any, before: dict[str, Any]) -> Any:
        load_variables(agent, before, self.session_id)
        if ANSWER in before.get("left_out", ()):
            raise AdapterError(
                f"session {self.session_id!r}: the task is done, but its answer was of a kind that "
                "cannot be kept; take another session_id to have it done again"
            )
        return handle_agent_output_types(agent.memory.steps[-1].action_output)

    def _state(self, agent: Any, steps: list[MemoryStep]) -> dict[str, Any]:
        return state_of(agent, steps, self._asked, self._answer, self._exclude)


def _is_whole(step: ActionStep | PlanningStep) -> bool:
    """Return whether a step came to its end: one whose model failed has said nothing."""
    if isinstance(step, PlanningStep):
        return True
    return step.model_output_message is not None or step.error is not None


def _number_from(agent: Any, first: int) -> None:
    """Have the next run of an agent count its steps from a number: smolagents begins with 1."""
    kind = type(agent)
    make: Any = type(kind)  # agents are of an abstract class, made by another than ``type``

    def begin(self: Any, _: int) -> None:
        self.__class__ = kind
        self.step_number = first

    number = property(lambda self: vars(self).get("step_number"), begin)
    agent.__class__ = make(kind.__name__, (kind,), {"step_number": number})
