"""An agent of AutoGen that reads a page in every step."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    ModelInfo,
    RequestUsage,
)

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.autogen import run

_WORDS = [f"{first}{rest}" for first in "bdfklmprst" for rest in ("ale", "iron", "ump", "otes")]


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure the same run kept by us, and as the JSON of the agent's state after every step."""
    store = directory / "ours.db"
    await run(
        _agent(_Reader(steps)), "Read them all.", session_id="bench", url=f"sqlite:///{store}"
    )
    theirs = directory / "states"
    theirs.mkdir()
    reader = _Reader(steps)
    agent = _agent(reader)

    async def save(number: int) -> None:
        (theirs / f"{number}.json").write_text(json.dumps(await agent.save_state()))

    reader.save = save
    await agent.run(task="Read them all.")
    return Sizes(
        ours=size_of(store),
        theirs=size_of(theirs),
        peer="json.dumps(await agent.save_state()) at every step",
        note="ours also holds every answer before its tools run",
    )


async def _nothing(number: int) -> None:
    """Save nothing."""


class _Reader(ChatCompletionClient):
    """A model that asks for one page after the other."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.save: Any = _nothing

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        number = sum(isinstance(message, AssistantMessage) for message in messages)
        await self.save(number)
        call = FunctionCall(f"call_{number}", json.dumps({"page": number}), "read")
        return CreateResult(
            finish_reason="stop" if number >= self.steps else "function_calls",
            content="All are read." if number >= self.steps else [call],
            usage=RequestUsage(1, 1),
            cached=False,
        )

    async def create_stream(
        self, messages: Sequence[Any], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        yield await self.create(messages)

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return 1

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=False,
            family="unknown",
            structured_output=False,
        )


async def read(page: int) -> str:
    """Read a page."""
    return " ".join(random.Random(page).choices(_WORDS, k=90))


def _agent(model: _Reader) -> AssistantAgent:
    return AssistantAgent("reader", model, tools=[read], max_tool_iterations=model.steps + 1)
