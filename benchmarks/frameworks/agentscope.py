"""AgentScope: an agent's state before and after every model call, against its own JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

from agentscope.agent import Agent, ReActConfig
from agentscope.credential import CredentialBase
from agentscope.formatter import OpenAIChatFormatter
from agentscope.message import Msg, TextBlock, ToolCallBlock, UserMsg
from agentscope.middleware import MiddlewareBase
from agentscope.model import ChatModelBase, ChatResponse
from agentscope.permission import PermissionBehavior, PermissionDecision
from agentscope.tool import FunctionTool, ToolChunk, Toolkit

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.agentscope import HoldfastMiddleware

LINE = "The tide in harbour {} stood at {} cm, and the keeper wrote it down with care. "


class Scripted(ChatModelBase):
    """Calls a tool so many times, and then says that it is done."""

    def __init__(self, steps: int) -> None:
        super().__init__(
            CredentialBase(),
            "scripted",
            self.Parameters(),
            stream=False,
            max_retries=0,
            context_size=100_000_000,
        )
        self.formatter = OpenAIChatFormatter()
        self.left = steps

    async def _call_api(
        self, model_name: str, messages: list[Msg], *args: Any, **kwargs: Any
    ) -> ChatResponse:
        self.left -= 1
        if self.left < 0:
            return ChatResponse(content=[TextBlock(text="done")], is_last=True)
        arguments = json.dumps({"where": str(self.left)})
        call = ToolCallBlock(id=f"call_{self.left}", name="look", input=arguments)
        return ChatResponse(content=[call], is_last=True)


async def look(where: str) -> ToolChunk:
    """Look how high the tide is."""
    text = "".join(LINE.format(where, i) for i in range(12))
    return ToolChunk(content=[TextBlock(text=text)])


class OwnJson(MiddlewareBase):
    """Keeps the state as JSON after every model call, as AgentScope's storages do."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.written = 0

    async def on_reasoning(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Any
    ) -> AsyncGenerator[Any, None]:
        """Keep the state as the model is asked and after it has answered."""
        self._write(agent)
        async for item in next_handler(**input_kwargs):
            yield item
        self._write(agent)

    def _write(self, agent: Agent) -> None:
        path = self.directory / f"{self.written}.json"
        path.write_text(agent.state.model_dump_json(), "utf-8")
        self.written += 1


async def sizes(steps: int, directory: Path) -> Sizes:
    """Return what so many steps cost."""
    store, own = directory / "holdfast.db", directory / "own"
    own.mkdir()
    middleware = HoldfastMiddleware(session_id="bench", url=f"sqlite:///{store}")
    await _reply(middleware, steps)
    middleware.close()
    last = await _reply(OwnJson(own), steps)
    size = len(last.state.model_dump_json()) // 1024
    note = f"before and after each model call, as we do; the last alone is {size} KB"
    return Sizes(size_of(store), size_of(own), "`state.model_dump_json()`", note)


async def _reply(middleware: MiddlewareBase, steps: int) -> Agent:
    allowed = PermissionDecision(behavior=PermissionBehavior.ALLOW, message="allowed")
    agent = Agent(
        name="keeper",
        system_prompt="Look.",
        model=Scripted(steps),
        toolkit=Toolkit(tools=[FunctionTool(look, permission=allowed)]),
        middlewares=[middleware],
        react_config=ReActConfig(max_iters=steps + 1),
    )
    await agent.reply(UserMsg("user", "Look at every harbour."))
    return agent
