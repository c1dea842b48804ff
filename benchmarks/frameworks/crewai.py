"""A crew of many tasks: its checkpoints here, and in CrewAI's own JSON files."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}

from crewai import Agent, Crew, Task
from crewai.events.event_bus import crewai_event_bus
from crewai.llms.base_llm import BaseLLM
from crewai.state.checkpoint_config import CheckpointConfig
from crewai.tools import BaseTool

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.crewai import HoldfastCheckpoints


class Clerk(BaseLLM):
    """A model that calls a tool in each task, and then answers."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        if messages[-1]["role"] == "tool":
            return f"{messages[-1]['content']}, as asked"
        call = {"name": "depth", "arguments": '{"harbour": "Sued"}'}
        return [{"id": f"call_{len(messages)}", "type": "function", "function": call}]

    def supports_function_calling(self) -> bool:
        return True


class Depth(BaseTool):
    name: str = "depth"
    description: str = "Tell how deep a harbour is."

    def _run(self, harbour: str) -> str:
        return f"{harbour}: 12.5 m"


async def sizes(steps: int, directory: Path) -> Sizes:
    """Return the bytes of a crew of so many tasks, with a checkpoint after each."""
    return await asyncio.to_thread(_sizes, steps, directory)


def _sizes(steps: int, directory: Path) -> Sizes:
    os.environ["CREWAI_STORAGE_DIR"] = str(directory / "crewai")
    database, files = directory / "holdfast.db", directory / "files"
    with HoldfastCheckpoints(session_id="crew", url=f"sqlite:///{database}") as checkpoints:
        _crew(steps, task_callback=checkpoints).kickoff()
        kept = len(checkpoints.client.timeline("crewai", "crew", limit=None))
    assert kept == steps, f"{kept} of {steps} tasks were kept"
    _crew(steps, checkpoint=CheckpointConfig(location=str(files))).kickoff()
    crewai_event_bus.flush(None)
    written = len(list(files.rglob("*.json")))
    return Sizes(
        size_of(database),
        size_of(files),
        "JsonProvider",
        f"a checkpoint after each task; of {steps}, CrewAI wrote {written}, Holdfast {kept}",
    )


def _crew(steps: int, **options: Any) -> Crew:
    clerk = Agent(
        role="clerk",
        goal="know the harbour",
        backstory="Born there.",
        llm=Clerk(model="scripted"),
        tools=[Depth()],
    )
    tasks = [
        Task(
            description=f"Find how deep the harbour is at hour {hour}.",
            expected_output="metres",
            agent=clerk,
        )
        for hour in range(steps)
    ]
    return Crew(agents=[clerk], tasks=tasks, **options)
