"""A plugin of Strands that journals tools one by one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from strands import Agent
from strands.hooks import AfterInvocationEvent, BeforeInvocationEvent
from strands.hooks.registry import HookOrder
from strands.middleware import ExecuteToolContext, ExecuteToolStage
from strands.plugins import Plugin
from strands.types.events import ToolResultEvent, TypedEvent

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.strands.keys import Place
from holdfast.core.conversation.frameworks.strands import answer_of, tool_result
from holdfast.errors import InvalidArgumentError, RunError

if TYPE_CHECKING:
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
        self._held: dict[int, str] = {}
        """The sessions that are held, by the ids of the agents in them."""

    def init_agent(self, agent: Agent) -> None:
        """Stand around the agent's tools, and at the beginning and the end of its invocations."""
        agent.add_middleware(ExecuteToolStage, self._execute)
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
        session_id = Place.of(f"session/{agent.session_id}/scopes").session_id
        tags = {"native_session_id": agent.session_id}
        await self._storage.runs.begin(
            session_id, self._effects, self._approval, tags, state={"entries": {}}
        )
        self._held[id(agent)] = session_id

    async def _end(self, event: AfterInvocationEvent) -> None:
        await self._let_go(event.agent)

    async def _let_go(self, agent: Agent) -> None:
        session_id = self._held.pop(id(agent), None)
        if session_id is not None:
            await self._storage.runs.end(session_id)

    async def _execute(
        self, context: ExecuteToolContext, next_fn: _Next
    ) -> AsyncGenerator[TypedEvent, None]:
        """Run a tool, recorded before and after; or give what it gave before."""
        opened = self._storage.runs.of(self._held.get(id(context.agent), ""))
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


def _given_again(call_id: str, output: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool that is not run again."""
    return {"toolUseId": call_id, **(output.get(_NATIVE) or tool_result(output))}


def _own(result: dict[str, Any]) -> dict[str, Any]:
    """Return a result without the id of its call."""
    return {name: value for name, value in result.items() if name != "toolUseId"}
