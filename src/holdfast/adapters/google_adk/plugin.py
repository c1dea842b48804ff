"""A plugin of ADK that makes resume exact: tools are journaled, and a prompt is there once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.adk.agents.invocation_context import InvocationContext
from google.adk.agents.llm_agent import LlmAgent
from google.adk.events.event_actions import EventActions
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from holdfast.adapters.google_adk import records, unfinished
from holdfast.adapters.held_calls import HeldCalls
from holdfast.adapters.journal import Effects, checked_effects
from holdfast.errors import ApprovalDeniedError, InvalidArgumentError

if TYPE_CHECKING:
    from holdfast.adapters.google_adk.service import HoldfastSessionService


class HoldfastPlugin(BasePlugin):
    """Given to an app whose runner has the session service: ``App(plugins=[service.plugin()])``.

    One without a service, ``HoldfastPlugin()``, works with whichever of ours the runner has.
    From the beginning of an invocation to its end it holds the session. Each tool is recorded
    before and after, by the id of its call.
    """

    def __init__(
        self,
        service: HoldfastSessionService | None = None,
        effects: Effects | None = None,
        *,
        approval: Any = None,
        name: str = "holdfast",
    ) -> None:
        super().__init__(name=name)
        self._service = service
        self._effects = checked_effects(effects)
        self._approval = approval
        self._held: dict[str, tuple[HoldfastSessionService, str]] = {}
        """The sessions that are held, and who keeps them, by the ids of invocations."""
        self._gone_on: set[str] = set()
        """Invocations that were cut off before."""

    async def on_user_message_callback(
        self, *, invocation_context: InvocationContext, user_message: types.Content
    ) -> types.Content | None:
        """Go on with the invocation that this very message began, if it was cut off."""
        service = self._service_of(invocation_context)
        if service is None:
            return None
        record = await service.record_of(invocation_context.session)
        cut_off = _cut_off(invocation_context, user_message)
        if cut_off is not None:
            invocation_context.invocation_id = cut_off
            invocation_context.populate_invocation_agent_states()
        await self._begin(invocation_context, service, record)
        if cut_off is not None:
            service.resumed.expect(record, cut_off, user_message)
            self._gone_on.add(cut_off)
        return None

    async def before_run_callback(
        self, *, invocation_context: InvocationContext
    ) -> types.Content | None:
        """Hold the session, where no message was given: ``run_async(invocation_id=…)``."""
        service = self._service_of(invocation_context)
        if service is not None:
            record = await service.record_of(invocation_context.session)
            if service.runs.of(record) is None:
                await self._begin(invocation_context, service, record)
            if invocation_context.invocation_id in self._gone_on:
                # By the last event alone ADK would go on with one of several agents.
                root = invocation_context.agent.root_agent
                if root.name in invocation_context.end_of_agents:
                    invocation_context.agent = root
        return None

    async def before_tool_callback(
        self, *, tool: BaseTool, tool_args: dict[str, Any], tool_context: ToolContext
    ) -> dict[str, Any] | None:
        """Record that a tool begins; or answer with what it gave before."""
        calls, key = self._calls(tool_context), _key(tool_context)
        if calls is None or not key:
            return None
        try:
            begun = await calls.begin(tool.name, key, dict(tool_args))
        except ApprovalDeniedError as denied:
            return {"error": str(denied)}
        if begun.is_recorded:
            given: dict[str, Any] = _given_again(tool, tool_context, begun.output)
            return given
        if begun.arguments != tool_args:
            tool_args.clear()
            tool_args.update(begun.arguments)
        return None

    async def after_tool_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        result: dict[str, Any],
    ) -> dict[str, Any] | None:
        """Record what a tool gave."""
        calls = self._calls(tool_context)
        if calls is not None:
            await calls.end(_key(tool_context), _recorded(result, tool_context))
        return None

    async def on_tool_error_callback(
        self,
        *,
        tool: BaseTool,
        tool_args: dict[str, Any],
        tool_context: ToolContext,
        error: Exception,
    ) -> dict[str, Any] | None:
        """Record what a tool raised."""
        calls = self._calls(tool_context)
        if calls is not None:
            await calls.fail(_key(tool_context), error)
        return None

    async def after_run_callback(self, *, invocation_context: InvocationContext) -> None:
        """Let go of the session at the end of an invocation."""
        await self._let_go(invocation_context.invocation_id, None)

    async def on_run_error_callback(
        self, *, invocation_context: InvocationContext, error: Exception
    ) -> None:
        """Let go of the session when an invocation failed."""
        await self._let_go(invocation_context.invocation_id, error)

    async def close(self) -> None:
        """Let go of sessions whose invocations were cancelled."""
        for invocation_id in list(self._held):
            await self._let_go(invocation_id, None)

    def _calls(self, context: ToolContext) -> HeldCalls | None:
        """Return the calls that are under way beside one; None if they are not journaled."""
        service, record = self._held.get(context.invocation_id, (None, ""))
        opened = None if service is None else service.runs.of(record)
        return None if opened is None else opened.calls

    def _service_of(self, context: InvocationContext) -> HoldfastSessionService | None:
        """Return who keeps an invocation; None for those inside of tools, which nobody keeps."""
        from holdfast.adapters.google_adk.service import HoldfastSessionService

        service = context.session_service
        if not isinstance(service, HoldfastSessionService):
            return None
        return service if self._service in (None, service) else None

    async def _begin(
        self, context: InvocationContext, service: HoldfastSessionService, record: str
    ) -> None:
        if not context.is_resumable:
            raise InvalidArgumentError(
                "the plugin of Holdfast needs an app that ADK resumes: App(…, "
                "resumability_config=ResumabilityConfig(is_resumable=True))"
            )
        for invocation_id, held in list(self._held.items()):
            if held == (
                service,
                record,
            ):  # an invocation that was cancelled says nothing of its end
                await self._let_go(invocation_id, None)
        tags = {**records.tags_of(context.session), "invocation_id": context.invocation_id}
        await service.runs.begin(record, self._effects, self._approval, tags)
        self._held[context.invocation_id] = service, record

    async def _let_go(self, invocation_id: str, error: Exception | None) -> None:
        service, record = self._held.pop(invocation_id, (None, ""))
        self._gone_on.discard(invocation_id)
        if service is not None:
            service.resumed.forget(record)
            await service.runs.end(record, error)


def _cut_off(context: InvocationContext, message: types.Content) -> str | None:
    """Return the invocation that a message began and that did not come to its end."""
    agent = context.agent
    if agent is None:  # a workflow, of which ADK takes a node that was cut off for ended
        return None
    if any(part.function_response for part in message.parts or []):
        return None  # it says itself what it goes on with
    root = agent.root_agent
    last = None if isinstance(root, LlmAgent) else root.name
    return unfinished.invocation(context.session.events, message, root=last)


def _key(context: ToolContext) -> str:
    """Return what a call is journaled by: its id.

    One that was answered already, by a question to people, is made a second time under its id.
    """
    call_id = context.function_call_id
    if not call_id:
        return ""
    answers = sum(
        response.id == call_id
        for event in context.session.events
        for response in event.get_function_responses()
    )
    return f"{call_id}:{answers}" if answers else call_id


_ANSWER = "tool_call_response"


def _recorded(result: Any, context: ToolContext) -> Any:
    """Return what a tool gave, with what it did beside that: state, artifacts, transfer…"""
    actions = context.actions.model_dump(mode="json", exclude_none=True, exclude_defaults=True)
    actions = {name: value for name, value in actions.items() if value}
    if not actions and not (isinstance(result, dict) and result.get("type") == _ANSWER):
        return result
    return {"type": _ANSWER, "response": result, "actions": actions}


def _given_again(tool: BaseTool, context: ToolContext, output: Any) -> Any:
    """Return what a tool gave, and do to its event what it did, without running it."""
    result = output
    if isinstance(output, dict) and output.get("type") == _ANSWER:
        result = output["response"]
        actions = EventActions.model_validate(output["actions"])
        context.state.update(actions.state_delta)
        for name in actions.model_fields_set - {"state_delta"}:
            setattr(context.actions, name, getattr(actions, name))
    if result is not None:
        return result
    # None would have ADK run the tool; nothing at all is said of one that answers later.
    return {} if tool.is_long_running else {"result": None}
