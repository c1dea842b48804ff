"""The same agent, whose framework asks the history before each model call."""

from typing import Any

from tests.frameworks.jobs import agent_framework


async def main(url: str, session_id: str) -> Any:
    return await agent_framework.main(
        url, session_id, require_per_service_call_history_persistence=True
    )
