"""An agent of AgentScope: a model is asked, two tools run at once, it is asked again."""

import json
from collections.abc import Callable
from typing import Any

from agentscope.agent import Agent
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolCallBlock, ToolResultBlock, UserMsg
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, ToolChunk, Toolkit

from holdfast.adapters.agentscope import HoldfastMiddleware
from tests.frameworks import kit, reference
from tests.frameworks.beside import first_tool_is_recorded
from tests.frameworks.kit import point

ALLOWED = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="allowed")
Script = Callable[[list[Msg]], list[Any]]


class ScriptedModel(ChatModelBase):
    """Answers with the blocks that a function makes of the messages."""

    def __init__(self, script: Script) -> None:
        super().__init__(
            CredentialBase(), "scripted", self.Parameters(), stream=False, max_retries=0
        )
        self.script = script
        self.formatter = OpenAIChatFormatter(input_types=["text/plain", "image/*"])

    async def _call_api(
        self, model_name: str, messages: list[Msg], *args: Any, **kwargs: Any
    ) -> ChatResponse:
        return ChatResponse(content=self.script(messages), is_last=True)


def say(text: str) -> list[Any]:
    """Return what a model says in words only."""
    return [TextBlock(text=text)]


def call(name: str, call_id: str, arguments: str = "{}") -> ToolCallBlock:
    """Return a call that a model asks for."""
    return ToolCallBlock(id=call_id, name=name, input=arguments)


def conversation(messages: list[Msg]) -> list[Any]:
    """Answer as the model of the reference conversation does."""
    point("model")
    asked = messages[-1]
    is_answered = any(isinstance(block, ToolResultBlock) for block in asked.content)
    point("model answered")
    if is_answered:
        return say(reference.ANSWER)
    calls = [
        ToolCallBlock(id=each["id"], name=each["name"], input=json.dumps(each["arguments"]))
        for each in reference.CALLS
    ]
    return [TextBlock(text=reference.SAID), *calls]


def toolkit() -> Toolkit:
    """Return the tools of the reference conversation, which both write a file."""

    async def depth(harbour: str, unit: str = "m") -> ToolChunk:
        """Tell how deep a harbour is."""
        return await _told("depth", reference.depth(harbour, unit))

    async def tide(harbour: str) -> ToolChunk:
        """Tell whether the water rises."""
        return await _told("tide", reference.tide(harbour))

    return Toolkit(tools=[FunctionTool(each, permission=ALLOWED) for each in (depth, tide)])


async def _told(name: str, text: str) -> ToolChunk:
    if name == "tide":
        await first_tool_is_recorded()
    point(f"tool {name}")
    place = kit.workspace()
    if place is not None:
        (place / f"{name}.txt").write_text(text, "utf-8")
    point(f"tool {name} done")
    return ToolChunk(content=[TextBlock(text=text)])


async def main(url: str, session_id: str) -> Any:
    middleware = HoldfastMiddleware(session_id=session_id, url=url, workspace=kit.workspace())
    agent = Agent(
        name="clerk",
        system_prompt=reference.SYSTEM,
        model=ScriptedModel(conversation),
        toolkit=toolkit(),
        middlewares=[middleware],
        state=middleware.state(),
    )
    reply = await agent.reply(UserMsg("user", reference.PROMPT))
    said = [[message.role, _content(message)] for message in agent.state.context]
    middleware.close()
    return [reply.get_text_content(), said]


def _content(message: Msg) -> list[Any]:
    """Return what a message says; of calls made at once any may have ended first."""
    said = [_said(block) for block in message.content if block.type != "hint"]
    results = iter(sorted((each for each in said if each[1]), key=lambda each: each[0]["name"]))
    return [next(results) if each[1] else each for each in said]


def _said(block: Any) -> list[Any]:
    own = block.model_dump(mode="json")
    names = ("type", "text", "name", "input", "state")
    output = own.get("output")
    texts = output if isinstance(output, str) else [each["text"] for each in output or []]
    return [{name: own[name] for name in names if name in own}, texts]
