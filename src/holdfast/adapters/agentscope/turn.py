"""One reply of an agent: what is kept of it and when, and how one that was cut short goes on.

Its stages: ``begun`` (the prompt is there), ``asking`` (as the model is asked), ``answered`` (what
it said is there, its calls wait), ``waiting`` (for a person, or for who executes calls elsewhere)
and ``ended``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from copy import deepcopy
from typing import Any

from agentscope.agent import Agent
from agentscope.event import (
    ExternalExecutionResultEvent,
    ReplyStartEvent,
    RequireExternalExecutionEvent,
    RequireUserConfirmEvent,
    UserConfirmResultEvent,
    UserInterruptEvent,
)
from agentscope.message import AssistantMsg, Msg, ToolCallState, ToolResultBlock

from holdfast.adapters.agentscope import agent_states as states
from holdfast.adapters.agentscope.tool_calls import ToolCalls
from holdfast.adapters.journal import Effects
from holdfast.errors import AdapterError
from holdfast.session.async_run import AsyncRun

Next = Callable[..., AsyncGenerator[Any, None]]
_EVENTS = (UserConfirmResultEvent, ExternalExecutionResultEvent, UserInterruptEvent)


class Turn:
    """Carries out one reply on an open session."""

    def __init__(self, run: AsyncRun, agent: Agent, effects: Effects, known: Any) -> None:
        self._run, self._agent = run, agent
        self.known = known
        """The agent's state as it was kept or read last; None if it was not this agent's."""
        self._reply = states.reply_of(run.state)
        self._calls = ToolCalls(run, agent, effects)
        self._again: Any = None
        """The state in which the model was being asked, or had answered, when a reply was cut."""
        self._saving = asyncio.Lock()

    @property
    def _stage(self) -> str:
        return str(self._reply["stage"])

    @staticmethod
    def is_final(item: Any) -> bool:
        """Return whether an item is the message with which a reply ends."""
        return isinstance(item, Msg)

    # The reply

    async def reply(self, given: dict[str, Any], following: Next) -> AsyncGenerator[Any, None]:
        """Reply, or go on with the reply that was cut short."""
        self._take_up()
        inputs = given["inputs"]
        is_same = not inputs or self._is_prompt(inputs)
        if isinstance(inputs, _EVENTS) or self._stage == "ended":
            pass
        elif self._stage == "waiting":
            if is_same:
                for item in self._still_waiting():
                    yield item
                return
        elif is_same:
            self._again = deepcopy(self._agent.state)
            given = {**given, "inputs": None}
        else:
            self._leave()
        if self._again is None and not isinstance(inputs, _EVENTS):
            begun = {"prompt": states.digest_of(inputs), "calls_before": self._calls.count()}
            self._reply = {**begun, "stage": self._stage}
        try:
            async for item in following(**given):
                if isinstance(item, ReplyStartEvent):
                    await self._begun(item)
                yield item
        except BaseExceptionGroup:  # of tools that ran at once
            self._calls.check()
            raise
        self._calls.check()
        is_waiting = self._agent.state.has_awaiting_tool_calls(self._agent.name)
        self._set("waiting" if is_waiting else "ended")

    def _is_prompt(self, inputs: Any) -> bool:
        """Return whether a prompt is the one with which the last reply was begun."""
        known = self._reply.get("prompt")
        if known is None:  # begun in another framework
            return states.is_prompt(inputs, self._agent.state)
        return bool(states.digest_of(inputs) == known)

    def _take_up(self) -> None:
        """Have the agent stand where the session does."""
        agent = self._agent
        ours = states.kept_form(agent.state)
        if not self._run.resumed:
            self.known = ours
            return
        read = states.state_of(self._run.state, self._run.session_id)
        theirs = states.kept_form(read)
        if ours != theirs and theirs != self.known:
            if ours != self.known and not states.is_blank(agent.state):
                raise AdapterError(
                    f"agent {agent.name!r} has a state of its own, and session "
                    f"{self._run.session_id!r} has another: make the agent with "
                    "state=middleware.state(), or give it a session_id of its own"
                )
            states.put_into(agent.state, read)
        self.known = theirs
        if self._stage != "ended":
            states.take_over(agent.state, agent.name)

    def _leave(self) -> None:
        """End a reply that was cut short, as there is another prompt: its calls are answered."""
        context = self._agent.state.context
        if not context:
            return
        outputs: dict[str, ToolResultBlock] = {}
        for call in states.unanswered(self._agent.state):
            response = self._calls.recorded(call.id, self._reply)
            if response is not None:
                outputs[call.id] = ToolResultBlock(
                    id=call.id,
                    name=call.name,
                    output=response.content,
                    state=response.state,
                    metadata=response.metadata,
                )
        states.answer_calls(context[-1], outputs)

    def _still_waiting(self) -> list[Any]:
        """Return what was said when the reply began to wait."""
        state, name = self._agent.state, self._agent.name
        calls = state.get_awaiting_tool_calls(name)
        asked = [call for call in calls if call.state == ToolCallState.ASKING]
        sent = [call for call in calls if call.state == ToolCallState.SUBMITTED]
        said: list[Any] = []
        if asked:
            said.append(RequireUserConfirmEvent(reply_id=state.reply_id, tool_calls=asked))
        if sent:
            said.append(RequireExternalExecutionEvent(reply_id=state.reply_id, tool_calls=sent))
        waiting = "I'm waiting for your permission or the external execution to finish."
        return [*said, AssistantMsg(id=state.reply_id, name=name, content=waiting)]

    async def _begun(self, started: ReplyStartEvent) -> None:
        """Keep the prompt; or, where the reply was begun before, go on under its own id."""
        state = self._agent.state
        if self._again is None:
            await self._save("user prompt", "begun")
            return
        schema = state.reply_context.structured_schema
        state.reply_context = deepcopy(self._again.reply_context)
        if schema is not None:  # the class itself, of which only the schema was kept
            state.reply_context.structured_schema = schema
        started.reply_id = state.reply_id

    # The model

    async def reasoning(self, given: dict[str, Any], following: Next) -> AsyncGenerator[Any, None]:
        """Ask the model, or give what it said before the reply was cut short."""
        said = await self._asked_before()
        if said is not None:
            yield said
            return
        if self._has_news():
            await self._save("summary" if self._stage == "begun" else "tools", "asking")
        final = None
        async for item in following(**given):
            if isinstance(item, Msg):
                final = item
            yield item
        answer = None if final is None else final.model_dump(mode="json")
        await self._save("model", "answered", answer=answer)

    async def _asked_before(self) -> Msg | None:
        """Return the message with which the model ended the reply, if it did before the cut.

        Hints that the agent was given on the way here were given before, and are there already.
        """
        again, self._again = self._again, None
        answer = self._reply.get("answer") if self._stage == "answered" else None
        if again is None or (answer is None and self._stage != "asking"):
            return None
        self._agent.state.context = again.context
        if answer is None:
            return None
        message: Msg = Msg.model_validate(answer)
        return message

    def _has_news(self) -> bool:
        """Return whether there is more to keep than hints, which would be given again."""
        state = self._agent.state
        if self._stage == "begun":
            now = state.model_dump(mode="json", include={"summary"})
            return bool(now["summary"] != self.known["summary"])
        return bool(states.kept_form(state) != self.known)

    # Tools

    async def acting(self, given: dict[str, Any], following: Next) -> AsyncGenerator[Any, None]:
        """Run a tool, or give what it gave before."""
        async with self._saving:
            if self._stage == "waiting":  # a person has confirmed it: that is not asked again
                await self._save("confirmed", "answered")
        async for item in self._calls.call(given, following, self._reply):
            yield item

    # Keeping

    async def _save(self, name: str, stage: str, **more: Any) -> None:
        self._set(stage, **more)
        await self._run.checkpoint(name)

    def _set(self, stage: str, **more: Any) -> None:
        lasting = {key: self._reply.get(key) for key in ("prompt", "calls_before")}
        self.known = states.kept_form(self._agent.state)
        self._reply = {**lasting, "stage": stage, **more}
        self._run.state = {"agent": self.known, "reply": self._reply}
