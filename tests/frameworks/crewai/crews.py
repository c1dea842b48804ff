"""Crews for tests: models that answer by a script, and tools of each kind."""

import json
from typing import Any

from crewai import Agent, Crew, Task
from crewai.llms.base_llm import BaseLLM
from crewai.tools import BaseTool, tool
from pydantic import Field

used: list[str] = []
"""The tools that ran, in order."""


BROKEN = "(fails)"
"""The answer of a model that is to fail, as text."""


class Broken(Exception):
    """What a model raises that is told to fail."""


class Scripted(BaseLLM):
    """A model that answers with the next of its answers; an exception is raised."""

    answers: list[Any] = Field(default_factory=list)
    seen: list[Any] = Field(default_factory=list)

    def call(self, messages: Any, *args: Any, **options: Any) -> Any:
        self.seen.append([dict(message) for message in messages])
        answer = self.answers[len(self.seen) - 1]
        if answer == BROKEN:
            raise Broken
        if isinstance(answer, Exception):
            raise answer
        return answer

    def supports_function_calling(self) -> bool:
        return True


class Known(Scripted):
    """One that CrewAI can make again from text, once it is in its registry."""

    llm_type: str = "known"


@tool("lookup")
def lookup(city: str) -> str:
    """Look up how warm it is."""
    used.append(city)
    return f"{city}: 21 °C"


class Loud(BaseTool):
    name: str = "loud"
    description: str = "Say it loudly."

    def _run(self, text: str) -> str:
        used.append(text)
        return text.upper()


def call(name: str, number: int = 1, **arguments: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def agent(*answers: Any, tools: Any = (), kind: type[Scripted] = Scripted, **more: Any) -> Agent:
    model = kind(model="scripted", answers=list(answers), api_key="sk-secret")
    own = {"role": "writer", "goal": "write", "backstory": "Long.", "max_retry_limit": 0}
    return Agent(llm=model, tools=list(tools), **{**own, **more})


def crew(
    *answers: Any,
    callback: Any = None,
    descriptions: tuple[str, ...] = ("Find {what}.", "Write about it.", "Sign it."),
    tools: Any = (lookup,),
    kind: type[Scripted] = Scripted,
    **more: Any,
) -> Crew:
    """Return a crew of one agent with a task for each description."""
    writer = agent(*answers, tools=tools, kind=kind)
    tasks = [Task(description=each, expected_output="text", agent=writer) for each in descriptions]
    return Crew(agents=[writer], tasks=tasks, task_callback=callback, **more)


def asked(made: Crew) -> list[Any]:
    """Return what the model of a crew was asked."""
    found: list[Any] = made.agents[0].llm.seen
    return found


def raws(output: Any) -> list[str]:
    return [each.raw for each in output.tasks_output]
