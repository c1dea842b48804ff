"""The reference conversation in Claude's program, and going on with one."""

import base64
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, create_sdk_mcp_server, tool

from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from tests.frameworks import reference
from tests.frameworks.claude_server import Blocks, ClaudeServer, call, text
from tests.frameworks.kit import point


@tool("depth", "Tell how deep a harbour is.", {"harbour": str, "unit": str})
async def depth(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [text(reference.depth(**arguments))]}


@tool("tide", "Tell whether the water rises.", {"harbour": str})
async def tide(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"content": [text(reference.tide(**arguments))]}


def _options(server: ClaudeServer, home: str, **more: Any) -> ClaudeAgentOptions:
    """Return options under which tools have the names that they have in other frameworks."""
    servers = {"harbour": create_sdk_mcp_server("harbour", tools=[depth, tide])}
    given = server.options(Path(home), mcp_servers=servers, **more)
    given.env["CLAUDE_AGENT_SDK_MCP_NO_PREFIX"] = "1"
    return given


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation, until the model is asked for the second time."""

    def script(messages: list[dict[str, Any]]) -> Blocks:
        point("model")
        calls = [call(each["id"], each["name"], **each["arguments"]) for each in reference.CALLS]
        return [text(reference.SAID), *calls]

    async def asked() -> AsyncIterator[dict[str, Any]]:
        data = base64.b64encode(reference.PNG).decode()
        source = {"type": "base64", "media_type": "image/png", "data": data}
        content = [text(reference.PROMPT), {"type": "image", "source": source}]
        yield {"type": "user", "message": {"role": "user", "content": content}}

    with tempfile.TemporaryDirectory() as home, ClaudeServer(script) as server:
        async with HoldfastSessionStore(url=url) as store:
            given = _options(server, home, system_prompt=reference.SYSTEM)
            async for _ in store.query(prompt=asked(), session_id=session_id, options=given):
                pass


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> None:
    """Go on with a session: the prompt is given, and the model says the reply."""
    with tempfile.TemporaryDirectory() as home, ClaudeServer(lambda _: [text(reply)]) as server:
        async with HoldfastSessionStore(url=url) as store:
            given = _options(server, home)
            async for _ in store.query(prompt=prompt, session_id=session_id, options=given):
                pass
