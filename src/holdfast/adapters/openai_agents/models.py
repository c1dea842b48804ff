"""Models whose answers are kept before the SDK acts on them, and given back after a kill."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextvars import ContextVar
from typing import Any, Protocol

from agents import Model, ModelProvider
from openai.types.responses import ResponseCompletedEvent, ResponseOutputItemDoneEvent

from holdfast.adapters.openai_agents import answers
from holdfast.adapters.openai_agents.answers import Answer

RUNS_IN_TOOLS: ContextVar[tuple[object, ...]] = ContextVar("holdfast_runs_in_tools", default=())
"""The runs one of whose tools is running: agents that it asks are part of it, and no steps."""


class AnswerLog(Protocol):
    """Who keeps the answers of models."""

    streams: bool

    @property
    def is_idle(self) -> bool:
        """Whether what is asked now is none of its steps: the run is over, or in a tool."""

    async def before_model(self, instructions: str | None) -> Answer | None:
        """Keep where the run stands; returns the answer that is kept already."""

    async def answered(self, answer: Answer) -> None:
        """Keep an answer."""


class KeptModel(Model):
    """A model of the user's whose answers a log keeps."""

    def __init__(self, inner: Model, log: AnswerLog) -> None:
        self._inner = inner
        self._log = log

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_inner", "_log"):
            raise AttributeError(name)
        return getattr(self._inner, name)

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the model: only runs inside of tools come this way."""
        return await self._inner.get_response(*args, **kwargs)

    async def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[Any]:
        """Give the answer that is kept, or ask the model and keep what it says."""
        if self._log.is_idle:
            async for event in self._inner.stream_response(
                system_instructions, input, *args, **kwargs
            ):
                yield event
            return
        kept = await self._log.before_model(system_instructions)
        if kept is None and self._log.streams:
            items: list[Any] = []
            async for event in self._inner.stream_response(
                system_instructions, input, *args, **kwargs
            ):
                if isinstance(event, ResponseOutputItemDoneEvent):
                    items.append(event.item)
                elif isinstance(event, ResponseCompletedEvent):
                    await self._log.answered(answers.of_response(event.response, items))
                yield event
            return
        if kept is None:
            response = await self._inner.get_response(system_instructions, input, *args, **kwargs)
            kept = answers.of_model_response(response)
            await self._log.answered(kept)
        yield answers.completed(kept)

    def get_retry_advice(self, request: Any) -> Any:
        """Return what the model says of trying again."""
        return self._inner.get_retry_advice(request)

    async def _cleanup_on_run_end(self, owner: object) -> None:
        await self._inner._cleanup_on_run_end(owner)

    async def close(self) -> None:
        """Close the model."""
        await self._inner.close()


class KeptProvider(ModelProvider):
    """A provider of the user's whose models' answers a log keeps."""

    def __init__(self, inner: ModelProvider, log: AnswerLog) -> None:
        self._inner = inner
        self._log = log
        self._models: dict[int, KeptModel] = {}

    def get_model(self, model_name: str | None) -> Model:
        """Return the model of a name."""
        model = self._inner.get_model(model_name)
        known = self._models.get(id(model))
        if known is None:
            known = self._models[id(model)] = KeptModel(model, self._log)
        return known

    async def aclose(self) -> None:
        """Close the provider."""
        await self._inner.aclose()
