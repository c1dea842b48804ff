"""An agent of Strands that reads a page in every step."""

from __future__ import annotations

from collections.abc import AsyncIterable
from pathlib import Path
from typing import Any

from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import MessageAddedEvent
from strands.models import Model
from strands.session import SnapshotSessionManager
from strands.storage import LocalFileStorage

from benchmarks.frameworks.pages import page
from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.strands import HoldfastStorage


async def sizes(steps: int, directory: Path) -> Sizes:
    """Measure the same run kept message by message: by us, and as Strands' own snapshots."""
    for name, is_journaled in (("ours", False), ("journaled", True)):
        async with HoldfastStorage(url=f"sqlite:///{directory / name}.db") as storage:
            manager = SnapshotSessionManager("b", storage=storage, save_latest_on="message")
            plugins = [storage.plugin()] if is_journaled else []
            await _agent(steps, manager, plugins).invoke_async("Read them all.")
    manager = SnapshotSessionManager("b", storage=LocalFileStorage(str(directory / "files")))
    agent = _agent(steps, manager, [])

    async def snapshot(event: MessageAddedEvent) -> None:
        await manager.save_snapshot(event.agent, is_latest=False)

    agent.add_hook(snapshot, MessageAddedEvent)
    await agent.invoke_async("Read them all.")
    (latest,) = (directory / "files").rglob("snapshot_latest.json")
    return Sizes(
        ours=size_of(directory / "ours.db"),
        theirs=size_of(directory / "files"),
        peer="immutable snapshots in files, at every message",
        note=f"the latest alone has {size_of(latest):,} bytes; with every tool journaled ours are "
        f"{size_of(directory / 'journaled.db'):,}",
    )


class _Reader(Model):
    """A model that asks for the next page, until it has them all."""

    def __init__(self, steps: int) -> None:
        self._steps = steps

    def update_config(self, **model_config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        said = sum(message["role"] == "assistant" for message in messages)
        is_last = said == self._steps
        yield {"messageStart": {"role": "assistant"}}
        use = {"name": "read", "toolUseId": f"call_{said}"}
        yield {"contentBlockStart": {"start": {} if is_last else {"toolUse": use}}}
        given = {"text": "All."} if is_last else {"toolUse": {"input": f'{{"number": {said}}}'}}
        yield {"contentBlockDelta": {"delta": given}}
        yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if is_last else "tool_use"}}


@tool
def read(number: int) -> str:
    """Read a page."""
    return page(number)


def _agent(steps: int, manager: SnapshotSessionManager, plugins: list[Any]) -> Agent:
    return Agent(
        model=_Reader(steps),
        tools=[read],
        session_manager=manager,
        plugins=plugins,
        conversation_manager=NullConversationManager(),  # all of it is kept, as by the others
        callback_handler=None,
    )
