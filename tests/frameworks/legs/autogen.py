"""The reference conversation in AutoGen, and going on with one."""

from base64 import b64encode

from autogen_agentchat.messages import MultiModalMessage
from autogen_core import Image

from holdfast.adapters.autogen import run
from tests.frameworks.autogen_kit import harbour_agent, says
from tests.frameworks.reference import PNG, PROMPT


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""
    picture = Image.from_base64(b64encode(PNG).decode())
    asked = MultiModalMessage(content=[PROMPT, picture], source="user")
    await run(harbour_agent(), asked, session_id=session_id, url=url)


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a session: the prompt is given, and the model says the reply."""
    agent = harbour_agent(lambda _: says(reply))
    await run(agent, prompt, session_id=session_id, url=url)
