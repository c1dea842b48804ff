"""The reference conversation with an agent of the OpenAI SDK, and going on with one."""

import base64
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from holdfast.adapters.openai_agents import HoldfastRunner
from tests.frameworks import reference
from tests.frameworks.kit import point

set_tracing_disabled(True)
TOOLS: list[Any] = [function_tool(reference.depth), function_tool(reference.tide)]


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""

    def answer(call: Any) -> list[Any]:
        point("model")
        calls = [
            function_call(each["name"], each["arguments"], call_id=each["id"])
            for each in reference.CALLS
        ]
        return [assistant_message(reference.SAID), *calls]

    model = ScriptedModel([ModelStep.respond(answer)] * 2)
    agent = Agent(name="clerk", instructions=reference.SYSTEM, model=model, tools=TOOLS)
    picture = f"data:image/png;base64,{base64.b64encode(reference.PNG).decode()}"
    asked = [
        {"type": "input_text", "text": reference.PROMPT},
        {"type": "input_image", "image_url": picture, "detail": "auto"},
    ]
    await HoldfastRunner.run(
        agent, [{"role": "user", "content": asked}], session_id=session_id, url=url
    )


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> Any:
    """Say something more in a conversation; returns what the model was shown."""
    model = ScriptedModel([[assistant_message(reply)]])
    agent = Agent(name="clerk", instructions=reference.SYSTEM, model=model, tools=TOOLS)
    result = await HoldfastRunner.run(agent, prompt, session_id=session_id, url=url)
    assert result.final_output == reply
    return model.calls[0].input
