"""The job of Strands with the storage alone: no plugin journals its tools."""

from typing import Any

from strands import Agent, tool
from strands.session import SnapshotSessionManager

from holdfast.adapters.strands import HoldfastStorage, prompt_once
from tests.frameworks.jobs.strands import PROMPT, Scripted, answer, depth, note
from tests.frameworks.kit import point, workspace


@tool
async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    point("tool tide")
    point("tool tide done")
    return "it rises"


async def main(url: str, session_id: str) -> Any:
    async with HoldfastStorage(url=url, workspace=workspace()) as storage:
        agent = Agent(
            model=Scripted(),
            tools=[depth, tide, note],
            session_manager=SnapshotSessionManager(
                session_id, storage=storage, save_latest_on="message"
            ),
            callback_handler=None,
        )
        if not answer(agent):
            await agent.invoke_async(prompt_once(agent, PROMPT))
        return answer(agent)
