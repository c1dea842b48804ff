"""An agent of Strands with two tools at once, a second question to the model, and an answer."""

import json
from collections.abc import AsyncIterable
from typing import Any

from strands import Agent, tool
from strands.models import Model
from strands.session import SnapshotSessionManager

from holdfast.adapters.strands import HoldfastStorage, prompt_once
from tests.frameworks.beside import first_tool_is_recorded
from tests.frameworks.kit import point, workspace

PROMPT = "How deep is it, and does the water rise?"


class Scripted(Model):
    """A model that answers by how much was said already."""

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        point("model")
        said = sum(message["role"] == "assistant" for message in messages)
        calls = [["depth", "tide"], ["note"], []][said]
        texts = ["Let me see.", "", " / ".join(_results(messages))]
        yield {"messageStart": {"role": "assistant"}}
        if texts[said]:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": texts[said]}}}
            yield {"contentBlockStop": {}}
        for name in calls:
            use = {"name": name, "toolUseId": f"call_{name}"}
            yield {"contentBlockStart": {"start": {"toolUse": use}}}
            given = json.dumps({"harbour": "Süd"})
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": given}}}}
            yield {"contentBlockStop": {}}
        point("model answered")
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


def _results(messages: Any) -> list[str]:
    return [
        block["toolResult"]["content"][0]["text"]
        for message in messages
        for block in message["content"]
        if "toolResult" in block
    ]


@tool
async def depth(harbour: str) -> str:
    """Tell how deep a harbour is."""
    point("tool depth")
    point("tool depth done")
    return f"{harbour} is 12 m"


@tool
async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    await first_tool_is_recorded()
    point("tool tide")
    point("tool tide done")
    return "it rises"


@tool
def note(harbour: str) -> str:
    """Write a note into the workspace."""
    point("tool note")
    place = workspace()
    if place is not None:
        (place / "notes.txt").write_text(f"{harbour} ✓\n", "utf-8")
    point("tool note done")
    return "noted"


async def main(url: str, session_id: str) -> Any:
    async with HoldfastStorage(url=url, workspace=workspace()) as storage:
        agent = Agent(
            model=Scripted(),
            tools=[depth, tide, note],
            session_manager=SnapshotSessionManager(
                session_id, storage=storage, save_latest_on="message"
            ),
            plugins=[storage.plugin()],
            callback_handler=None,
        )
        if not answer(agent):  # not answered yet: the same line, whether it was begun or not
            await agent.invoke_async(prompt_once(agent, PROMPT))
        return answer(agent)


def answer(agent: Agent) -> str:
    """Return the agent's last word; nothing if it did not come to that."""
    if not agent.messages:
        return ""
    last = agent.messages[-1]
    said = [block.get("text", "") for block in last["content"]]
    return said[0] if last["role"] == "assistant" and len(said) == 1 else ""
