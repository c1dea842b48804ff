"""A conversation with one agent of CrewAI, kept before each request to its model."""

import asyncio
from typing import Any

from crewai import Agent

from holdfast.adapters.crewai import HoldfastCheckpoints
from tests.frameworks import kit
from tests.frameworks.jobs.crewai import Harbour, depth, tide


def work(url: str, session_id: str) -> Any:
    clerk = Agent(
        role="clerk",
        goal="know the harbour",
        backstory="Born there.",
        llm=Harbour(model="scripted"),
        tools=[depth, tide],
    )
    with HoldfastCheckpoints(session_id=session_id, url=url) as checkpoints:
        output = checkpoints.kickoff(clerk, "How deep is Süd?")
        kit.point("answered")
        return [output.raw, checkpoints.messages()]


async def main(url: str, session_id: str) -> Any:
    return await asyncio.to_thread(work, url, session_id)
