"""An agent of smolagents that writes code, whose variables outlive a kill."""

import asyncio
from typing import Any

from smolagents import ChatMessage, CodeAgent, LogLevel, Model
from smolagents.models import MessageRole

from holdfast.adapters.smolagents import Checkpoints
from tests.frameworks import kit
from tests.frameworks.jobs.smolagents import Depth, Tide

PLAN = "First the depth, then the tide."
CODE = [
    "import math\nfound = {'depth': depth('Süd', 'm')}\nprint(found)",
    "found['tide'] = tide('Süd')\nroot = math.sqrt(16)",
    "final_answer(f\"{found['depth']} / {found['tide']} / {root}\")",
]


class Coder(Model):
    """A model that writes the next piece of code."""

    def __init__(self) -> None:
        super().__init__(model_id="coder")

    def generate(self, messages: Any, stop_sequences: Any = None, **options: Any) -> ChatMessage:
        kit.point("model")
        if stop_sequences == ["<end_plan>"]:
            content = PLAN
        else:
            done = sum(message.role == MessageRole.TOOL_RESPONSE for message in messages)
            content = f"Thought: step {done + 1}\n<code>\n{CODE[done]}\n</code>"
        kit.point("model done")
        return ChatMessage(role=MessageRole.ASSISTANT, content=content)


def coding_agent() -> CodeAgent:
    return CodeAgent(
        tools=[Depth(), Tide()],
        model=Coder(),
        planning_interval=2,
        verbosity_level=LogLevel.OFF,
    )


def work(url: str, session_id: str) -> Any:
    agent = coding_agent()
    with Checkpoints(session_id=session_id, url=url) as checkpoints:
        answer = checkpoints.run(agent, "How is the water?")
    kinds = [type(step).__name__ for step in agent.memory.steps]
    return [str(answer), kinds, [getattr(step, "step_number", 0) for step in agent.memory.steps]]


async def main(url: str, session_id: str) -> Any:
    return await asyncio.to_thread(work, url, session_id)
