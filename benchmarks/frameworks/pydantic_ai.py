"""An agent of Pydantic AI that calls a tool at every step, and what its steps cost."""

from __future__ import annotations

from pathlib import Path

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import UsageLimits

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.pydantic_ai import HoldfastCapability

_WORDS = ["harbour", "depth", "tide", "berth", "pilot", "tug", "crane", "quay", "buoy", "chart"]


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure an agent of so many steps: an answer of the model with a call, and its result."""
    store, theirs = directory / "holdfast.db", directory / "theirs"
    theirs.mkdir()

    def answers(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        # What one keeps by hand: the whole history as JSON, before every request.
        (theirs / f"{len(messages)}.json").write_bytes(ModelMessagesTypeAdapter.dump_json(messages))
        step = len(messages) // 2
        if step >= steps:
            return ModelResponse(parts=[TextPart("Done.")])
        said = TextPart(f"Step {step}: I look up {_WORDS[step % 10]}.")
        call = ToolCallPart("look_up", {"what": _WORDS[step % 10], "step": step}, f"call_{step}")
        return ModelResponse(parts=[said, call])

    def look_up(what: str, step: int) -> str:
        return f"{step}: " + " ".join(_WORDS[(step * k) % 10] for k in range(1, 60))

    async with HoldfastCapability(url=f"sqlite:///{store}", session_id="bench") as capability:
        agent = Agent(FunctionModel(answers), tools=[look_up], capabilities=[capability])
        limits = UsageLimits(request_limit=None)
        result = await agent.run("Look everything up.", usage_limits=limits)
    once = len(result.all_messages_json())
    return Sizes(
        size_of(store),
        size_of(theirs),
        "ModelMessagesTypeAdapter, the history as JSON at every step",
        f"all messages once, without the steps: {once // 1000} kB",
    )
