"""The reference conversation in AgentScope, and going on with one."""

import base64
import json
from typing import Any

from agentscope.agent import Agent
from agentscope.message import Base64Source, DataBlock, Msg, TextBlock, ToolCallBlock, UserMsg
from agentscope.tool import FunctionTool, ToolChunk, Toolkit

from holdfast.adapters.agentscope import HoldfastMiddleware
from tests.frameworks import reference
from tests.frameworks.jobs.agentscope import ALLOWED, ScriptedModel, say
from tests.frameworks.kit import point


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""

    def answers(messages: list[Msg]) -> list[Any]:
        point("model")
        calls = [
            ToolCallBlock(id=each["id"], name=each["name"], input=json.dumps(each["arguments"]))
            for each in reference.CALLS
        ]
        return [TextBlock(text=reference.SAID), *calls]

    picture = Base64Source(data=base64.b64encode(reference.PNG).decode(), media_type="image/png")
    prompt = [TextBlock(text=reference.PROMPT), DataBlock(source=picture)]
    await _agent(url, session_id, ScriptedModel(answers)).reply(UserMsg("user", prompt))


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a session: the prompt is given, and the model says the reply."""
    agent = _agent(url, session_id, ScriptedModel(lambda messages: say(reply)))
    await agent.reply(UserMsg("user", prompt))


def _agent(url: str, session_id: str, model: ScriptedModel) -> Agent:
    middleware = HoldfastMiddleware(session_id=session_id, url=url)
    return Agent(
        name="clerk",
        system_prompt=reference.SYSTEM,
        model=model,
        toolkit=_toolkit(),
        middlewares=[middleware],
        state=middleware.state(),
    )


def _toolkit() -> Toolkit:
    async def depth(harbour: str, unit: str = "m") -> ToolChunk:
        """Tell how deep a harbour is."""
        return ToolChunk(content=say(reference.depth(harbour, unit)))

    async def tide(harbour: str) -> ToolChunk:
        """Tell whether the water rises."""
        return ToolChunk(content=say(reference.tide(harbour)))

    return Toolkit(tools=[FunctionTool(each, permission=ALLOWED) for each in (depth, tide)])
