"""An agent that calls two tools at once and then answers, as the page would have it."""

from typing import Any

from holdfast import Client, Framework
from holdfast.adapters.autogen import run
from tests.frameworks.autogen_kit import harbour_agent
from tests.frameworks.kit import workspace
from tests.frameworks.reference import PROMPT


async def main(url: str, session_id: str, **options: Any) -> Any:
    async with Client.open(url) as client:
        head = await client.latest(Framework.AUTOGEN.value, session_id)
        if head is None or "state" not in head.execution_state or "turn" in head.execution_state:
            await run(
                harbour_agent(**options),
                PROMPT,
                session_id=session_id,
                client=client,
                workspace=workspace(),
            )
            head = await client.latest(Framework.AUTOGEN.value, session_id)
        assert head is not None
        return head.execution_state["state"]["llm_context"]["messages"]
