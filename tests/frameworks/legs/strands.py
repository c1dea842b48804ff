"""The reference conversation in Strands, and its continuation."""

import json
from collections.abc import AsyncIterable
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.session import SnapshotSessionManager

from holdfast.adapters.strands import HoldfastStorage
from tests.frameworks import reference
from tests.frameworks.kit import point


class Scripted(Model):
    """A model that says what it is told to."""

    def __init__(self, reply: str | None) -> None:
        self.reply = reply

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        point("model")
        said, calls = self.reply, []
        if said is None:
            begins = not any(message["role"] == "assistant" for message in messages)
            said = reference.SAID if begins else reference.ANSWER
            calls = reference.CALLS if begins else []
        yield {"messageStart": {"role": "assistant"}}
        yield {"contentBlockStart": {"start": {}}}
        yield {"contentBlockDelta": {"delta": {"text": said}}}
        yield {"contentBlockStop": {}}
        for call in calls:
            use = {"name": call["name"], "toolUseId": call["id"]}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            given = json.dumps(call["arguments"])
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


async def _run(url: str, session_id: str, prompt: Any, reply: str | None) -> Any:
    async with HoldfastStorage(url=url) as storage:
        agent = Agent(
            model=Scripted(reply),
            system_prompt=reference.SYSTEM,
            tools=[tool(reference.depth), tool(reference.tide)],
            session_manager=SnapshotSessionManager(
                session_id, storage=storage, save_latest_on="message"
            ),
            plugins=[storage.plugin()],
            callback_handler=None,
        )
        await agent.invoke_async(prompt)
        return agent.messages[-1]["content"][0]["text"]


async def begin(url: str, session_id: str) -> None:
    """Have the reference conversation up to the second request, in which the process is killed."""
    image = {"image": {"format": "png", "source": {"bytes": reference.PNG}}}
    await _run(url, session_id, [{"text": reference.PROMPT}, image], None)


async def go_on(url: str, session_id: str, prompt: str, reply: str) -> Any:
    """Go on with a session, wherever it was begun."""
    return await _run(url, session_id, prompt, reply)
