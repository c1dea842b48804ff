"""The reference conversation in Agent Framework, and going on with one."""

from agent_framework import Content, Message

from holdfast.adapters.agent_framework import HoldfastHistoryProvider
from tests.frameworks.agent_framework_kit import harbour_agent
from tests.frameworks.reference import PNG, PROMPT


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""
    provider = HoldfastHistoryProvider(url=url)
    agent = harbour_agent(provider)
    asked = Message("user", [Content.from_text(PROMPT), Content.from_data(PNG, "image/png")])
    await agent.run(asked, session=agent.create_session(session_id=session_id))
    await provider.aclose()


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a session: the prompt is given, and the model says the reply."""
    provider = HoldfastHistoryProvider(url=url)
    agent = harbour_agent(provider, lambda _: [Content.from_text(reply)])
    await agent.run(prompt, session=agent.create_session(session_id=session_id))
    await provider.aclose()
