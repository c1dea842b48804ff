"""A plugin of Strands that journals tools one by one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from strands import Agent
from strands.hooks import (
    AfterInvocationEvent,
    AgentInitializedEvent,
    BeforeInvocationEvent,
    MessageAddedEvent,
)
from strands.hooks.registry import HookOrder
from strands.middleware import ExecuteToolContext, ExecuteToolStage
from strands.plugins import Plugin
from strands.types.events import ToolResultEvent, TypedEvent

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.strands.errors import HoldfastStorageError
from holdfast.adapters.strands.going_on import check_decided, check_goes_on, fingerprint_in
from holdfast.adapters.strands.keys import Place
from holdfast.core.conversation.frameworks.strands import answer_of, tool_result
from holdfast.errors import HoldfastError, InvalidArgumentError, RunError

if TYPE_CHECKING:
    from holdfast.adapters.open_runs import OpenRun
    from holdfast.adapters.strands.storage import HoldfastStorage

_NATIVE = "tool_result"
_Next = Callable[[ExecuteToolContext], AsyncGenerator[TypedEvent, None]]


class HoldfastPlugin(Plugin):
    """Given to an agent whose session manager has the storage: ``Agent(plugins=[…])``.

    From the beginning of an invocation to its end it holds the session. Each tool is recorded
    before and after, by the id of its call.
    """

    name = "holdfast"

    def __init__(
        self, storage: HoldfastStorage, effects: Effects | None = None, *, approval: Any = None
    ) -> None:
        super().__init__()
        self._storage = storage
        self._effects = checked_effects(effects)
        self._approval = approval
        self._held: dict[int, OpenRun] = {}
        """The runs that hold sessions, by the ids of the agents in them."""
        self._seen: WeakKeyDictionary[Agent, str | None] = WeakKeyDictionary()
        """What each agent read or wrote last."""

    def init_agent(self, agent: Agent) -> None:
        """Stand around the agent's tools, and at the beginning and the end of its invocations."""
        agent.add_middleware(ExecuteToolStage, self._execute)
        agent.add_hook(self._made, AgentInitializedEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._before_saved, MessageAddedEvent, order=HookOrder.SDK_FIRST)
        agent.add_hook(self._saved, MessageAddedEvent, order=HookOrder.SDK_LAST)
        agent.add_hook(self._begin, BeforeInvocationEvent, order=HookOrder.SDK_FIRST)
        agent.add_hook(self._end, AfterInvocationEvent, order=HookOrder.SDK_LAST)

    async def _begin(self, event: BeforeInvocationEvent) -> None:
        agent = event.agent
        if agent._session_manager is None:
            raise InvalidArgumentError(
                "the plugin of Holdfast is for agents with a session: Agent(session_manager="
                "SnapshotSessionManager(session_id, storage=storage, save_latest_on='message'))"
            )
        await self._let_go(agent)  # an invocation that was cancelled says nothing of its end
        place = _place(agent)
        opened = await self._opened(agent, place)
        try:
            check_goes_on(agent.messages, self._seen.get(agent), opened.run.state, place)
        except HoldfastError:
            await self._storage.runs.end(place.session_id, asyncio.CancelledError())
            raise
        self._held[id(agent)] = opened

    async def _opened(self, agent: Agent, place: Place) -> OpenRun:
        tags = {"native_session_id": agent.session_id}
        return await self._storage.runs.begin(
            place.session_id, self._effects, self._approval, tags, state={"entries": {}}
        )

    def _made(self, event: AgentInitializedEvent) -> None:
        self._seen[event.agent] = self._storage.seen(_place(event.agent))

    async def _before_saved(self, event: MessageAddedEvent) -> None:
        """Look before a message is saved; one that is refused is taken back."""
        agent = event.agent
        if agent._session_manager is None:
            return
        before = [message for message in agent.messages if message is not event.message]
        held = self._held.get(id(agent))
        try:
            if held is None or held.problem is not None:
                await self._let_go(agent)  # what went wrong was told
                await self._check_outside(agent, before)
            elif held.journal.problem is not None:
                raise HoldfastStorageError(str(held.journal.problem)) from held.journal.problem
        except HoldfastError:
            agent.messages[:] = before
            raise

    async def _check_outside(self, agent: Agent, before: list[Any]) -> None:
        """Look whether an agent may add to its session outside of an invocation.

        Strands answers calls that were cut off before it begins one.
        """
        place, seen = _place(agent), self._seen.get(agent)
        if seen is None and not await self._storage.list(place.key):
            return  # there is no session yet
        opened = await self._opened(agent, place)
        try:
            check_goes_on(before, seen, opened.run.state, place)
            check_decided(opened.run.unknown_effects())
        finally:
            await self._storage.runs.end(place.session_id, asyncio.CancelledError())

    def _saved(self, event: MessageAddedEvent) -> None:
        seen = self._storage.seen(_place(event.agent))
        if id(event.agent) not in self._held and seen is not None:
            self._seen[event.agent] = seen

    async def _end(self, event: AfterInvocationEvent) -> None:
        await self._let_go(event.agent)

    async def _let_go(self, agent: Agent) -> None:
        held = self._held.pop(id(agent), None)
        if held is None:
            return
        place = _place(agent)
        self._seen[agent] = fingerprint_in(held.run.state, place)
        if self._storage.runs.of(place.session_id) is held:  # else another is at work there by now
            await self._storage.runs.end(place.session_id)

    async def _execute(
        self, context: ExecuteToolContext, next_fn: _Next
    ) -> AsyncGenerator[TypedEvent, None]:
        """Run a tool, recorded before and after; or give what it gave before."""
        opened = self._held.get(id(context.agent))
        if opened is None:
            async for event in next_fn(context):
                yield event
            return
        use = context.tool_use
        key = _key(context.agent, use["toolUseId"])
        begun = await opened.calls.begin(use["name"], key, use["input"])
        if begun.is_recorded:
            yield ToolResultEvent(_given_again(use["toolUseId"], begun.output))
            return
        if begun.arguments != use["input"]:
            context = context.replace(tool_use={**use, "input": begun.arguments})
        result = None
        try:
            async for event in next_fn(context):
                if isinstance(event, ToolResultEvent):
                    result = event.tool_result
                yield event
        except Exception as error:  # it asks people, and is run anew when they have answered
            await opened.calls.fail(key, RunError(f"{use['name']} stopped: {type(error).__name__}"))
            raise
        if result is None:
            await opened.calls.fail(key, RunError(f"{use['name']} stopped to ask"))
        else:
            await opened.calls.end(key, _recorded(result))


def _place(agent: Agent) -> Place:
    """Return where the latest snapshot of an agent is kept."""
    session_id = Place.of(f"session/{agent.session_id}/scopes").session_id
    return Place.of_latest(session_id, agent.agent_id)


def _key(agent: Agent, call_id: str) -> str:
    """Return what a call is journaled by: its id, and how often that was answered before.

    Some models give the same id again and again.
    """
    answers = sum(
        block["toolResult"].get("toolUseId") == call_id
        for message in agent.messages
        for block in message["content"]
        if "toolResult" in block
    )
    return f"{call_id}:{answers}" if answers else call_id


def _recorded(result: dict[str, Any]) -> dict[str, Any]:
    """Return what a tool gave as any framework reads it, and as Strands has it if that is more."""
    answer = answer_of(result)
    is_whole = tool_result(answer) == _own(result)
    return answer if is_whole else {**answer, _NATIVE: _own(result)}


def _given_again(call_id: str, output: Any) -> dict[str, Any]:
    """Return the result of a tool that is not run again: its own, or what a person said it gave."""
    if _is_recorded_answer(output):
        return {"toolUseId": call_id, **(output.get(_NATIVE) or tool_result(output))}
    is_text = isinstance(output, str)
    said = output if is_text else json.dumps(output, ensure_ascii=False, default=str)
    return {"toolUseId": call_id, "status": "success", "content": [{"text": said}]}


def _is_recorded_answer(output: Any) -> bool:
    is_answer = isinstance(output, dict) and output.get("type") == "tool_call_response"
    return is_answer and "response" in output


def _own(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the id of its call."""
    return {name: value for name, value in result.items() if name != "toolUseId"}
