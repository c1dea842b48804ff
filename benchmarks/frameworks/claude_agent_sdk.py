"""Claude Agent SDK: the real program and a scripted model, against its own JSON lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from claude_agent_sdk import create_sdk_mcp_server, tool

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from tests.frameworks.claude_server import Blocks, ClaudeServer, call, results_in, text

LINE = "The tide in harbour {} stood at {} cm, and the keeper wrote it down with care. "


@tool("look", "Look how high the tide is.", {"where": str})
async def look(arguments: dict[str, Any]) -> dict[str, Any]:
    said = "".join(LINE.format(arguments["where"], i) for i in range(12))
    return {"content": [text(said)]}


async def sizes(steps: int, directory: Path) -> Sizes:
    """Return what so many steps cost."""

    def script(messages: list[dict[str, Any]]) -> Blocks:
        known = len(results_in(messages))
        if known >= steps:
            return [text("done")]
        return [call(f"toolu_{known}", "mcp__tides__look", where=str(known))]

    store = directory / "holdfast.db"
    with ClaudeServer(script) as server:
        servers = {"tides": create_sdk_mcp_server("tides", tools=[look])}
        options = server.options(directory / "home", mcp_servers=servers)
        async with HoldfastSessionStore(url=f"sqlite:///{store}") as sessions:
            asked = sessions.query(prompt="Look at all.", session_id="bench", options=options)
            async for _ in asked:
                pass
            kept = len(sessions.client.timeline("claude_agent_sdk", "bench", limit=10_000))
    own = size_of(directory / "home" / ".claude" / "projects")
    note = f"{kept} checkpoints to go back to; the lines are one transcript"
    return Sizes(size_of(store), own, "its own JSON lines", note)
