"""An agent of many steps: kept here, and as a program of one's own would write its memory.

smolagents has no persistence; what its users write is the JSON of ``get_full_steps`` after a step.
"""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, ClassVar

from smolagents import ChatMessage, LogLevel, Model, Tool, ToolCallingAgent
from smolagents.models import ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.smolagents import Checkpoints


class Clerk(Model):
    """A model that calls a tool so many times, and then answers."""

    def __init__(self, steps: int) -> None:
        super().__init__(model_id="scripted")
        self.steps = steps

    def generate(self, messages: Any, **options: Any) -> ChatMessage:
        done = sum(message.role == MessageRole.TOOL_RESPONSE for message in messages)
        name, arguments = "depth", {"harbour": f"hour {done}"}
        if done + 1 >= self.steps:
            name, arguments = "final_answer", {"answer": "done"}
        function = ChatMessageToolCallFunction(name=name, arguments=arguments)
        call = ChatMessageToolCall(function=function, id=f"call_{done}", type="function")
        said = f"At hour {done} I look again."
        return ChatMessage(role=MessageRole.ASSISTANT, content=said, tool_calls=[call])


class Depth(Tool):
    name = "depth"
    description = "Tell how deep a harbour is."
    inputs: ClassVar[dict[str, Any]] = {"harbour": {"type": "string", "description": "its name"}}
    output_type = "string"

    def forward(self, harbour: str) -> str:
        return f"{harbour}: 12.5 m, rising slowly, with a light breeze from the south west"


async def sizes(steps: int, directory: Path) -> Sizes:
    """Return the bytes of an agent of so many steps, kept after each."""
    return await asyncio.to_thread(_sizes, steps, directory)


def _sizes(steps: int, directory: Path) -> Sizes:
    database, files = directory / "holdfast.db", directory / "files"
    files.mkdir()
    with Checkpoints(session_id="agent", url=f"sqlite:///{database}") as checkpoints:
        checkpoints.run(_agent(steps), "Watch the harbour.", max_steps=steps)

    def write(step: Any, agent: Any) -> None:
        whole = [*agent.memory.get_full_steps(), step.dict()]
        (files / f"{step.step_number}.json").write_text(json.dumps(whole), "utf-8")

    _agent(steps, step_callbacks=[write]).run("Watch the harbour.", max_steps=steps)
    return Sizes(
        size_of(database),
        size_of(files),
        "`memory.get_full_steps()` as JSON after each step",
        "smolagents has no persistence of its own; ours has the journal of model and tools too",
    )


def _agent(steps: int, **options: Any) -> ToolCallingAgent:
    return ToolCallingAgent(
        tools=[Depth()], model=Clerk(steps), verbosity_level=LogLevel.OFF, **options
    )
