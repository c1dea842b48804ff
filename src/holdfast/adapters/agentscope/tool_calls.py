"""The calls of an agent's tools: each journaled by its id, while what it streams goes through."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

from agentscope.agent import Agent
from agentscope.message import ToolCallBlock
from agentscope.tool import ToolResponse

from holdfast.adapters.agentscope import tool_outputs
from holdfast.adapters.journal import Effects, ToolJournal
from holdfast.errors import ApprovalDeniedError, RunError
from holdfast.session.async_run import AsyncRun

Next = Callable[..., AsyncGenerator[Any, None]]
_CHANGES_CONTEXT = ("CompressContext",)
"""Tools of AgentScope's own that change what was said: they run again, as that is not recorded."""
_END = object()


class ToolCalls:
    """Calls tools through the journal of a run."""

    def __init__(self, run: AsyncRun, agent: Agent, effects: Effects) -> None:
        self._run, self._agent = run, agent
        self._journal = ToolJournal(run, effects)
        self._made = run.effects
        """Calls that were made before this reply was taken up."""
        self._given: tuple[int, frozenset[str | None]] = (0, frozenset())
        """How many calls were made before the reply was begun, and their ids."""
        self._ended = len(self._made)
        self._applied = 0

    def count(self) -> int:
        """Return how many calls were made so far."""
        return len(self._made)

    def check(self) -> None:
        """Raise what went wrong in Holdfast itself, if something did."""
        self._journal.check()

    def recorded(self, call_id: str, reply: Mapping[str, Any]) -> ToolResponse | None:
        """Return what the model is told of a call of a reply, if its end is known; else None."""
        key = self._key(call_id, reply)
        for call in self._made:
            if call.key == key and call.status == "done":
                return tool_outputs.response_of(call.output, call_id)
            if call.key == key and call.status == "failed":
                return tool_outputs.failed(call.error, call_id)
        return None

    def _key(self, call_id: str, reply: Mapping[str, Any]) -> str:
        """Return what tells a call from all others: its id, unless a model gave that before."""
        before = reply.get("calls_before") or 0
        if self._given[0] != before:
            self._given = before, frozenset(call.key for call in self._made[:before])
        return f"{call_id}/{self._agent.state.reply_id}" if call_id in self._given[1] else call_id

    def _failure(self, key: str) -> Exception | None:
        """Return how a call failed that cannot be undone: only a model has it made again."""
        for call in self._made:
            if call.key == key and call.status == "failed" and call.is_final and not call.abandoned:
                return call.error if isinstance(call.error, Exception) else RunError("it failed")
        return None

    def _has_failed(self, key: str) -> bool:
        return any(call.key == key and call.status == "failed" for call in self._run.effects)

    async def call(
        self, given: dict[str, Any], following: Next, reply: Mapping[str, Any]
    ) -> AsyncGenerator[Any, None]:
        """Run a tool, and let through what it streams; or give what it gave before."""
        call: ToolCallBlock = given["tool_call"]
        if call.name in _CHANGES_CONTEXT:
            async for item in following(**given):
                yield item
            return
        streamed: asyncio.Queue[Any] = asyncio.Queue()
        made = asyncio.create_task(self._journaled(call, given, following, reply, streamed))
        made.add_done_callback(lambda _: streamed.put_nowait(_END))
        try:
            while (item := await streamed.get()) is not _END:
                yield item
        except asyncio.CancelledError:  # AgentScope answers it as interrupted, and goes on
            made.cancel()
            while (item := await streamed.get()) is not _END:
                yield item
        finally:
            if not made.done():
                made.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await made
        made.result()

    async def _journaled(
        self,
        call: ToolCallBlock,
        given: dict[str, Any],
        following: Next,
        reply: Mapping[str, Any],
        streamed: asyncio.Queue[Any],
    ) -> None:
        arguments = _arguments(call.input)
        was_run = False

        async def tool(allowed: Any) -> Any:
            nonlocal was_run
            if (error := self._failure(key)) is not None:
                raise error  # of an attempt that then failed elsewhere: it counts for this one, too
            was_run = True
            if allowed != arguments:  # who approved the call has edited it
                call.input = json.dumps(allowed, ensure_ascii=False)
            before = tool_outputs.parts_of(self._agent.state)
            response = None
            async for item in following(**{**given, "tool_call": call}):
                if isinstance(item, ToolResponse):
                    response = item
                else:
                    streamed.put_nowait(item)
            if response is None:
                return None
            after = tool_outputs.parts_of(self._agent.state)
            changed = {key: value for key, value in after.items() if value != before[key]}
            self._ended += 1
            return tool_outputs.recorded(response, changed, self._ended)

        key, output = self._key(call.id, reply), None
        try:
            output = await self._journal.call(call.name, key, arguments, tool)
            response = tool_outputs.response_of(output, call.id)
        except ApprovalDeniedError as error:
            response = tool_outputs.denied(error, call.id)
        except Exception as error:
            if was_run or not self._has_failed(key):
                raise
            response = tool_outputs.failed(error, call.id)  # decided by hand, say (mark_failed)
        if not was_run:
            self._applied = tool_outputs.change(self._agent.state, output, self._applied)
            streamed.put_nowait(tool_outputs.as_chunk(response))
        streamed.put_nowait(response)


def _arguments(text: str) -> Any:
    """Return the arguments of a call by their names, or as the text that the model gave."""
    try:
        found = json.loads(text)
    except ValueError:
        return text
    return found if isinstance(found, dict) else text
