"""The same agent, whose model streams, and reflects on what its tools gave."""

from typing import Any

from tests.frameworks.jobs import autogen


async def main(url: str, session_id: str) -> Any:
    return await autogen.main(
        url,
        session_id,
        model_client_stream=True,
        reflect_on_tool_use=True,
        max_tool_iterations=1,
    )
