"""An agent as a LlamaIndex workflow: a model is asked, two tools run, it is asked again."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

from workflows import Context, Workflow, step
from workflows.events import Event, StartEvent, StopEvent

from holdfast.adapters.llama_index import HoldfastRuntime
from tests.frameworks import kit, reference
from tests.frameworks.kit import point

TOOLS = {"depth": reference.depth, "tide": reference.tide}


class Ask(Event):
    """The model is to be asked."""


class Call(Event):
    id: str
    name: str
    arguments: dict[str, Any]


class Result(Event):
    id: str
    text: str


def answer_of(history: list[dict[str, Any]]) -> dict[str, Any]:
    """Answer as the model of the reference conversation does."""
    if history[-1]["role"] == "user":
        calls = [
            {
                "block_type": "tool_call",
                "tool_call_id": call["id"],
                "tool_name": call["name"],
                "tool_kwargs": call["arguments"],
            }
            for call in reference.CALLS
        ]
        blocks = [{"block_type": "text", "text": reference.SAID}, *calls]
    else:
        blocks = [{"block_type": "text", "text": reference.ANSWER}]
    return {"role": "assistant", "additional_kwargs": {}, "blocks": blocks}


async def depth_is_kept() -> None:
    """Wait until the step that runs beside this one has ended, so that it need not run again."""
    world = os.environ.get(kit.WORLD)
    while world is not None:
        _, is_done, after = Path(world).read_text("utf-8").rpartition("tool depth done\n")
        if is_done and "sqlite:committed" in after:
            return
        await asyncio.sleep(0.001)


class Clerk(Workflow):
    """Answers a question with the help of two tools."""

    @step
    async def begin(self, ctx: Context, event: StartEvent) -> Ask:
        said = {"block_type": "text", "text": event.prompt}
        message = {"role": "user", "additional_kwargs": {}, "blocks": [said]}
        history = await ctx.store.get("chat_history", default=[])
        await ctx.store.set("chat_history", [*history, message])
        return Ask()

    @step
    async def ask(self, ctx: Context, event: Ask) -> Call | StopEvent | None:
        history = await ctx.store.get("chat_history")
        point("model")
        answer = answer_of(history)
        point("model answered")
        await ctx.store.set("chat_history", [*history, answer])
        calls = [block for block in answer["blocks"] if block["block_type"] == "tool_call"]
        if not calls:
            return StopEvent(result=answer["blocks"][0]["text"])
        for call in calls:
            ctx.send_event(
                Call(id=call["tool_call_id"], name=call["tool_name"], arguments=call["tool_kwargs"])
            )
        return None

    @step(num_workers=4)
    async def tool(self, ctx: Context, event: Call) -> Result:
        if event.name == "tide":
            await depth_is_kept()
        point(f"tool {event.name}")
        text = TOOLS[event.name](**event.arguments)
        place = kit.workspace()
        if place is not None:
            (place / f"{event.name}.txt").write_text(text, "utf-8")
        point(f"tool {event.name} done")
        return Result(id=event.id, text=text)

    @step
    async def collect(self, ctx: Context, event: Result) -> Ask | None:
        results = ctx.collect_events(event, [Result] * len(reference.CALLS))
        if results is None:
            return None
        history = await ctx.store.get("chat_history")
        by_id = {result.id: result.text for result in results}
        answers = [
            {
                "role": "tool",
                "additional_kwargs": {"tool_call_id": call["id"]},
                "blocks": [{"block_type": "text", "text": by_id[call["id"]]}],
            }
            for call in reference.CALLS
        ]
        await ctx.store.set("chat_history", [*history, *answers])
        return Ask()


async def main(url: str, session_id: str) -> Any:
    runtime = HoldfastRuntime(url=url, session_id=session_id)
    workflow = Clerk(runtime=runtime)
    handler = workflow.run(ctx=await runtime.aresume(workflow), prompt=reference.PROMPT)
    text = await handler
    state = await handler.ctx.store.get_state()
    runtime.close()
    return [text, json.loads(json.dumps(state["chat_history"]))]
