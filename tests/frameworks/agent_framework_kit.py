"""An agent of Microsoft Agent Framework with a scripted model, for jobs, legs and tests."""

from collections.abc import Callable, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)

from tests.frameworks.beside import first_tool_is_recorded
from tests.frameworks.kit import point, workspace
from tests.frameworks.reference import ANSWER, CALLS, RESULTS, SAID, SYSTEM

Script = Callable[[Sequence[Message]], list[Content]]


class ScriptedClient(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A model that answers as a function of the messages says, and remembers what it was sent."""

    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script = script
        self.sent: list[list[Message]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Any, **kwargs: Any
    ) -> Any:
        return self._streamed(messages) if stream else self._answer(messages)

    async def _answer(self, messages: Sequence[Message]) -> ChatResponse:
        contents = self._asked(messages)
        return ChatResponse(messages=[Message("assistant", contents)], response_id="r", model="m")

    def _streamed(self, messages: Sequence[Message]) -> Any:
        async def updates() -> Any:
            for content in self._asked(messages):
                yield ChatResponseUpdate(role="assistant", contents=[content])

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

    def _asked(self, messages: Sequence[Message]) -> list[Content]:
        self.sent.append(list(messages))
        point("model")
        contents = self.script(messages)
        point("model answered")
        return contents


def asks_twice(messages: Sequence[Message]) -> list[Content]:
    """Call both tools, and answer when their results are there, whatever was said before."""
    since = max(i for i, each in enumerate(messages) if each.role == "user")
    if any(each.role == "tool" for each in messages[since:]):
        return [Content.from_text(ANSWER)]
    return [Content.from_text(SAID), *calls()]


def calls() -> list[Content]:
    return [
        Content.from_function_call(each["id"], each["name"], arguments=each["arguments"])
        for each in CALLS
    ]


@tool(approval_mode="never_require")
async def depth(harbour: str, unit: str = "m") -> str:
    """Tell how deep a harbour is."""
    return await _measured("depth")


@tool(approval_mode="never_require")
async def tide(harbour: str) -> str:
    """Tell whether the water rises."""
    await first_tool_is_recorded()
    return await _measured("tide")


async def _measured(name: str) -> str:
    point(f"tool {name}")
    place = workspace()
    if place is not None:
        (place / f"{name}.txt").write_text(RESULTS[f"call_{name}"], "utf-8")
    point(f"tool {name} done")
    return RESULTS[f"call_{name}"]


def harbour_agent(provider: Any, script: Script = asks_twice, **options: Any) -> Agent:
    """Return the agent of the reference conversation."""
    given = {"tools": [depth, tide], "middleware": [provider.middleware], **options}
    return Agent(
        client=ScriptedClient(script),
        name="clerk",
        instructions=SYSTEM,
        context_providers=[provider],
        **given,
    )


def said(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Return who said what, in short."""
    return [(each.role, _short(each)) for each in messages]


def _short(message: Message) -> str:
    found = [each.text or each.call_id or each.type for each in message.contents]
    return " | ".join(map(str, found))
