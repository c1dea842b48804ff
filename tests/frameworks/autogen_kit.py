"""Agents and teams of AutoGen with scripted models, for jobs, legs and tests."""

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    ModelInfo,
    RequestUsage,
    UserMessage,
)

from tests.frameworks.beside import first_tool_is_recorded
from tests.frameworks.kit import point, workspace
from tests.frameworks.reference import ANSWER, CALLS, RESULTS, SAID, SYSTEM

INFO = ModelInfo(
    vision=True,
    function_calling=True,
    json_output=False,
    family="unknown",
    structured_output=False,
    multiple_system_messages=True,
)
Script = Callable[[Sequence[Any]], CreateResult]


class ScriptedClient(ChatCompletionClient):
    """A model that answers as a function of the messages says, and remembers what it was sent."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.sent: list[list[Any]] = []

    async def create(self, messages: Sequence[Any], **options: Any) -> CreateResult:
        self.sent.append(list(messages))
        point("model")
        answer = self.script(messages)
        point("model answered")
        return answer

    async def create_stream(
        self, messages: Sequence[Any], **options: Any
    ) -> AsyncGenerator[str | CreateResult, None]:
        answer = await self.create(messages)
        if isinstance(answer.content, str):
            for word in answer.content.split(" "):
                yield word
        yield answer

    async def close(self) -> None: ...

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def total_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    def count_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return 0

    def remaining_tokens(self, messages: Sequence[Any], **options: Any) -> int:
        return 1000

    @property
    def capabilities(self) -> Any:
        return INFO

    @property
    def model_info(self) -> ModelInfo:
        return INFO


def says(content: Any, thought: str | None = None) -> CreateResult:
    """Return an answer of a model: a text, or calls."""
    return CreateResult(
        finish_reason="stop" if isinstance(content, str) else "function_calls",
        content=content,
        usage=RequestUsage(1, 1),
        cached=False,
        thought=thought,
    )


def calls() -> list[FunctionCall]:
    return [
        FunctionCall(each["id"], json.dumps(each["arguments"], ensure_ascii=False), each["name"])
        for each in CALLS
    ]


def asks_twice(messages: Sequence[Any]) -> CreateResult:
    """Call both tools, and answer when their results are there, whatever was said before."""
    since = max(i for i, each in enumerate(messages) if isinstance(each, UserMessage))
    if any(isinstance(each, FunctionExecutionResultMessage) for each in messages[since:]):
        return says(ANSWER)
    return says(calls(), SAID)


async def depth(harbour: str, unit: str = "m") -> str:
    """Tell how deep a harbour is."""
    return await _measured("depth")


async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    await first_tool_is_recorded()
    return await _measured("tide")


async def _measured(name: str) -> str:
    point(f"tool {name}")
    place = workspace()
    if place is not None:
        (place / f"{name}.txt").write_text(RESULTS[f"call_{name}"], "utf-8")
    point(f"tool {name} done")
    return RESULTS[f"call_{name}"]


def harbour_agent(script: Script = asks_twice, **options: Any) -> AssistantAgent:
    """Return the agent of the reference conversation."""
    given: dict[str, Any] = {"tools": [depth, tide], "max_tool_iterations": 5, **options}
    return AssistantAgent("clerk", ScriptedClient(script), system_message=SYSTEM, **given)


def numbered(messages: Sequence[Any]) -> CreateResult:
    """Say how many messages were there before."""
    own = sum(isinstance(each, AssistantMessage) for each in messages)
    return says(f"{own} of mine, {len(messages)} in all")


def said(messages: Sequence[Any]) -> list[list[str]]:
    """Return who said what, in short."""
    return [[each.source, each.type, each.to_text()] for each in messages]
