"""An agent of Claude's that charges a card once, and may be killed while it does."""

import os
from pathlib import Path
from typing import Any

from claude_agent_sdk import ResultMessage, create_sdk_mcp_server, tool

from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from tests.frameworks.claude_server import ClaudeServer, call, results_in, text
from tests.frameworks.kit import point

CHARGE = "mcp__pay__charge"


def script(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Charge; where it is not told how that ended, try once more; then tell what it was told."""
    point("model")
    found = results_in(messages)
    for call_id in ("toolu_first", "toolu_second"):
        if call_id not in found:
            return [call(call_id, CHARGE, amount=9)]
        if "interrupted" not in found[call_id]:
            break
    return [text(found[call_id])]


@tool("charge", "Charge a card.", {"amount": int})
async def charge(arguments: dict[str, Any]) -> dict[str, Any]:
    point("charged")
    return {"content": [text(f"charged {arguments['amount']}")]}


async def main(url: str, session_id: str) -> Any:
    with ClaudeServer(script) as server:
        pay = create_sdk_mcp_server("pay", tools=[charge])
        options = server.options(Path(os.getcwd()) / "home", mcp_servers={"pay": pay})
        output = None
        async with HoldfastSessionStore(url=url) as store:
            messages = store.query(
                prompt="charge 9",
                session_id=session_id,
                options=options,
                effects={CHARGE: "irreversible"},
            )
            async for message in messages:
                if isinstance(message, ResultMessage):
                    output = message.result
    return output
