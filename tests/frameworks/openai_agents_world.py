"""Agents of the OpenAI SDK for tests: what their model says follows from the conversation."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, FunctionTool, function_tool, set_tracing_disabled
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call

from holdfast import SyncClient

set_tracing_disabled(True)

Script = Callable[[Any], list[Any]]


def scripted(script: Script, times: int = 20) -> ScriptedModel:
    """Return a model that has no memory: it answers by what it is asked."""
    return ScriptedModel([ModelStep.respond(script)] * times)


def outputs(call: Any) -> list[Any]:
    """Return what tools gave so far in this conversation."""
    return [item["output"] for item in call.input if item.get("type") == "function_call_output"]


def users(items: list[Any]) -> list[Any]:
    """Return what the user said."""
    return [item["content"] for item in items if item.get("role") == "user"]


class World:
    """What happened, and an agent with two tools that it calls at once, then a third."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.requests: list[Any] = []
        self.fails_at: str | None = None
        self.instructions: Any = "Be brief."

    def happen(self, what: str) -> None:
        """Note what happens; it fails there, once, if that was wished."""
        self.happened.append(what)
        if self.fails_at == what:
            self.fails_at = None
            raise ConnectionError(what)

    def script(self, call: Any) -> list[Any]:
        """Call look and send at once, then send alone, then say done."""
        known = len(outputs(call))
        self.requests.append(call.input)
        self.happen(f"model {known}")
        if known == 0:
            first = function_call("look", {"q": "a"}, call_id="c1")
            return [assistant_message("Let me see"), first, _send("b", "c2")]
        if known == 2:
            return [_send("c", "c3")]
        return [assistant_message(f"done: {outputs(call)[-1]}")]

    def tools(self) -> list[FunctionTool]:
        """Return the tools."""

        @function_tool
        async def look(q: str) -> str:
            self.happen(f"look {q}")
            return f"found {q}"

        @function_tool
        async def send(q: str) -> str:
            self.happen(f"send {q}")
            return f"sent {q}"

        return [look, send]

    def agent(self, **changes: Any) -> Agent[Any]:
        """Return the agent as a program makes it that has just been started."""
        own: dict[str, Any] = {
            "name": "clerk",
            "instructions": self.instructions,
            "model": scripted(self.script),
            "tools": self.tools(),
        }
        return Agent(**(own | changes))


def _send(q: str, call_id: str) -> Any:
    return function_call("send", {"q": q}, call_id=call_id)


EVERYTHING = ["model 0", "look a", "send b", "model 2", "send c", "model 3"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient.memory() as client:
        yield client
