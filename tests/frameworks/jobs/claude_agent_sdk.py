"""An agent of Claude's that asks two tools at once, writes a file, and tells what it found."""

import os
from pathlib import Path
from typing import Any

from claude_agent_sdk import ResultMessage, create_sdk_mcp_server, tool

from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from tests.frameworks.claude_server import ClaudeServer, call, results_in, said_in, text
from tests.frameworks.kit import point, workspace

PROMPT = "Wie tief ist der Hafen „Süd“?"


def script(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    point("model")
    assert "".join(said_in(messages)).count(PROMPT) == 1, said_in(messages)
    found = results_in(messages)
    if "toolu_depth" not in found or "toolu_tide" not in found:
        both = [call("toolu_depth", "mcp__harbour__depth", harbour="Süd")]
        return [text("Ich sehe nach…"), *both, call("toolu_tide", "mcp__harbour__tide")]
    if "toolu_note" not in found:
        return [call("toolu_note", "mcp__harbour__note", line="12.5 m")]
    return [text(f"{found['toolu_depth']}, {found['toolu_tide']}, {found['toolu_note']}")]


def _gives(said: str) -> dict[str, Any]:
    return {"content": [text(said)]}


@tool("depth", "Tell how deep a harbour is.", {"harbour": str})
async def depth(arguments: dict[str, Any]) -> dict[str, Any]:
    point("tool depth")
    said = _gives(f"12.5 m in {arguments['harbour']}")
    point("tool depth done")
    return said


@tool("tide", "Tell whether the water rises.", {})
async def tide(arguments: dict[str, Any]) -> dict[str, Any]:
    point("tool tide")
    point("tool tide done")
    return _gives("steigend (潮)")


@tool("note", "Write a line into the log.", {"line": str})
async def note(arguments: dict[str, Any]) -> dict[str, Any]:
    place = workspace()
    assert place is not None
    log = place / "log.txt"
    before = log.read_text("utf-8") if log.exists() else ""
    log.write_text(f"{before}{arguments['line']}\n", "utf-8")
    point("tool note")
    point("tool note done")
    return _gives(f"noted {len(log.read_text('utf-8').splitlines())}")


async def main(url: str, session_id: str) -> Any:
    with ClaudeServer(script) as server:
        tools = create_sdk_mcp_server("harbour", tools=[depth, tide, note])
        options = server.options(Path(os.getcwd()) / "home", mcp_servers={"harbour": tools})

        store = HoldfastSessionStore(url=url, workspace=workspace())
        output = None
        async for message in store.query(prompt=PROMPT, session_id=session_id, options=options):
            if isinstance(message, ResultMessage):
                output = message.result
        await store.aclose()
    return output
