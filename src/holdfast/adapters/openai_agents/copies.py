"""Copies of the user's agents whose models and tools are kept; the agents stay as they are."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Awaitable, Callable
from typing import Any

from agents import Agent, FunctionTool, Handoff, Model
from agents.lifecycle import AgentHooksBase, RunHooksBase

from holdfast.adapters.openai_agents.models import AnswerLog, KeptModel

ToolCaller = Callable[
    [FunctionTool, Any, str, Callable[[Any, str], Awaitable[Any]]], Awaitable[Any]
]
"""Called with a tool, its context, its arguments and what runs it."""
HandoffCaller = Callable[[Handoff, str, Callable[[], Awaitable[Any]]], Awaitable[Any]]
_ORIGINAL = "_holdfast_original"


def original(agent: Any) -> Any:
    """Return the user's agent of a copy; any other as it is."""
    return getattr(agent, "__dict__", {}).get(_ORIGINAL, agent)


class Copies:
    """One copy of every agent that a run may come to."""

    def __init__(
        self, log: AnswerLog, call_tool: ToolCaller | None, call_handoff: HandoffCaller | None
    ) -> None:
        self._log = log
        self._call_tool = call_tool
        self._call_handoff = call_handoff
        self._copies: dict[int, Any] = {}
        self._tools: dict[int, tuple[FunctionTool, FunctionTool]] = {}

    def of(self, agent: Any) -> Any:
        """Return the copy of an agent, and with it those of all that it may hand over to."""
        agent = original(agent)
        if not isinstance(agent, Agent):
            return agent
        known = self._copies.get(id(agent))
        if known is not None:
            return known
        made = copy.copy(agent)
        self._copies[id(agent)] = made  # before its handoffs, which may lead back to it
        setattr(made, _ORIGINAL, agent)
        if isinstance(agent.model, Model):
            made.model = KeptModel(agent.model, self._log)
        if agent.hooks is not None:
            made.hooks = _forwarding(agent.hooks, AgentHooksBase)
        made.handoffs = [self._handoff(each) for each in agent.handoffs]
        made.__class__ = self._class_of(type(agent))
        return made

    def _class_of(self, kind: Any) -> type:
        """Return a class of copies: asked for tools or instructions, the agent itself answers.

        Copies that the SDK makes of a copy, for a sandbox, are of the class too.
        """

        async def get_all_tools(this: Any, context: Any) -> list[Any]:
            tools = await kind.get_all_tools(original(this), context)
            return tools if self._call_tool is None else [self._tool(tool) for tool in tools]

        async def get_system_prompt(this: Any, context: Any) -> Any:
            return await kind.get_system_prompt(original(this), context)

        async def get_prompt(this: Any, context: Any) -> Any:
            return await kind.get_prompt(original(this), context)

        own = {each.__name__: each for each in (get_all_tools, get_system_prompt, get_prompt)}
        named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
        return type(kind.__name__, (kind,), own | named)

    def _tool(self, tool: Any) -> Any:
        if not isinstance(tool, FunctionTool) or may_pause(tool):
            return tool
        known = self._tools.get(id(tool))
        if known is not None:
            return known[1]
        made = copy.copy(tool)
        made.on_invoke_tool = self._invoker(made, made.on_invoke_tool)
        self._tools[id(tool)] = tool, made
        return made

    def _invoker(self, tool: FunctionTool, inner: Any) -> Any:
        """Return what runs a tool through the journal.

        Of the SDK's own kinds it stays one, as they also look at arguments before approval.
        """
        call_tool = self._call_tool
        assert call_tool is not None

        async def invoke(context: Any, arguments: str) -> Any:
            return await call_tool(tool, context, arguments, inner)

        if not hasattr(inner, "__agents_bind_function_tool__"):
            return invoke

        async def __call__(self: Any, context: Any, arguments: str) -> Any:
            return await invoke(context, arguments)

        def bind(_: Any, other: FunctionTool) -> Any:
            return self._invoker(other, inner.__agents_bind_function_tool__(other))

        own = {"__call__": __call__, "__agents_bind_function_tool__": bind}
        kind = type("KeptInvoker", (type(inner),), own)
        made: Any = object.__new__(kind)
        made.__dict__.update(inner.__dict__)
        return made

    def _handoff(self, given: Any) -> Any:
        if not isinstance(given, Handoff):
            return self.of(given)
        target = given._agent_ref() if given._agent_ref is not None else None
        made = copy.copy(given)
        made.on_invoke_handoff = self._on_invoke(given, target)
        if target is not None:
            made._agent_ref = weakref.ref(self.of(target))
        return made

    def _on_invoke(self, given: Handoff, target: Any) -> Callable[[Any, str], Awaitable[Any]]:
        async def on_invoke_handoff(context: Any, arguments: str) -> Any:
            async def hand_over() -> Any:
                return await given.on_invoke_handoff(context, arguments)

            if self._call_handoff is None or target is None:
                return self.of(await hand_over())
            await self._call_handoff(given, arguments, hand_over)
            return self.of(target)

        return on_invoke_handoff


def may_pause(tool: Any) -> bool:
    """Return whether a tool is an agent that may stop for an approval inside.

    Its output is then none yet, so it must not be recorded as its end.
    """
    agent = getattr(tool, "_agent_instance", None)
    return agent is not None and any(map(_asks, _reachable(agent, {}, by_tools=True)))


def within_handoffs(agent: Any) -> list[Any]:
    """Return an agent, and those to which it may come to be handed over."""
    return _reachable(agent, {}, by_tools=False)


def _reachable(agent: Any, found: dict[int, Any], *, by_tools: bool) -> list[Any]:
    if isinstance(agent, Agent) and id(agent) not in found:
        found[id(agent)] = agent
        for each in agent.handoffs:
            reference = getattr(each, "_agent_ref", None)
            _reachable(each if reference is None else reference(), found, by_tools=by_tools)
        for tool in agent.tools if by_tools else ():
            _reachable(getattr(tool, "_agent_instance", None), found, by_tools=True)
    return list(found.values())


def _asks(agent: Any) -> bool:
    """Return whether an agent has tools that may need approval; servers' are not known yet."""
    policies = (getattr(tool, "needs_approval", False) for tool in agent.tools)
    return bool(agent.mcp_servers) or any(policy is not False for policy in policies)


def forwarding_run_hooks(hooks: Any) -> Any:
    """Return hooks that call the user's with the user's agents."""
    return _forwarding(hooks, RunHooksBase) if isinstance(hooks, RunHooksBase) else hooks


def _forwarding(hooks: Any, kind: type) -> Any:
    """Return hooks of a kind that call others, with agents in place of their copies."""

    def forward(name: str) -> Callable[..., Awaitable[None]]:
        async def forwarded(self: Any, *args: Any, **kwargs: Any) -> None:
            given = [original(each) for each in args]
            named = {key: original(each) for key, each in kwargs.items()}
            await getattr(hooks, name)(*given, **named)

        return forwarded

    names = [name for name in dir(kind) if name.startswith("on_")]
    return type("KeptHooks", (kind,), {name: forward(name) for name in names})()
