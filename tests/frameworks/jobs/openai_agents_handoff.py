"""Two agents of the OpenAI SDK, streamed: one hands over, the other asks before it warns."""

from typing import Any

from agents import Agent, function_tool, handoff, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from holdfast.adapters.openai_agents import HoldfastRunner
from tests.frameworks.kit import point
from tests.frameworks.reference import ANSWER, PROMPT

set_tracing_disabled(True)


@function_tool(needs_approval=True)
async def warn(harbour: str) -> str:
    """Warn the ships."""
    point("tool warn")
    point("tool warn done")
    return "gewarnt"


@function_tool
async def depth(harbour: str) -> str:
    """Tell how deep a harbour is."""
    point("tool depth")
    point("tool depth done")
    return "12 m"


def desk_says(call: Any) -> list[Any]:
    """Hand over at once."""
    point("model")
    point("model answered")
    return [function_call("transfer_to_expert", {}, call_id="call_handoff")]


def expert_says(call: Any) -> list[Any]:
    """Look, warn, then answer."""
    point("model")
    done = sum(item.get("type") == "function_call_output" for item in call.input)
    point("model answered")
    if done == 1:
        look = function_call("depth", {"harbour": "Süd"}, call_id="call_depth")
        return [look, function_call("warn", {"harbour": "Süd"}, call_id="call_warn")]
    return [assistant_message(ANSWER)]


def handed(context: Any) -> None:
    """Tell somebody of the handoff."""
    point("handoff")
    point("handoff done")


def desk() -> Agent[Any]:
    """Return the agents as a process makes them that has just begun."""
    answers = [ModelStep.respond(expert_says)] * 9
    expert = Agent(name="expert", model=ScriptedModel(answers), tools=[depth, warn])
    first = ScriptedModel([ModelStep.respond(desk_says)] * 9)
    return Agent(name="desk", model=first, handoffs=[handoff(expert, on_handoff=handed)])


async def main(url: str, session_id: str) -> Any:
    """Run it, or go on with it; whoever is asked says yes."""
    given: Any = PROMPT
    while True:
        run = HoldfastRunner.run_streamed(desk(), given, session_id=session_id, url=url)
        async for _ in run.stream_events():
            pass
        if not run.interruptions:
            return [run.final_output, run.last_agent.name, run.to_input_list()]
        given = run.to_state()
        for waiting in given.get_interruptions():
            given.approve(waiting)
