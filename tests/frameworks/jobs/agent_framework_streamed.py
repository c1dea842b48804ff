"""The same agent, read as a stream."""

from typing import Any

from tests.frameworks.jobs import agent_framework


async def main(url: str, session_id: str) -> Any:
    return await agent_framework.main(url, session_id, stream=True)
