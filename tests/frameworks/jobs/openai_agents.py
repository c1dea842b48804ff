"""An agent of the OpenAI SDK: two tools at once, one that writes a file, then an answer."""

import asyncio
from typing import Any

from agents import Agent, RunHooks, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from holdfast.adapters.openai_agents import HoldfastRunner
from tests.frameworks.kit import point, workspace
from tests.frameworks.reference import ANSWER, CALLS, PROMPT, RESULTS, SAID, SYSTEM

set_tracing_disabled(True)

depth_is_known = asyncio.Event()


class Hooks(RunHooks[Any]):
    """Tells when a tool has come to its end for the SDK too."""

    async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
        if tool.name == "depth":
            depth_is_known.set()


@function_tool
async def depth(harbour: str, unit: str = "m") -> str:
    """Tell how deep a harbour is."""
    point("tool depth")
    place = workspace()
    assert place is not None
    log = place / "log.txt"
    log.write_text(f"{log.read_text() if log.exists() else ''}{harbour}\n", "utf-8")
    point("tool depth done")
    return RESULTS["call_depth"]


@function_tool
async def tide(harbour: str) -> str:
    """Tell whether the water rises: begun together with the other, it ends later."""
    await depth_is_known.wait()
    point("tool tide")
    point("tool tide done")
    return RESULTS["call_tide"]


@function_tool
async def warn(harbour: str) -> str:
    """Warn the ships."""
    point("tool warn")
    point("tool warn done")
    return "gewarnt"


def answer(call: Any) -> list[Any]:
    """Answer as far as the conversation has come: the model itself remembers nothing."""
    point("model")
    done = sum(item.get("type") == "function_call_output" for item in call.input)
    users = sum(item.get("role") == "user" for item in call.input)
    assert users == 1, call.input
    point("model answered")
    if not done:
        calls = [function_call(c["name"], c["arguments"], call_id=c["id"]) for c in CALLS]
        return [assistant_message(SAID), *calls]
    if done == 2:
        return [function_call("warn", {"harbour": "Süd"}, call_id="call_warn")]
    return [assistant_message(ANSWER)]


def agent() -> Agent[Any]:
    """Return the agent, with a model that is as new as the process."""
    model = ScriptedModel([ModelStep.respond(answer)] * 9)
    return Agent(name="clerk", instructions=SYSTEM, model=model, tools=[depth, tide, warn])


async def main(url: str, session_id: str) -> Any:
    """Run it, or go on with it."""
    result = await HoldfastRunner.run(
        agent(), PROMPT, session_id=session_id, url=url, workspace=workspace(), hooks=Hooks()
    )
    place = workspace()
    assert place is not None
    return [result.final_output, result.to_input_list(), (place / "log.txt").read_text("utf-8")]
