"""The tools and handoffs of a run, each call made through the journal under the id of its call."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from inspect import isawaitable
from typing import Any

from agents import FunctionTool, Handoff
from agents.items import ItemHelpers
from openai.types.responses import ResponseFunctionToolCall

from holdfast.adapters.journal import ToolJournal
from holdfast.adapters.openai_agents.models import RUNS_IN_TOOLS
from holdfast.core.conversation.frameworks.openai_items import output_item
from holdfast.errors import ApprovalDeniedError
from holdfast.session.async_run import AsyncRun
from holdfast.session.effects import Effect


class ToolCalls:
    """Makes the calls of a run, or gives what they gave before."""

    def __init__(self, run: AsyncRun, journal: ToolJournal) -> None:
        self._run = run
        self._journal = journal
        self._seen: dict[str, int] = {}
        self.is_over = False
        self.known: Mapping[str, Any] = {}
        """What calls of the last answer gave in another framework, by their ids."""
        self.answer: list[Any] = []
        """The items of the last answer."""

    @property
    def is_idle(self) -> bool:
        """Whether what is asked now is no step of this run: it is over, or a tool of it asks."""
        return self.is_over or any(each is self for each in RUNS_IN_TOOLS.get())

    def begin(self, items: Iterable[Any]) -> None:
        """Know which ids earlier runs used: some models begin to count anew with each."""
        self._seen = {}
        for item in items:
            if isinstance(item, Mapping) and item.get("type") == "function_call":
                call_id = str(item.get("call_id"))
                self._seen[call_id] = self._seen.get(call_id, 0) + 1

    def _key(self, call_id: str) -> str:
        times = self._seen.get(call_id, 0)
        return call_id if not times else f"{call_id}@{times + 1}"

    async def call_tool(
        self,
        tool: FunctionTool,
        context: Any,
        arguments: str,
        invoke: Callable[[Any, str], Awaitable[Any]],
    ) -> Any:
        """Run a tool through the journal; one whose output is known is not run."""
        call_id = getattr(context, "tool_call_id", None)
        if self.is_idle or not call_id:
            return await invoke(context, arguments)
        if call_id in self.known:
            return self.known[call_id]
        given, key, is_made = _arguments(arguments), self._key(call_id), False

        async def run(allowed: Any) -> Any:
            nonlocal is_made
            is_made = True
            said = arguments if allowed == given else json.dumps(allowed, ensure_ascii=False)
            within = RUNS_IN_TOOLS.set((*RUNS_IN_TOOLS.get(), self))
            try:
                return await invoke(context, said)
            finally:
                RUNS_IN_TOOLS.reset(within)

        try:
            return await self._journal.call(tool.name, key, given, run)
        except ApprovalDeniedError as denied:
            return str(denied)
        except Exception as error:
            if is_made or not self._is_recorded(tool.name, key, error):
                raise
            return await _told(tool, context, error)

    def _is_recorded(self, tool: str, key: str, error: Exception) -> bool:
        """Return whether an error is how a call ended that must not be made twice.

        Somebody may have said so of a call whose end was not known.
        """
        same = [each for each in self._run.effects if (each.tool, each.key) == (tool, key)]
        last = same[-1].error if same and _has_failed(same[-1]) else None
        return type(last) is type(error) and str(last) == str(error)

    async def call_handoff(
        self, handoff: Handoff[Any, Any], arguments: str, hand_over: Callable[[], Awaitable[Any]]
    ) -> None:
        """Run what a handoff does through the journal, under the id of its call."""
        if self.is_idle:
            await hand_over()
            return
        named = (item["call_id"] for item in self.answer if item.get("name") == handoff.tool_name)
        call_id = next(named, handoff.tool_name)

        async def run(_: Any) -> None:
            await hand_over()

        await self._journal.call(
            handoff.tool_name, self._key(call_id), _arguments(arguments or "{}"), run
        )

    def journaled(self, answer: Iterable[Any]) -> dict[str, Any]:
        """Return the items that answer calls of an answer, as far as the journal knows them."""
        calls = {item["call_id"]: item for item in answer if item.get("type") == "function_call"}
        keys = {self._key(call_id): call_id for call_id in calls}
        found: dict[str, Any] = {}
        for effect in self._run.effects if calls else ():
            call_id = keys.get(effect.key or "")
            if call_id is None or effect.abandoned:
                continue
            found.pop(call_id, None)  # it was made once more
            if effect.status == "done":
                call = ResponseFunctionToolCall.construct(**calls[call_id])
                found[call_id] = dict(ItemHelpers.tool_call_output_item(call, effect.output))
            elif _has_failed(effect):
                found[call_id] = output_item(call_id, _text(effect.tool, effect.error))
        return found


def _has_failed(effect: Effect) -> bool:
    """Return whether a call failed that is not simply made again."""
    return effect.status == "failed" and effect.lasts


async def _told(tool: FunctionTool, context: Any, error: Exception) -> Any:
    """Return what the model is told of a call that is recorded as failed, in the tool's own words.

    The SDK's own words are to try again, and do not say why.
    """
    own = getattr(tool, "_failure_error_function", None)
    if own is None or getattr(tool, "_use_default_failure_error_function", False):
        return _text(tool.name, error)
    text = own(context, error)
    return await text if isawaitable(text) else text


def _text(tool: str, error: object) -> str:
    return f"{tool} failed: {error}"


def _arguments(arguments: str) -> Any:
    """Return the arguments of a call as people read them; as text where they are no object."""
    try:
        found = json.loads(arguments)
    except ValueError:
        return arguments
    return found if isinstance(found, dict) else arguments
