"""One run of an agent in a session: what the framework calls at each of its steps."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai import CallToolsNode, ModelRequestNode, RunContext, UserPromptNode
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation
from pydantic_ai.messages import ModelRequest, ModelResponse

from holdfast.adapters.journal import Effects, ToolJournal, checked_effects
from holdfast.adapters.pydantic_ai import beginnings
from holdfast.adapters.pydantic_ai.delegation import OuterCall
from holdfast.adapters.pydantic_ai.messages import dumped
from holdfast.adapters.pydantic_ai.tool_calls import ToolCalls
from holdfast.adapters.pydantic_ai.turns import (
    Turn,
    deferred_in_json,
    turn_of,
    usage_in_json,
    used_since,
)
from holdfast.errors import InvalidArgumentError
from holdfast.session.async_run import AsyncRun


class SessionRun(AbstractCapability[Any]):
    """Keeps one run: the prompt before the model is asked, its answer before tools run, and those.

    The hooks are called by the framework, in this order at each step: ``before_node_run``,
    ``before_model_request``, ``after_node_run``; in between ``wrap_tool_execute`` for each tool.
    """

    def __init__(
        self, opening: AsyncRun, effects: Effects | None, outer: OuterCall | None, id: str | None
    ) -> None:
        self.id = id
        self._opening = opening
        self._effects = effects
        self._outer = outer
        self._run: AsyncRun | None = None
        self._turn = Turn()
        self._journal: ToolJournal
        self._tools: ToolCalls
        self._begun = False
        self._answer: ModelResponse | None = None
        """The model's answer that a resumed run begins with, where nothing is to be asked."""
        self._answers: ModelRequest | None = None
        """What other calls of that answer gave elsewhere."""
        self._is_kept = False
        """Whether the next request is one that is kept already."""
        self._last: Any = None
        """The last message that was kept."""
        self._is_checked = False

    def get_ordering(self) -> CapabilityOrdering:
        """Return the place of the capability that this stands for."""
        return CapabilityOrdering(position="outermost", wrapped_by=[Instrumentation])

    # The run as a whole

    async def wrap_run(self, ctx: RunContext[Any], *, handler: Any) -> Any:
        """Work on the session while the agent runs; the last checkpoint says how it ended."""
        before = deepcopy(ctx.usage)
        async with self._opening as run:
            await run.load_effects()
            self._run = run
            self._before = before
            self._turn = turn_of(run.state, run.session_id)
            self._journal = ToolJournal(run, self._effects)
            self._tools = ToolCalls(run, self._journal)
            result = await handler()
            self._journal.check()
            self._ended(result, ctx)
        if self._outer is not None and self._outer.counts(ctx.usage):
            self._outer.add(used_since(ctx.usage, before))
        return result

    def _ended(self, result: Any, ctx: RunContext[Any]) -> None:
        """Have the session say that the turn came to its end; the run writes that as it closes."""
        if self._begun or result.all_messages():
            messages = self._tools.answered(result.all_messages(), result.output)
            self._set(ctx, messages, finished=True, deferred=deferred_in_json(result.output))

    # Its beginning

    async def before_node_run(self, ctx: RunContext[Any], *, node: Any) -> Any:
        """Have a run begin where its session stands."""
        if self._answers is not None and isinstance(node, CallToolsNode):
            ctx.messages.append(self._answers)
            self._answers = None
        if self._begun or not isinstance(node, UserPromptNode):
            return node
        self._begun = True
        assert self._run is not None
        # Of a run that a tool made, and of one that did not let go of its session, nobody can have
        # had the result: the call was cut off, or the process was.
        is_again = self._outer is not None or self._run.follows_crash
        begun = beginnings.begin(self._turn, ctx.messages, node, self._session_id, is_again)
        messages = begun.messages
        if begun.is_left:
            messages = beginnings.closed(messages, await self._tools.ended_in(messages))
        ctx.messages[:] = messages
        ctx.usage.incr(begun.usage)
        self._turn, self._answer, self._is_kept = begun.turn, begun.answer, begun.is_kept
        self._answers = begun.answers
        return begun.node

    @property
    def _session_id(self) -> str:
        return self._opening.session_id

    # Its steps

    async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
        """Keep what the model is about to be asked: a prompt, or what tools gave.

        Here and not when tools have ended, as the framework completes a request on the way.
        """
        self._journal.check()
        self._check_effects(ctx)
        last = ctx.messages[-1]
        if last is not self._last and not self._is_kept:
            await self._checkpoint(ctx, ctx.messages, beginnings.name_of(last))
        self._is_kept = False
        return request_context

    def _check_effects(self, ctx: RunContext[Any]) -> None:
        """Refuse effects of tools that the agent has not got: a name with a typo guards nothing."""
        if self._is_checked:
            return
        self._is_checked = True
        has = set((ctx.tool_manager.tools or {}) if ctx.tool_manager is not None else {})
        missing = [name for name in checked_effects(self._effects) if name not in has]
        if missing:
            raise InvalidArgumentError(
                f"effects names tools that the agent does not have: {', '.join(missing)} (its "
                f"tools are {', '.join(sorted(has)) or 'none'}); give each agent a capability of "
                "its own"
            )

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: Any, response: ModelResponse
    ) -> ModelResponse:
        """Keep the answer of a stream, whose last step the framework tells nobody of."""
        if getattr(request_context, "streaming", False):
            await self._checkpoint(ctx, [*ctx.messages, response], "model")
        return response

    async def after_node_run(self, ctx: RunContext[Any], *, node: Any, result: Any) -> Any:
        """Keep the model's answer before tools run."""
        self._journal.check()
        if isinstance(node, UserPromptNode) and self._answer is not None:
            answer, self._answer = self._answer, None
            if self._answers is not None:
                return CallToolsNode(answer)
            return result if isinstance(result, CallToolsNode) else CallToolsNode(answer)
        if isinstance(node, ModelRequestNode) and ctx.messages[-1] is not self._last:
            await self._checkpoint(ctx, ctx.messages, "model")
        return result

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: Any, tool_def: Any, args: Any, handler: Any
    ) -> Any:
        """Run a tool once for each call of the model."""
        return await self._tools.call(ctx, call, args, handler)

    async def _checkpoint(self, ctx: RunContext[Any], messages: Sequence[Any], name: str) -> None:
        self._set(ctx, messages, finished=False, deferred=None)
        assert self._run is not None
        await self._run.checkpoint(name)

    def _set(
        self, ctx: RunContext[Any], messages: Sequence[Any], *, finished: bool, deferred: Any
    ) -> None:
        assert self._run is not None
        turn = self._turn
        turn.messages = dumped(messages)
        turn.finished, turn.deferred = finished, deferred
        turn.usage = usage_in_json(used_since(ctx.usage, self._before))
        self._last = messages[-1] if messages else None
        self._run.state = turn.as_state()
