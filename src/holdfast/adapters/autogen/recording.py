"""The model and the tools of an agent, as it sees them in a run that is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import Any

from autogen_core.models import ChatCompletionClient, CreateResult
from autogen_core.tools import StaticStreamWorkbench, TextResultContent, ToolResult, Workbench

from holdfast.adapters.journal import ToolJournal
from holdfast.errors import HoldfastError

NextAnswer = Callable[[], Awaitable[CreateResult | None]]
"""Gives the next recorded answer of the model; None if it is to be asked, and all is kept."""
Answered = Callable[[CreateResult], Awaitable[None]]
KeyOf = Callable[[str | None], str]


class RecordedModel(ChatCompletionClient):
    """Gives recorded answers of a model first, then asks it and has each answer kept."""

    def __init__(self, model: Any, recorded: NextAnswer, answered: Answered) -> None:
        self._model = model
        self._recorded = recorded
        self._answered = answered

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        found = await self._recorded()
        if found is None:
            found = await self._model.create(messages, **options)
            await self._answered(found)
        return found

    async def create_stream(
        self, messages: Sequence[Any], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        found = await self._recorded()
        if found is not None:
            if isinstance(found.content, str) and found.content:
                yield found.content
            yield found
            return
        async for chunk in self._model.create_stream(messages, **options):
            if isinstance(chunk, CreateResult):
                await self._answered(chunk)
            yield chunk

    async def close(self) -> None:
        await self._model.close()

    def actual_usage(self) -> Any:
        return self._model.actual_usage()

    def total_usage(self) -> Any:
        return self._model.total_usage()

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return int(self._model.count_tokens(messages, **options))

    def remaining_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return int(self._model.remaining_tokens(messages, **options))

    @property
    def capabilities(self) -> Any:
        return self._model.capabilities

    @property
    def model_info(self) -> Any:
        return self._model.model_info


class JournaledWorkbench(Workbench):
    """Calls the tools of a workbench through the journal, each once for its call id."""

    def __init__(self, workbench: Any, journal: ToolJournal, key_of: KeyOf) -> None:
        self._workbench = workbench
        self._journal = journal
        self._key_of = key_of

    async def list_tools(self) -> Any:
        return await self._workbench.list_tools()

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> ToolResult:
        async def tool(given: Any) -> Any:
            found = await self._workbench.call_tool(name, given, cancellation_token, call_id)
            return kept_result(found)

        return await self._journaled(name, arguments, call_id, tool)

    async def _journaled(
        self,
        name: str,
        arguments: Mapping[str, Any] | None,
        call_id: str | None,
        tool: Callable[[Any], Awaitable[Any]],
    ) -> ToolResult:
        try:
            key = self._key_of(call_id)
            output = await self._journal.call(name, key, dict(arguments or {}), tool)
        except HoldfastError as error:
            # The agent would wait for ever for a tool that raises; the run itself looks at problem.
            content = TextResultContent(content=str(error))
            return ToolResult(name=name, result=[content], is_error=True)
        return loaded_result(name, output)

    async def start(self) -> None:
        await self._workbench.start()

    async def stop(self) -> None:
        await self._workbench.stop()

    async def reset(self) -> None:
        await self._workbench.reset()

    async def save_state(self) -> Mapping[str, Any]:
        state: Mapping[str, Any] = await self._workbench.save_state()
        return state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        await self._workbench.load_state(state)


class JournaledStreamWorkbench(JournaledWorkbench, StaticStreamWorkbench):
    """The same, for tools that tell what they do on the way; recorded ones give their end alone."""

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: Any = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        told: asyncio.Queue[Any] = asyncio.Queue()

        async def tool(given: Any) -> Any:
            last = None
            async for each in self._workbench.call_tool_stream(
                name, given, cancellation_token, call_id
            ):
                if isinstance(each, ToolResult):
                    last = kept_result(each)
                else:
                    told.put_nowait(each)
            return last

        called = asyncio.ensure_future(self._journaled(name, arguments, call_id, tool))
        called.add_done_callback(lambda _: told.put_nowait(called))
        try:
            while (each := await told.get()) is not called:
                yield each
            yield called.result()
        finally:
            if not called.done():
                called.cancel()


def journaled(workbench: Any, journal: ToolJournal, key_of: KeyOf) -> JournaledWorkbench:
    """Return a workbench whose tools are journaled."""
    tells = isinstance(workbench, StaticStreamWorkbench)
    kind = JournaledStreamWorkbench if tells else JournaledWorkbench
    return kind(workbench, journal, key_of)


def kept_result(result: Any) -> Any:
    """Return what a tool gave as plain data: its text where it is one."""
    is_text = len(result.result) == 1 and isinstance(result.result[0], TextResultContent)
    if is_text and not result.is_error:
        return result.result[0].content
    return result.model_dump(mode="json")


def loaded_result(name: str, kept: Any) -> ToolResult:
    """Return what a tool gave as the agent takes it."""
    if isinstance(kept, str):
        return ToolResult(name=name, result=[TextResultContent(content=kept)])
    return ToolResult.model_validate(kept)
