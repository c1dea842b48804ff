"""LlamaIndex workflows: a context after every step, against its own JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from benchmarks.frameworks.sizes import Sizes, size_of
from holdfast.adapters.llama_index import HoldfastRuntime

LINE = "The tide in harbour {} stood at {} cm, and the keeper wrote it down with care. "


class Turn(Event):
    """The next step is to be taken."""

    number: int


class Agent(Workflow):
    """Says something in every step, and remembers all of it."""

    steps: int

    @step
    async def begin(self, ctx: Context, event: StartEvent) -> Turn:
        return Turn(number=0)

    @step
    async def take(self, ctx: Context, event: Turn) -> Turn | StopEvent:
        history = await ctx.store.get("chat_history", default=[])
        text = "".join(LINE.format(event.number, i) for i in range(12))
        said = {"role": "assistant", "blocks": [{"block_type": "text", "text": text}]}
        await ctx.store.set("chat_history", [*history, said])
        ctx.write_event_to_stream(event)
        if event.number + 1 == self.steps:
            return StopEvent(result=event.number)
        return Turn(number=event.number + 1)


async def sizes(steps: int, directory: Path) -> Sizes:
    """Return what so many steps cost."""
    store = directory / "holdfast.db"
    runtime = HoldfastRuntime(url=f"sqlite:///{store}", session_id="bench")
    await _run(Agent(runtime=runtime), steps)
    runtime.close()
    own = directory / "own"
    own.mkdir()
    last = await _run(Agent(), steps, own)
    note = f"one file a step; the last alone is {len(json.dumps(last)) // 1024} KB"
    return Sizes(size_of(store), size_of(own), "`Context.to_dict()` as JSON", note)


async def _run(workflow: Agent, steps: int, directory: Path | None = None) -> dict[str, Any]:
    workflow.steps = steps
    handler = workflow.run()
    async for event in handler.stream_events():
        if directory is not None and isinstance(event, Turn):
            path = directory / f"{event.number}.json"
            path.write_text(json.dumps(handler.ctx.to_dict()), "utf-8")
    await handler
    kept: dict[str, Any] = handler.ctx.to_dict()
    return kept
