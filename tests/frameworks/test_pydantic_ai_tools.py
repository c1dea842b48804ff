"""Tools of Pydantic AI's agents: what they gave comes back after a cut, and runs once."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.messages import BinaryImage, ToolReturn, ToolReturnPart
from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDenied

from holdfast import Client, SyncClient
from holdfast.adapters.portable import conversation
from holdfast.adapters.pydantic_ai import HoldfastCapability, ToolEffect
from holdfast.errors import (
    InvalidArgumentError,
    SerializationError,
    StillWaitingError,
    UnknownEffectError,
)
from holdfast.session.async_run import AsyncRun
from tests.frameworks.pydantic_ai_agents import (
    PowerCut,
    Script,
    agent_of,
    answers_in,
    call,
    said_in,
)

PNG = BinaryImage(b"\x89PNG\xff\xfb\xfe", media_type="image/png")


class Depth(BaseModel):
    metres: float
    at: datetime


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


class Cut:
    """A tool that is cut off the first time, behind another one that has ended."""

    def __init__(self) -> None:
        self.times = 0

    async def cut(self) -> str:
        self.times += 1
        await asyncio.sleep(0)
        if self.times == 1:
            raise PowerCut
        return "whole"


async def given_again(
    client: SyncClient, tool: Callable[..., Any], **options: Any
) -> tuple[Any, int]:
    """Return the part that answers a tool's call in a run that was cut off, and how often it ran.

    The other tool of the same answer is cut off when the first has ended.
    """
    ran = 0

    async def counted(ctx: RunContext[None]) -> Any:
        nonlocal ran
        ran += 1
        return tool()

    cut = Cut()
    script = Script([call("counted")], [call("cut")], "done", "done")
    capability = HoldfastCapability(client, session_id="s")
    agent = Agent(script.model, capabilities=[capability], retries=3, **options)
    agent.tool(counted, sequential=True)
    agent.tool_plain(cut.cut, sequential=True)
    script.answers = ([call("counted"), call("cut")], "done", "done")
    with pytest.raises(PowerCut):
        await agent.run("go")
    result = await agent.run("go")
    (part,) = [
        part
        for message in result.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart) and part.tool_call_id == "call_counted"
    ]
    return part, ran


@pytest.mark.parametrize(
    ("tool", "content"),
    [
        pytest.param(lambda: "12 m ✓", "12 m ✓", id="text"),
        pytest.param(lambda: None, None, id="nothing"),
        pytest.param(lambda: {"a": [1, 2.5, None]}, {"a": [1, 2.5, None]}, id="data"),
        pytest.param(
            lambda: Depth(metres=12.5, at=datetime(2026, 1, 2, tzinfo=UTC)),
            {"metres": 12.5, "at": "2026-01-02T00:00:00Z"},
            id="an object comes as what the model saw of it",
        ),
        pytest.param(lambda: (1, 2), [1, 2], id="a tuple is a list"),
        pytest.param(lambda: PNG, PNG, id="a picture"),
        pytest.param(lambda: ["see", PNG], ["see", PNG], id="text and a picture"),
        pytest.param(lambda: {"pydantic_ai": 1}, {"pydantic_ai": 1}, id="data that look like ours"),
    ],
)
async def test_what_a_tool_gave_comes_back(
    client: SyncClient, tool: Callable[..., Any], content: Any
) -> None:
    part, ran = await given_again(client, tool)
    assert part.content == content
    assert (part.outcome, ran) == ("success", 1)


async def test_a_rich_return_comes_back_with_all_its_parts(client: SyncClient) -> None:
    rich = ToolReturn("12 m", content=["look:", PNG], metadata={"source": "chart"})
    part, ran = await given_again(client, lambda: rich)
    assert (part.content, part.metadata, ran) == ("12 m", {"source": "chart"}, 1)
    found = conversation("s", client)
    assert found is not None
    assert any(part["type"] == "blob" for m in found.messages for part in m["parts"])


async def test_a_tool_that_asked_to_be_called_again_did_so_once(client: SyncClient) -> None:
    def retried() -> str:
        raise ModelRetry("give me a harbour")

    part, ran = await given_again(client, retried)
    assert (part.outcome, part.content, ran) == ("retried", "give me a harbour", 1)


async def test_a_tool_that_failed_for_good_is_not_run_again(client: SyncClient) -> None:
    def failed() -> str:
        raise ToolFailed("no such harbour")

    part, ran = await given_again(client, failed)
    assert (part.outcome, part.content, ran) == ("failed", "no such harbour", 1)


async def test_an_error_of_a_tool_ends_the_run_and_the_next_one_tries_again(
    client: SyncClient,
) -> None:
    tries = []

    def flaky() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionError("down")
        return "up"

    script = Script(call("flaky"), "done")
    agent = agent_of(script, HoldfastCapability(client, session_id="s"), [flaky])
    with pytest.raises(ConnectionError):
        await agent.run("go")
    assert (await agent.run("go")).output == "done"
    assert (len(tries), len(script.asked)) == (2, 2)


async def test_ids_that_a_model_repeats_are_told_apart(client: SyncClient) -> None:
    ran = []

    def look(at: str) -> str:
        ran.append(at)
        return at

    script = Script(call("look", "call_0", at="a"), call("look", "call_0", at="b"), "done")
    agent = agent_of(script, HoldfastCapability(client, session_id="s"), [look])
    assert (await agent.run("go")).output == "done"
    assert ran == ["a", "b"]


async def test_what_cannot_be_written_as_json_is_an_error_with_its_place(
    client: SyncClient,
) -> None:
    def odd() -> Any:
        return object()

    agent = agent_of(Script(call("odd"), "done"), HoldfastCapability(client, session_id="s"), [odd])
    with pytest.raises(SerializationError, match=r"\$.messages\[2\].parts\[0\] \(of odd\)"):
        await agent.run("go")


# Effects


async def cut_off_send(
    client: SyncClient, **options: Any
) -> tuple[Agent[Any, Any], list[str], Script]:
    """Return an agent whose mail was cut off while it was sent."""
    sent: list[str] = []

    async def send(to: str) -> str:
        sent.append(to)
        if len(sent) == 1:
            raise PowerCut
        return "sent"

    script = Script(call("send", to="bob"), "done", "done")
    capability = HoldfastCapability(
        client, session_id="s", effects={"send": "irreversible"}, **options
    )
    agent = agent_of(script, capability, [send])
    with pytest.raises(PowerCut):
        await agent.run("mail bob")
    return agent, sent, script


async def test_a_mail_of_which_nobody_knows_whether_it_was_sent_is_not_sent_again(
    client: SyncClient,
) -> None:
    agent, sent, _ = await cut_off_send(client)
    for prompt in ("mail bob", "something else"):
        with pytest.raises(UnknownEffectError, match="send"):
            await agent.run(prompt)
    assert sent == ["bob"]
    with client.session("pydantic_ai", "s") as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_done("sent")
    result = await agent.run("mail bob")
    assert answers_in(result.all_messages()) == {"call_send": "sent"}
    assert sent == ["bob"]


@pytest.mark.parametrize("prompt", ["mail bob", "something else"])
async def test_a_mail_that_somebody_says_failed_is_told_to_the_model_and_not_sent_again(
    client: SyncClient, prompt: str
) -> None:
    agent, sent, _ = await cut_off_send(client)
    with client.session("pydantic_ai", "s") as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_failed("the server said no")
    result = await agent.run(prompt)
    assert (result.output, sent) == ("done", ["bob"])
    (part,) = [p for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
    assert (part.outcome, part.content) == ("failed", "the server said no")


async def test_an_error_that_somebody_says_a_tool_raised_is_raised(client: SyncClient) -> None:
    agent, sent, _ = await cut_off_send(client)
    with client.session("pydantic_ai", "s") as run:
        (unknown,) = run.unknown_effects()
        unknown.mark_failed(ConnectionError("down"))
    with pytest.raises(ConnectionError, match="down"):
        await agent.run("mail bob")
    assert sent == ["bob"]


async def test_what_was_sent_is_not_sent_again_after_a_rollback(client: SyncClient) -> None:
    sent: list[str] = []

    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    capability = HoldfastCapability(client, session_id="s", effects={"send": "irreversible"})
    agent = agent_of(Script(call("send", to="bob"), "done"), capability, [send])
    await agent.run("mail bob")
    with client.session("pydantic_ai", "s") as run:
        run.rollback(to="user prompt", accept_irreversible=True)
    assert (await agent.run("mail bob")).output == "done"
    assert sent == ["bob"]


async def test_a_rollback_undoes_what_can_be_undone(client: SyncClient) -> None:
    undone = []

    def book(what: str) -> str:
        return f"booked {what}"

    def cancel(output: str, what: str) -> None:
        undone.append((output, what))

    effects = {"book": ToolEffect("reversible", compensate=cancel)}
    capability = HoldfastCapability(client, session_id="s", effects=effects)
    agent = agent_of(Script(call("book", what="berth 3"), "done"), capability, [book])
    await agent.run("book")
    with client.session("pydantic_ai", "s", tools=[cancel]) as run:
        run.rollback(to="user prompt")
    assert undone == [("booked berth 3", "berth 3")]


async def test_effects_of_tools_that_nobody_has_are_refused(client: SyncClient) -> None:
    capability = HoldfastCapability(client, session_id="s", effects={"sned": "irreversible"})
    agent = agent_of(Script("done"), capability, [Cut().cut])
    with pytest.raises(InvalidArgumentError, match=r"does not have: sned \(its tools are cut\)"):
        await agent.run("go")
    with pytest.raises(InvalidArgumentError, match="one of"):
        HoldfastCapability(client, effects={"send": "forever"})  # type: ignore[dict-item]
    with pytest.raises(InvalidArgumentError, match="effects is a dict"):
        HoldfastCapability(client, effects=["send"])  # type: ignore[arg-type]


async def test_a_call_that_is_not_allowed_is_told_to_the_model(client: SyncClient) -> None:
    sent: list[str] = []
    capability = HoldfastCapability(
        client, session_id="s", effects={"send": "irreversible"}, approval=lambda effect: False
    )
    agent = Agent(Script(call("send", to="all"), "as you like").model, capabilities=[capability])

    @agent.tool_plain
    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    result = await agent.run("mail all")
    assert (result.output, sent) == ("as you like", [])
    (part,) = [p for m in result.all_messages() for p in m.parts if isinstance(p, ToolReturnPart)]
    assert part.outcome == "denied"


async def test_a_call_waits_for_somebody_who_may_change_it(client: SyncClient) -> None:
    sent: list[tuple[str, int]] = []
    script = Script(call("send", to="all", copies=2), "done")
    capability = HoldfastCapability(
        client,
        session_id="s",
        effects={"send": "irreversible"},
        approval="wait",
        approval_timeout=0.05,
    )
    agent = Agent(script.model, capabilities=[capability])

    @agent.tool_plain
    def send(to: str, copies: int) -> str:
        sent.append((to, copies))
        return "sent"

    with pytest.raises(StillWaitingError):
        await agent.run("mail all")
    (question,) = client.pending()
    client.approve(question.effect_id, kwargs={"to": "bob", "copies": "1"})
    assert (await agent.run("mail all")).output == "done"
    assert (sent, len(script.asked)) == ([("bob", 1)], 2)


# Calls that the framework itself has wait


def mailer(client: SyncClient, sent: list[str]) -> tuple[Agent[Any, Any], Script]:
    script = Script([call("look"), call("send", to="bob")], "done")
    capability = HoldfastCapability(client, session_id="s")
    agent: Agent[Any, Any] = Agent(
        script.model, capabilities=[capability], output_type=[str, DeferredToolRequests]
    )

    @agent.tool_plain(requires_approval=True)
    def send(to: str) -> str:
        sent.append(to)
        return "sent"

    @agent.tool_plain
    def look() -> str:
        sent.append("looked")
        return "seen"

    return agent, script


async def test_a_run_that_waits_for_approval_goes_on_in_another_process(
    client: SyncClient,
) -> None:
    sent: list[str] = []
    agent, _ = mailer(client, sent)
    waiting = (await agent.run("mail bob")).output
    assert [each.tool_call_id for each in waiting.approvals] == ["call_send"]
    found = conversation("s", client)
    assert found is not None
    assert [(each["tool_call_id"], each["reason"]) for each in found.interrupts] == [
        ("call_send", "tool_approval")
    ]
    agent, script = mailer(client, sent)  # as if started anew
    result = await agent.run(
        deferred_tool_results=DeferredToolResults(approvals={"call_send": True})
    )
    assert (result.output, sent) == ("done", ["looked", "bob"])
    assert answers_in(result.all_messages()) == {"call_look": "seen", "call_send": "sent"}
    assert len(script.asked) == 1


@pytest.mark.parametrize("crashed", [False, True])
async def test_results_reach_the_calls_that_waited_whatever_became_of_the_process(
    client: SyncClient, monkeypatch: pytest.MonkeyPatch, crashed: bool
) -> None:
    monkeypatch.setattr(AsyncRun, "follows_crash", crashed)
    sent: list[str] = []
    agent, script = mailer(client, sent)
    await agent.run("mail bob")
    results = DeferredToolResults(approvals={"call_send": True})
    assert (await agent.run(deferred_tool_results=results)).output == "done"
    if crashed:  # then nobody had that result
        assert (await agent.run(deferred_tool_results=results)).output == "done"
    assert (sent, len(script.asked)) == (["looked", "bob"], 2)


async def test_an_approved_call_that_was_cut_off_runs_again_and_no_other(
    client: SyncClient,
) -> None:
    sent: list[str] = []
    fails = [PowerCut(), None, PowerCut()]
    script = Script([call("send", to="bob")], "done")
    agent: Agent[Any, Any] = Agent(
        script.model,
        capabilities=[HoldfastCapability(client, session_id="s")],
        output_type=[str, DeferredToolRequests],
    )

    @agent.tool_plain(requires_approval=True)
    def send(to: str) -> str:
        sent.append(to)
        if (error := fails.pop(0)) is not None:
            raise error
        return "sent"

    @agent.output_validator
    def late(output: Any) -> Any:
        if output == "done" and fails and (error := fails.pop(0)) is not None:
            raise error
        return output

    await agent.run("mail bob")
    results = DeferredToolResults(approvals={"call_send": True})
    for _ in range(2):  # in the tool, and when it and the model have answered
        with pytest.raises(PowerCut):
            await agent.run(deferred_tool_results=results)
    assert (await agent.run(deferred_tool_results=results)).output == "done"
    assert (sent, len(script.asked)) == (["bob", "bob"], 2)


async def test_a_denied_call_and_one_done_elsewhere_are_answered(client: SyncClient) -> None:
    agent, _ = mailer(client, [])
    await agent.run("mail bob")
    results = DeferredToolResults(approvals={"call_send": ToolDenied("not now")})
    result = await agent.run(deferred_tool_results=results)
    assert answers_in(result.all_messages())["call_send"] == "not now"


async def test_a_tool_that_itself_asks_for_approval_is_run_when_it_has_it(
    client: SyncClient,
) -> None:
    sent: list[str] = []
    script = Script([call("send", to="bob"), call("outside")], "done")
    agent: Agent[Any, Any] = Agent(
        script.model,
        capabilities=[HoldfastCapability(client, session_id="s")],
        output_type=[str, DeferredToolRequests],
    )

    cuts: list[bool] = []

    @agent.tool(sequential=True)
    def send(ctx: RunContext[None], to: str) -> str:
        if not ctx.tool_call_approved:
            raise ApprovalRequired(metadata={"why": "new"})
        sent.append(to)
        return "sent"

    @agent.tool_plain(sequential=True)
    def outside() -> str:
        if not cuts:
            cuts.append(True)
            raise PowerCut
        raise CallDeferred

    with pytest.raises(PowerCut):
        await agent.run("mail bob")
    waiting = (await agent.run("mail bob")).output
    assert len(script.asked) == 1
    assert waiting.metadata == {"call_send": {"why": "new"}}
    results = DeferredToolResults(approvals={"call_send": True}, calls={"call_outside": "there"})
    result = await agent.run(deferred_tool_results=results)
    assert (result.output, sent) == ("done", ["bob"])
    assert said_in(result.all_messages()).count("tool-return") == 2


async def test_a_client_of_event_loops_serves_as_well() -> None:
    async with Client.memory() as client:
        agent = agent_of(Script("hello"), HoldfastCapability(client, session_id="s"))
        assert (await agent.run("hi")).output == "hello"
        assert len(await client.timeline("pydantic_ai", "s")) == 4
