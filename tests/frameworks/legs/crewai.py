"""The reference conversation with an agent of CrewAI, and going on with one of any origin."""

import asyncio
import base64
from typing import Any

from crewai import Agent
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool
from pydantic import Field

from holdfast.adapters.crewai import HoldfastCheckpoints
from tests.frameworks import kit, reference
from tests.frameworks.jobs.crewai import call


class Scripted(BaseLLM):
    """A model that says the next of what it is to say."""

    answers: list[Any] = Field(default_factory=list)
    seen: list[Any] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.seen.append([dict(message) for message in messages])
        kit.point("model")
        return self.answers[len(self.seen) - 1]

    def supports_function_calling(self) -> bool:
        return True


def clerk(*answers: Any) -> Agent:
    return Agent(
        role="clerk",
        goal="know the harbour",
        backstory="Born there.",
        llm=Scripted(model="scripted", answers=list(answers)),
        tools=[tool("depth")(reference.depth), tool("tide")(reference.tide)],
    )


def first_messages() -> list[dict[str, Any]]:
    """Return the system prompt and what the user says, with the picture."""
    picture = f"data:image/png;base64,{base64.b64encode(reference.PNG).decode()}"
    asked = [
        {"type": "text", "text": reference.PROMPT},
        {"type": "image_url", "image_url": {"url": picture}},
    ]
    return [
        {"role": "system", "content": reference.SYSTEM},
        {"role": "user", "content": asked},
    ]


async def begin(url: str, session_id: str) -> Any:
    """Have the conversation, and be killed when the model is asked for the second time.

    CrewAI takes no text beside calls from a model, so the assistant says nothing there.
    """
    agent = clerk([call(each) for each in reference.CALLS], reference.ANSWER)
    with HoldfastCheckpoints(session_id=session_id, url=url) as checkpoints:
        await asyncio.to_thread(checkpoints.kickoff, agent, first_messages())


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> Any:
    """Say something more in a conversation, and return what the model was shown."""
    agent = clerk(reply)
    with HoldfastCheckpoints(session_id=session_id, url=url) as checkpoints:
        output = await asyncio.to_thread(checkpoints.kickoff, agent, prompt)
    assert output.raw == reply
    return agent.llm.seen[0]
