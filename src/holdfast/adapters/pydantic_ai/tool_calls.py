"""The tools of one run: each call of the model is made once, and its end is kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.exceptions import SkipToolExecution, ToolFailed
from pydantic_ai.messages import ModelRequest, ModelResponse, ToolReturn, ToolReturnPart
from pydantic_ai.tools import DeferredToolRequests, ToolDenied

from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.pydantic_ai.beginnings import open_calls
from holdfast.adapters.pydantic_ai.delegation import OuterCall, inside
from holdfast.adapters.pydantic_ai.tool_outputs import (
    SIGNALS,
    given_again,
    kept_return,
    kept_signal,
)
from holdfast.errors import ApprovalDeniedError, RunError
from holdfast.session.async_run import AsyncRun

_NOTHING = object()


class ToolCalls:
    """Makes the calls of a run through its journal."""

    def __init__(self, run: AsyncRun, journal: ToolJournal) -> None:
        self._run = run
        self._journal = journal
        self._returned: dict[str, Any] = {}
        """What tools gave in this run, by their calls."""

    async def call(self, ctx: RunContext[Any], call: Any, args: Any, handler: Any) -> Any:
        """Return what a tool gives, or gave before it was cut off."""
        key = _key_of(ctx.messages, call)
        outer = OuterCall(self._run.session_id, key, ctx.usage)
        asked = call.args_as_dict()
        live: Any = _NOTHING
        signal: Exception | None = None
        is_made = False

        async def tool(arguments: Any) -> Any:
            nonlocal live, signal, is_made
            is_made = True
            given = args if arguments == asked else _validated(ctx, call, arguments)
            with inside(outer):
                try:
                    live = await handler(given)
                except SIGNALS as raised:
                    signal = raised
                    return kept_signal(raised)
            return kept_return(live, outer.used)

        try:
            kept = await self._journal.call(call.tool_name, key, asked, tool)
        except ApprovalDeniedError as denied:
            return ToolDenied(str(denied))
        except RunError as error:
            if is_made or not self._is_said_of(key, error):
                raise
            raise ToolFailed(str(error)) from None
        if signal is not None:
            raise signal
        if live is not _NOTHING:
            self._returned[call.tool_call_id] = live
            return live
        again, usage = given_again(kept)
        if usage is not None:
            ctx.usage.incr(usage)
        self._returned[call.tool_call_id] = again
        raise SkipToolExecution(again)  # so the framework counts it as a call that was made

    async def ended_in(self, messages: Sequence[Any]) -> dict[str, Any]:
        """Return what the calls at the end of a history gave that ended, by their ids.

        They are made again, which runs none of them: so the journal knows that they are over.
        """
        done: dict[str, Any] = {}
        ended = {call.key: call for call in self._run.effects if call.status != "started"}
        for call in open_calls(messages):
            key = _key_of(messages, call)
            if key not in ended:
                continue
            kept = await self._outcome(call, key)
            if kept is not _NOTHING:
                done[call.tool_call_id] = kept
        return done

    async def _outcome(self, call: Any, key: str) -> Any:
        try:
            return await self._journal.call(call.tool_name, key, call.args_as_dict(), _is_over)
        except Exception as error:  # what the tool raised then, or that it was denied
            self._journal.check()
            is_said = self._is_said_of(key, error)
            return kept_signal(ToolFailed(str(error))) if is_said else _NOTHING

    def _is_said_of(self, key: str, error: Exception) -> bool:
        """Return whether an error is what somebody said of a call: that it failed, and why.

        The text is for the model. What a tool itself raised, or is said to have, ends the run.
        """
        return type(error) is RunError and any(
            call.key == key and call.status == "failed" for call in self._run.effects
        )

    def answered(self, messages: Sequence[Any], output: Any) -> list[Any]:
        """Return the messages of a run that has ended, with an answer to every call.

        ``run_stream`` leaves those beside its final answer out of what it tells capabilities.
        """
        last = messages[-1] if messages else None
        if not isinstance(last, ModelResponse) or isinstance(output, DeferredToolRequests):
            return list(messages)
        parts = [
            ToolReturnPart(call.tool_name, self._content_of(call), call.tool_call_id)
            for call in last.tool_calls
        ]
        return [*messages, ModelRequest(parts=parts)] if parts else list(messages)

    def _content_of(self, call: Any) -> Any:
        given = self._returned.get(call.tool_call_id, "Final result processed.")
        return given.return_value if isinstance(given, ToolReturn) else given


async def _is_over(arguments: Any) -> Any:
    raise AssertionError("a call that ended is not made again")


def _key_of(messages: Sequence[Any], call: Any) -> str:
    """Return what tells a call from all others: its id, which some models give again and again."""
    before = sum(
        part.tool_call_id == call.tool_call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    )
    return str(call.tool_call_id) if before == 0 else f"{call.tool_call_id}#{before + 1}"


def _validated(ctx: RunContext[Any], call: Any, arguments: Any) -> Any:
    """Return arguments that who approved a call has edited, as its tool takes them."""
    tool = ctx.tool_manager.tools[call.tool_name]
    return tool.args_validator.validate_python(arguments, context=ctx.validation_context)
