"""An agent of Pydantic AI that looks two things up at once, writes a file and answers."""

import asyncio
import os
from pathlib import Path
from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from holdfast.adapters.pydantic_ai import HoldfastCapability
from tests.frameworks.kit import WORLD, point, workspace

PROMPT = "How deep is it, and does the tide rise?"
SCRIPT: list[list[Any]] = [
    [
        TextPart("I look it up."),
        ToolCallPart("depth", {"harbour": "south"}, "call_depth"),
        ToolCallPart("tide", {"harbour": "south"}, "call_tide"),
    ],
    [ToolCallPart("note", {"text": "12 m, rising"}, "call_note")],
    [TextPart("12 m deep, and rising.")],
]


def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Say what the script says after so many answers."""
    point("model")
    said = sum(isinstance(message, ModelResponse) for message in messages)
    point("model answered")
    return ModelResponse(parts=SCRIPT[said])


def world() -> str:
    path = Path(os.environ[WORLD])
    return path.read_text("utf-8") if path.exists() else ""


async def first_tool_is_recorded() -> None:
    """Wait until the tool that runs beside this one has ended, so that it need not run again."""
    while "run:after_end" not in world():
        await asyncio.sleep(0)


def agent_of(capability: HoldfastCapability) -> Agent:
    had_run = "tool depth done" in world()  # before this process was started
    agent = Agent(
        FunctionModel(answers), instructions="You are a pilot.", capabilities=[capability]
    )

    @agent.tool_plain
    async def depth(harbour: str) -> str:
        point("tool depth")
        point("tool depth done")
        return f"{harbour}: 12 m"

    @agent.tool_plain
    async def tide(harbour: str) -> dict[str, bool]:
        if not had_run:
            await first_tool_is_recorded()
        point("tool tide")
        point("tool tide done")
        return {"rising": True}

    @agent.tool_plain
    def note(text: str) -> str:
        point("tool note")
        place = workspace()
        assert place is not None
        with open(place / "notes.txt", "a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        point("tool note done")
        return "written"

    return agent


async def main(url: str, session_id: str) -> Any:
    async with HoldfastCapability(
        url=url, session_id=session_id, workspace=workspace()
    ) as capability:
        result = await agent_of(capability).run(PROMPT)
    place = workspace()
    assert place is not None
    return {
        "output": result.output,
        "usage": [result.usage.requests, result.usage.tool_calls],
        "messages": [
            [type(part).__name__, getattr(part, "content", None)]
            for message in result.all_messages()
            for part in message.parts
            if not isinstance(part, ToolCallPart)
        ],
        "answered": [
            part.tool_call_id
            for message in result.all_messages()
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        ],
        "files": (place / "notes.txt").read_text("utf-8"),
    }
