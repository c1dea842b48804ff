"""The same crew, resumed in the way that CrewAI has for it: ``from_checkpoint``."""

import asyncio
from typing import Any

from holdfast.adapters.crewai import HoldfastCheckpoints
from tests.frameworks.jobs.crewai import harbour_crew


def work(url: str, session_id: str) -> Any:
    with HoldfastCheckpoints(session_id=session_id, url=url) as checkpoints:
        crew = harbour_crew(checkpoints)
        latest = checkpoints.latest()
        output = crew.kickoff(inputs={"harbour": "Süd"}, from_checkpoint=latest)
        return [output.raw, [each.raw for each in output.tasks_output]]


async def main(url: str, session_id: str) -> Any:
    return await asyncio.to_thread(work, url, session_id)
