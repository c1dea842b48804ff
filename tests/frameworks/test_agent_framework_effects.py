"""What tools of Agent Framework do to the world: approvals, unknown ends, compensations."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from agent_framework import AgentSession, Content, Message, tool

from holdfast import (
    Decision,
    InvalidArgumentError,
    StillWaitingError,
    SyncClient,
    UnknownEffectError,
)
from holdfast.adapters.agent_framework import HoldfastHistoryProvider, ToolEffect
from holdfast.adapters.portable import conversation
from tests.frameworks.agent_framework_kit import harbour_agent, said


class PowerCut(BaseException):
    """Ends a run as a kill would."""


class Mailer:
    """An agent that sends one mail, and counts what it does."""

    def __init__(self, mode: str = "never_require") -> None:
        self.mode = mode
        self.sent: list[str] = []
        self.asked = 0
        self.cut = False

    def script(self, messages: Sequence[Message]) -> list[Content]:
        self.asked += 1
        if messages[-1].role == "tool":
            return [Content.from_text(f"result: {messages[-1].contents[0].result}")]
        return [Content.from_function_call("call_1", "send", arguments={"to": "ann"})]

    def agent(self, provider: Any) -> Any:
        @tool(approval_mode=self.mode)
        async def send(to: str) -> str:
            """Send a mail."""
            self.sent.append(to)
            if self.cut:
                raise PowerCut
            return f"sent to {to}"

        return harbour_agent(provider, self.script, tools=[send])


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


@pytest.fixture
async def provider(client: SyncClient) -> AsyncIterator[HoldfastHistoryProvider]:
    provider = HoldfastHistoryProvider(client)
    yield provider
    await provider.aclose()


def session() -> AgentSession:
    return AgentSession(session_id="s")


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("per_call", [True, False])
async def test_a_question_of_approval_outlives_a_restart(
    provider: HoldfastHistoryProvider, approved: bool, per_call: bool
) -> None:
    mailer = Mailer("always_require")
    options = {"require_per_service_call_history_persistence": per_call}
    agent = mailer.agent(provider)
    agent.require_per_service_call_history_persistence = options[
        "require_per_service_call_history_persistence"
    ]
    first = await agent.run("write to ann", session=session())
    (request,) = first.user_input_requests
    assert mailer.sent == []
    found = conversation("s", provider.client)
    assert found is not None
    assert [each["tool_call_id"] for each in found.interrupts] == ["call_1"]

    kept = Content.from_dict(request.to_dict())  # as it comes to another process
    answer = Message("user", [kept.to_function_approval_response(approved)])
    again = Mailer("always_require")
    other = again.agent(provider)
    other.require_per_service_call_history_persistence = per_call
    result = await other.run(answer, session=session())

    assert again.sent == (["ann"] if approved else [])
    assert ("sent to ann" in result.text) is approved
    found = conversation("s", provider.client)
    assert found is not None
    assert found.interrupts == []
    assert found.problems() == []
    assert mailer.asked == again.asked == 1


async def test_an_approved_call_that_was_made_is_not_made_again(
    provider: HoldfastHistoryProvider,
) -> None:
    mailer = Mailer("always_require")
    first = await mailer.agent(provider).run("write to ann", session=session())
    answer = Message("user", [first.user_input_requests[0].to_function_approval_response(True)])

    class Fails(Mailer):
        def script(self, messages: Sequence[Message]) -> list[Content]:
            raise PowerCut

    failing = Fails("always_require")
    with pytest.raises(PowerCut):
        await failing.agent(provider).run(answer, session=session())
    assert failing.sent == ["ann"]

    result = await mailer.agent(provider).run(answer, session=session())

    assert mailer.sent == []
    assert result.text == "result: sent to ann"


class Pair:
    """An agent that makes two calls at once, of which only one needs the framework's approval."""

    def __init__(self, provider: HoldfastHistoryProvider) -> None:
        self.provider = provider
        self.ran: list[str] = []
        self.sent: list[list[tuple[str, list[str]]]] = []
        self.cut = False

    def script(self, messages: Sequence[Message]) -> list[Content]:
        self.sent.append([(each.role, list(map(_told, each.contents))) for each in messages])
        if messages[-1].role == "tool":
            return [Content.from_text("done")]
        n = sum(each.role == "user" for each in messages)
        return [Content.from_function_call(f"{name}{n}", name, arguments={}) for name in "ab"]

    async def run(self, given: Any) -> Any:
        @tool(approval_mode="always_require")
        async def a() -> str:
            self.ran.append("a")
            return "a-out"

        @tool(approval_mode="never_require")
        async def b() -> str:
            while "a" not in self.ran:
                await asyncio.sleep(0)
            self.ran.append("b")
            if self.cut:
                raise PowerCut
            return "b-out"

        agent = harbour_agent(self.provider, self.script, tools=[a, b])
        return await agent.run(given, session=session())


def _told(content: Content) -> str:
    return str(content.text or content.result or content.call_id)


def allowed(response: Any) -> Message:
    requests = response.user_input_requests
    return Message("user", [each.to_function_approval_response(True) for each in requests])


async def test_calls_beside_one_that_waits_are_answered_once_and_with_it(
    provider: HoldfastHistoryProvider,
) -> None:
    pair = Pair(provider)
    first = await pair.run("Hi")
    assert pair.ran == []
    await pair.run(allowed(first))

    assert pair.ran == ["a", "b"]
    assert pair.sent[-1] == [
        ("user", ["Hi"]),
        ("assistant", ["a1", "b1"]),
        ("tool", ["a-out", "b-out"]),
    ]


async def test_a_question_that_another_one_replaced_is_not_answered_late(
    provider: HoldfastHistoryProvider, caplog: pytest.LogCaptureFixture
) -> None:
    pair = Pair(provider)
    first = await pair.run("Hi")
    second = await pair.run("Other")
    assert pair.sent[-1] == [("user", ["Hi"]), ("user", ["Other"])]
    late = await pair.run(allowed(first))

    assert "Ignored an approval response" in caplog.text
    assert pair.ran == []
    assert second.user_input_requests
    assert late.user_input_requests


async def test_an_approved_call_is_not_made_again_by_another_prompt(
    provider: HoldfastHistoryProvider,
) -> None:
    pair = Pair(provider)
    first = await pair.run("Hi")
    pair.cut = True
    with pytest.raises(PowerCut):
        await pair.run(allowed(first))
    pair.cut = False
    await pair.run("Other")

    assert pair.ran == ["a", "b"]
    user, asked, (role, results), other = pair.sent[-1]
    assert (user, asked) == (("user", ["Hi"]), ("assistant", ["a1", "b1"]))
    assert (role, results[0]) == ("tool", "a-out")
    assert results[1].startswith("[interrupted")
    assert other == ("user", ["Other"])


async def test_an_irreversible_call_of_unknown_end_is_for_people_to_decide(
    client: SyncClient,
) -> None:
    provider = HoldfastHistoryProvider(client, effects={"send": "irreversible"})
    mailer = Mailer()
    mailer.cut = True
    with pytest.raises(PowerCut):
        await mailer.agent(provider).run("write to ann", session=session())
    mailer.cut = False
    with pytest.raises(UnknownEffectError, match="send"):
        await mailer.agent(provider).run("write to ann", session=session())
    assert mailer.sent == ["ann"]

    with client.session("agent_framework", session_id="s") as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_done("sent to ann")
    result = await mailer.agent(provider).run("write to ann", session=session())

    assert mailer.sent == ["ann"]
    assert result.text == "result: sent to ann"


async def test_a_call_waits_for_approval_in_holdfast(client: SyncClient) -> None:
    options: dict[str, Any] = {"effects": {"send": "irreversible"}, "approval": "wait"}
    provider = HoldfastHistoryProvider(client, approval_timeout=0.05, **options)
    mailer = Mailer()
    with pytest.raises(StillWaitingError):
        await mailer.agent(provider).run("write to ann", session=session())
    assert mailer.sent == []

    (question,) = client.pending()
    client.approve(question.effect_id, kwargs={"to": "bob"})
    result = await mailer.agent(provider).run("write to ann", session=session())

    assert mailer.sent == ["bob"]
    assert mailer.asked == 2
    assert result.text == "result: sent to bob"


@pytest.mark.parametrize(
    ("decision", "told"),
    [
        (False, "send was not allowed"),
        (Decision(False, "Ann is away"), "send was not allowed: Ann is away"),
    ],
)
async def test_a_denied_call_is_told_to_the_model(
    client: SyncClient, decision: Any, told: str
) -> None:
    effects: Any = {"send": "irreversible"}
    provider = HoldfastHistoryProvider(client, effects=effects, approval=lambda effect: decision)
    mailer = Mailer()

    result = await mailer.agent(provider).run("write to ann", session=session())

    assert mailer.sent == []
    assert result.text == f"result: {told}"


async def test_going_back_undoes_what_tools_did(client: SyncClient) -> None:
    undone: list[Any] = []

    def unsend(output: str, to: str) -> None:
        undone.append((output, to))

    effects = {"send": ToolEffect("reversible", compensate=unsend)}
    provider = HoldfastHistoryProvider(client, effects=effects)
    await Mailer().agent(provider).run("write to ann", session=session())

    with client.session("agent_framework", session_id="s", tools=[unsend]) as run:
        run.rollback(to="user prompt")

    assert undone == [("sent to ann", "ann")]


async def test_effects_of_a_tool_that_the_agent_does_not_have_are_refused(
    client: SyncClient,
) -> None:
    provider = HoldfastHistoryProvider(client, effects={"sned": "irreversible"})
    mailer = Mailer()

    with pytest.raises(InvalidArgumentError, match=r"'sned'.*its tools are send"):
        await mailer.agent(provider).run("write to ann", session=session())
    assert mailer.asked == 0


async def test_a_call_that_a_crash_left_behind_is_answered_where_only_history_is_kept(
    provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    call = {"type": "function_call", "call_id": "c", "name": "send", "arguments": "{}"}
    call["hosted"] = False  # type: ignore[assignment]
    asked = {"type": "message", "role": "user", "contents": [{"type": "text", "text": "hi"}]}
    orphan = {"type": "message", "role": "assistant", "contents": [call]}
    result = {
        "type": "function_result",
        "call_id": "c",
        "result": "ok",
        "items": [{"type": "text", "text": "ok"}],
    }
    answer = {"type": "message", "role": "tool", "contents": [result]}

    def saved(messages: list[Any], name: str) -> None:
        state = {"messages": messages}
        client.save("agent_framework", "agent_framework", state, session_id=name)

    saved([asked, orphan], "one")
    saved([asked, orphan, orphan, answer], "twice")

    alone = await provider.get_messages("one")
    assert said(alone)[1:] == [("assistant", "c"), ("tool", "c")]
    assert "interrupted" in alone[2].contents[0].result
    assert said(await provider.get_messages("twice")) == [
        ("user", "hi"),
        ("assistant", "c"),
        ("tool", "c"),
    ]
