"""One run of an agent: what was recorded of it is given again, what is new is kept.

The agent begins each time with the state and the task that the run began with. As long as there
are recorded answers of its model and results of its tools it is given those, and so comes to where
it was killed. Of agents that are no AssistantAgent only the beginning is known, and what they say
after their tools.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import HandoffMessage, MessageFactory, ToolCallExecutionEvent
from autogen_core.models import CreateResult

from holdfast.adapters.autogen.recording import RecordedModel, journaled, loaded_result
from holdfast.adapters.autogen.states import (
    answered,
    give,
    instructions,
    messages_in,
    plain,
    result,
    state_in,
    with_messages,
)
from holdfast.adapters.journal import Effects, ToolJournal
from holdfast.core.conversation.settling import INTERRUPTED
from holdfast.errors import AdapterError, InvalidArgumentError

if TYPE_CHECKING:
    from holdfast.session.async_run import AsyncRun

_CHANGING = ("id", "created_at", "models_usage", "metadata")
"""Of a task, what is another each time."""


class AgentTurn:
    """A run of an agent in a session, from its task to its answer."""

    def __init__(self, run: AsyncRun, agent: Any, effects: Effects) -> None:
        self._run = run
        self._agent = agent
        self._effects = effects
        self._journal = ToolJournal(run, effects)
        self._given = 0
        """How many recorded answers of the model were given again."""
        self._calls: Counter[str] = Counter()
        """How often each id was given to a call in the session."""
        self._without_id = 0
        """How many calls of the last answer came without an id."""

    @property
    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._run.state
        return state

    @property
    def _answers(self) -> list[Any]:
        answers: list[Any] = self._state["turn"]["answers"]
        return answers

    async def events(
        self, task: Sequence[Any], cancellation_token: Any
    ) -> AsyncGenerator[Any, None]:
        """Run the agent, and give what happens; the TaskResult comes last."""
        await self._check_effects()
        messages = await self._begin(task)
        with self._recorded():
            events = self._agent.run_stream(
                task=messages or None, cancellation_token=cancellation_token
            )
            async for event in events:
                self._journal.check()
                if not self._is_recorded and isinstance(event, ToolCallExecutionEvent):
                    await self._keep_whole()
                yield event

    async def end(self) -> None:
        """Keep how the run ended."""
        self._journal.check()
        own = plain(await self._agent.save_state())
        self._run.state = {"state": own, "system": instructions(self._agent)}

    # Its beginning

    @property
    def _is_recorded(self) -> bool:
        return isinstance(self._agent, AssistantAgent)

    async def _check_effects(self) -> None:
        """Refuse effects of tools that the agent does not have."""
        if not self._effects or not self._is_recorded:
            return
        benches = self._agent._workbench
        names = {tool["name"] for bench in benches for tool in await bench.list_tools()}
        unknown = sorted(set(self._effects) - names)
        if unknown:
            raise InvalidArgumentError(
                f"effects names {unknown[0]!r}, which is no tool of agent {self._agent.name!r}: "
                f"its tools are {', '.join(sorted(names)) or 'none'}"
            )

    async def _begin(self, task: Sequence[Any]) -> Sequence[Any]:
        """Begin with this task, or go on where a run with it was cut off; returns its messages."""
        state = self._state
        if not state:
            state["state"] = plain(await self._agent.save_state())
        state_in(state, self._run.session_id)
        turn = state.get("turn")
        if turn is not None and (not task or _same(task, turn["task"])):
            await self._load(turn["begin"])
            self._count(turn["begin"])
            if turn.get("is_taken"):
                return []
            return task or self._task_of(turn)
        if turn is not None:
            self._leave(turn)
        await self._load(state["state"])
        self._count(state["state"])
        begin = state["state"]
        state["turn"] = {
            "task": [plain(each.dump()) for each in task],
            "begin": begin,
            "answers": [],
        }
        state["state"] = with_messages(begin, _model_messages(task))
        state["system"] = instructions(self._agent)
        await self._run.checkpoint("user prompt")
        return task

    def _task_of(self, turn: Mapping[str, Any]) -> list[Any]:
        """Return the task that a run began with."""
        try:
            return [MessageFactory().create(each) for each in turn["task"]]
        except ValueError as error:
            raise AdapterError(
                f"the task of session {self._run.session_id!r} holds a message of your own type "
                f"({error}): give the same task again"
            ) from error

    async def _load(self, state: Mapping[str, Any]) -> None:
        await give(self._agent, state, self._run.session_id)

    def _leave(self, turn: Mapping[str, Any]) -> None:
        """Leave a run that did not end, since another task is given: every call gets its answer."""
        state = self._state
        state.pop("turn")
        self._count(turn["begin"])
        for answer in turn["answers"]:
            self._count_calls(answer["content"])
        state["state"] = answered(state["state"], self._result_of)
        self._calls.clear()

    def _result_of(self, call: Mapping[str, Any]) -> dict[str, Any]:
        key = self._key(call["id"])
        done = [each for each in self._run.effects if (each.key, each.status) == (key, "done")]
        if not done:
            return result(call, INTERRUPTED, is_error=True)
        known = loaded_result(call["name"], done[-1].output)
        return result(call, known.to_text(), is_error=known.is_error)

    # The model and the tools

    @contextmanager
    def _recorded(self) -> Iterator[None]:
        """Have the agent see a model and tools that are recorded, while it runs."""
        if not self._is_recorded:
            yield
            return
        agent = self._agent
        model, benches = agent._model_client, agent._workbench
        agent._model_client = RecordedModel(model, self._next_answer, self._answered)
        agent._workbench = [journaled(each, self._journal, self._key) for each in benches]
        try:
            yield
        finally:
            agent._model_client, agent._workbench = model, benches

    async def _next_answer(self) -> CreateResult | None:
        self._journal.check()
        if self._given < len(self._answers):
            found = CreateResult.model_validate(self._answers[self._given])
            self._given += 1
            self._count_calls(found.content)
            return found
        if self._answers:  # tools have run since the last one
            state = self._state
            state["state"] = plain(await self._agent.save_state())
            await self._run.checkpoint("tools")
        return None

    async def _answered(self, answer: CreateResult) -> None:
        """Keep an answer of the model, before any tool runs."""
        kept = answer.model_dump(mode="json")
        message = {
            "content": kept["content"],
            "thought": kept["thought"],
            "source": self._agent.name,
            "type": "AssistantMessage",
        }
        state = self._state
        state["turn"] = {**state["turn"], "answers": [*self._answers, kept]}
        state["state"] = with_messages(plain(await self._agent.save_state()), [message])
        self._given += 1
        self._count_calls(answer.content)
        await self._run.checkpoint("model")

    def _count(self, state: Mapping[str, Any]) -> None:
        for message in messages_in(state):
            if message.get("type") == "AssistantMessage":
                self._count_calls(message.get("content"))

    def _count_calls(self, content: Any) -> None:
        self._without_id = 0
        for call in content if isinstance(content, list) else []:
            own_id = call["id"] if isinstance(call, Mapping) else call.id
            self._calls[own_id] += 1

    def _key(self, call_id: str | None) -> str:
        """Return what a call is journaled by: its id, numbered where a model gives ids again."""
        if not call_id:  # some models give none
            self._without_id += 1
            return f"answer {self._given}, call {self._without_id}"
        again = self._calls[call_id] - 1
        return call_id if again < 1 else f"{call_id}#{again}"

    async def _keep_whole(self) -> None:
        """Keep an agent of one's own after its tools: it goes on from there without the task."""
        own = plain(await self._agent.save_state())
        self._state["state"] = own
        self._state["turn"] = {**self._state["turn"], "begin": own, "is_taken": True}
        await self._run.checkpoint("tools")


def _model_messages(task: Sequence[Any]) -> list[Any]:
    """Return what a task adds to what the model of an assistant sees."""
    found = []
    for message in task:
        if isinstance(message, HandoffMessage):
            found += [each.model_dump(mode="json") for each in message.context]
        found.append(message.to_model_message().model_dump(mode="json"))
    return found


def _same(task: Sequence[Any], kept: Sequence[Mapping[str, Any]]) -> bool:
    return [_said(plain(each.dump())) for each in task] == [_said(each) for each in kept]


def _said(message: Mapping[str, Any]) -> str:
    own = {name: value for name, value in message.items() if name not in _CHANGING}
    return json.dumps(own, sort_keys=True)
