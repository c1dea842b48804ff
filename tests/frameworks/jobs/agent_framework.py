"""An agent that calls two tools at once and then answers, as the page would have it."""

from typing import Any

from holdfast.adapters.agent_framework import HoldfastHistoryProvider
from tests.frameworks.agent_framework_kit import harbour_agent, said
from tests.frameworks.kit import workspace
from tests.frameworks.reference import PROMPT


async def main(url: str, session_id: str, *, stream: bool = False, **options: Any) -> Any:
    provider = HoldfastHistoryProvider(url=url, workspace=workspace())
    agent = harbour_agent(provider, **options)
    history = await provider.get_messages(session_id)
    if not history or await provider.is_unfinished(session_id):
        session = agent.create_session(session_id=session_id)
        if stream:
            async for _ in agent.run(PROMPT, session=session, stream=True):
                pass
        else:
            await agent.run(PROMPT, session=session)
        history = await provider.get_messages(session_id)
    await provider.aclose()
    return said(history)
