"""What tools of AutoGen's agents do to the world: approval, unknown ends, compensations."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core import FunctionCall
from autogen_core.models import CreateResult

from holdfast import StillWaitingError, SyncClient, UnknownEffectError
from holdfast.adapters.autogen import ToolEffect, run
from tests.frameworks.autogen_kit import harbour_agent, says


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


class Mailer:
    """An agent that sends one mail."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.cut = False

    def agent(self) -> AssistantAgent:
        async def send(to: str) -> str:
            """Send a mail."""
            self.sent.append(to)
            if self.cut:
                await asyncio.Event().wait()
            return f"sent to {to}"

        def script(messages: Sequence[Any]) -> CreateResult:
            if messages[-1].type == "FunctionExecutionResultMessage":
                return says(f"result: {messages[-1].content[0].content}")
            return says([FunctionCall("call_1", '{"to": "ann"}', "send")])

        return harbour_agent(script, tools=[send])


async def test_an_irreversible_call_of_unknown_end_is_for_people_to_decide(
    client: SyncClient,
) -> None:
    mailer = Mailer()
    options: Any = {"session_id": "s", "client": client, "effects": {"send": "irreversible"}}
    mailer.cut = True
    task = asyncio.create_task(run(mailer.agent(), "write", **options))
    while not mailer.sent:
        await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    mailer.cut = False
    with pytest.raises(UnknownEffectError, match="send"):
        await run(mailer.agent(), "write", **options)

    with client.session("autogen", session_id="s") as opened:
        opened.unknown_effects()[0].mark_done("sent to ann")
    result = await run(mailer.agent(), "write", **options)

    assert mailer.sent == ["ann"]
    assert result.messages[-1].content == "result: sent to ann"


async def test_a_call_waits_for_approval(client: SyncClient) -> None:
    mailer = Mailer()
    options: Any = {
        "session_id": "s",
        "client": client,
        "effects": {"send": "irreversible"},
        "approval": "wait",
        "approval_timeout": 0.05,
    }
    with pytest.raises(StillWaitingError):
        await run(mailer.agent(), "write", **options)
    assert mailer.sent == []

    (question,) = client.pending()
    client.approve(question.effect_id, kwargs={"to": "bob"})
    result = await run(mailer.agent(), "write", **options)

    assert mailer.sent == ["bob"]
    assert result.messages[-1].content == "result: sent to bob"


async def test_going_back_undoes_what_tools_did(client: SyncClient) -> None:
    undone: list[Any] = []

    def unsend(output: str, to: str) -> None:
        undone.append((output, to))

    effects = {"send": ToolEffect("reversible", compensate=unsend)}
    await run(Mailer().agent(), "write", session_id="s", client=client, effects=effects)

    with client.session("autogen", session_id="s", tools=[unsend]) as opened:
        opened.rollback(to="user prompt")

    assert undone == [("sent to ann", "ann")]
