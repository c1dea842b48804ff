"""A crew of three tasks, the first with two tools at once."""

import asyncio
import json
import os
from typing import Any

os.environ |= {
    "CREWAI_DISABLE_TELEMETRY": "true",
    "CREWAI_TRACING_ENABLED": "false",
    "OTEL_SDK_DISABLED": "true",
}

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool

from holdfast.adapters.crewai import HoldfastCheckpoints
from tests.frameworks import kit
from tests.frameworks.reference import ANSWER, CALLS, RESULTS

TASKS = ("Find how deep {harbour} is.", "Write it into the book.", "Tell the captain.")


def call(given: dict[str, Any]) -> dict[str, Any]:
    """Return a call as OpenAI's clients give it to CrewAI."""
    function = {"name": given["name"], "arguments": json.dumps(given["arguments"])}
    return {"id": given["id"], "type": "function", "function": function}


class Harbour(BaseLLM):
    """A model that answers by the task it is given, and by what tools have said."""

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        kit.point("model")
        said = " ".join(str(each["content"]) for each in messages if each["role"] == "user")
        if TASKS[1] in said:
            answer: Any = "written"
        elif TASKS[2] in said:
            answer = ANSWER
        elif any(message["role"] == "tool" for message in messages):
            answer = "12.5 m"
        else:
            answer = [call(each) for each in CALLS]
        kit.point("model done")
        return answer

    def supports_function_calling(self) -> bool:
        return True


@tool("depth")
def depth(harbour: str, unit: str = "m") -> str:
    """Tell how deep a harbour is."""
    kit.point("tool depth")
    kit.point("tool depth done")
    return RESULTS["call_depth"]


@tool("tide")
def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    kit.point("tool tide")
    kit.point("tool tide done")
    return RESULTS["call_tide"]


def harbour_crew(checkpoints: HoldfastCheckpoints) -> Crew:
    os.environ["CREWAI_STORAGE_DIR"] = str(kit.workspace())
    clerk = Agent(
        role="clerk",
        goal="know the harbour",
        backstory="Born there.",
        llm=Harbour(model="scripted"),
        tools=[depth, tide],
        max_retry_limit=0,
    )
    tasks = [Task(description=each, expected_output="text", agent=clerk) for each in TASKS]
    return Crew(agents=[clerk], tasks=tasks, task_callback=checkpoints)


def work(url: str, session_id: str) -> Any:
    with HoldfastCheckpoints(session_id=session_id, url=url) as checkpoints:
        crew = harbour_crew(checkpoints)
        checkpoints.resume(crew)
        output = crew.kickoff(inputs={"harbour": "Süd"})
        return [output.raw, [each.raw for each in output.tasks_output]]


async def main(url: str, session_id: str) -> Any:
    return await asyncio.to_thread(work, url, session_id)
