"""What the middleware keeps of an AgentScope agent's replies, and how they go on."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from agentscope.agent import Agent, InjectionConfig
from agentscope.event import (
    ConfirmResult,
    ExternalExecutionResultEvent,
    ReplyEndEvent,
    RequireUserConfirmEvent,
    ToolResultEndEvent,
    UserConfirmResultEvent,
)
from agentscope.exception import DeveloperOrientedException
from agentscope.message import (
    AssistantMsg,
    Msg,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolResultState,
    UserMsg,
)
from agentscope.middleware import MiddlewareBase
from agentscope.state import AgentState
from agentscope.tool import FunctionTool, ToolChunk, Toolkit
from pydantic import BaseModel

from holdfast import Client, Decision, SyncClient
from holdfast.adapters.agentscope import HoldfastMiddleware, ToolEffect
from holdfast.errors import (
    AdapterError,
    HoldfastError,
    InvalidArgumentError,
    SessionBusyError,
    StillWaitingError,
    StoreError,
    UnknownEffectError,
)
from tests.frameworks.jobs.agentscope import ALLOWED, ScriptedModel, call, say


class PowerCut(BaseException):
    """Ends a reply as a kill would."""


class World:
    """A store, what the model says in turn, and how often each tool ran."""

    def __init__(self, directory: Path) -> None:
        self.url = f"sqlite:///{directory / 'store.db'}"
        self.says: list[list[Any]] = []
        self.asked: list[list[Msg]] = []
        self.ran: list[str] = []
        self.tools: list[Any] = [self.look, self.send]
        self.cut_in: str | None = None

    def script(self, messages: list[Msg]) -> list[Any]:
        self.asked.append(messages)
        if self.cut_in == "model":
            self.cut_in = None
            raise PowerCut
        return self.says.pop(0)

    async def look(self, where: str = "here") -> ToolChunk:
        """Look somewhere."""
        return self._ran("look", f"saw {where}")

    async def send(self, text: str = "hi") -> ToolChunk:
        """Send a mail."""
        return self._ran("send", f"sent {text}")

    def _ran(self, name: str, text: str) -> ToolChunk:
        self.ran.append(name)
        if self.cut_in in (name, "both"):
            self.cut_in = None if self.cut_in == name else self.cut_in
            raise PowerCut
        return ToolChunk(content=[TextBlock(text=text)])

    def middleware(self, session_id: str = "s", **options: Any) -> HoldfastMiddleware:
        return HoldfastMiddleware(session_id=session_id, url=self.url, **options)

    def agent(
        self,
        middleware: HoldfastMiddleware,
        *more: MiddlewareBase,
        allowed: bool = True,
        **options: Any,
    ) -> Agent:
        permission = {"permission": ALLOWED} if allowed else {}
        tools = [
            each
            if isinstance(each, FunctionTool)
            else FunctionTool(each, is_concurrency_safe=False, **permission)
            for each in self.tools
        ]
        given = {"state": middleware.state(), **options}
        return Agent(
            name="clerk",
            system_prompt="Be short.",
            model=ScriptedModel(self.script),
            toolkit=Toolkit(tools=tools),
            middlewares=[middleware, *more],
            **given,
        )

    def steps(self, session_id: str = "s") -> list[str | None]:
        with SyncClient.open(self.url) as client:
            return [each.step_name for each in reversed(client.timeline("agentscope", session_id))]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def user(text: str) -> Msg:
    return UserMsg("user", text)


def said(state: AgentState) -> list[tuple[str, str]]:
    """Return what was said, by whom: texts, calls and answers."""
    found = []
    for message in state.context:
        for block in message.content:
            if isinstance(block, TextBlock):
                found.append((message.role, block.text))
            elif isinstance(block, ToolCallBlock):
                found.append(("call", block.id))
            elif isinstance(block, ToolResultBlock):
                output = block.output
                text = output if isinstance(output, str) else output[0].text
                found.append(("result", text))
    return found


# What is kept


async def test_every_step_is_a_checkpoint_and_the_next_reply_goes_on(world: World) -> None:
    world.says = [[call("look", "c1")], say("done"), say("again")]
    agent = world.agent(world.middleware())
    await agent.reply(user("look around"))
    assert world.steps() == ["start", "user prompt", "model", "tools", "model", "end"]

    later = world.agent(world.middleware())
    assert said(later.state) == said(agent.state)
    reply = await later.reply(user("and now?"))

    assert reply.get_text_content() == "again"
    assert said(later.state)[-2:] == [("user", "and now?"), ("assistant", "again")]


async def test_an_agent_made_without_its_state_gets_it_with_the_first_reply(world: World) -> None:
    world.says = [say("one"), say("two")]
    await world.agent(world.middleware()).reply(user("first"))
    agent = world.agent(world.middleware(), state=None)
    await agent.reply(user("second"))

    assert [text for _, text in said(agent.state)] == ["first", "one", "second", "two"]


async def test_what_was_observed_between_replies_is_kept(world: World) -> None:
    world.says = [say("one"), say("two")]
    agent = world.agent(world.middleware())
    await agent.reply(user("first"))
    await agent.observe(AssistantMsg("other", "overheard"))
    await agent.reply(user("second"))

    state = world.middleware().state()
    assert state is not None
    assert ("assistant", "overheard") in said(state)


async def test_an_agent_with_a_state_of_its_own_may_begin_a_session(world: World) -> None:
    world.says = [say("ok")]
    own = AgentState(context=[user("from before")])
    await world.agent(world.middleware(), state=own).reply(user("go on"))

    state = world.middleware().state()
    assert state is not None
    assert [text for _, text in said(state)] == ["from before", "go on", "ok"]


async def test_a_clients_store_is_used_and_left_open(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.says = [say("ok")]
    async with Client.open(world.url) as client:
        middleware = HoldfastMiddleware(session_id="s", client=client)
        await world.agent(middleware).reply(user("hello"))
        await middleware.aclose()

        assert (await client.latest("agentscope", "s")) is not None


async def test_events_of_a_reply_are_streamed_as_ever_and_its_end_comes_last(world: World) -> None:
    world.says = [[call("look", "c1")], say("done")]
    agent = world.agent(world.middleware())
    events = [event async for event in agent.reply_stream(user("hi"), yield_final_msg=True)]

    kinds = [type(event).__name__ for event in events]
    assert kinds[0] == "ReplyStartEvent"
    assert kinds[-2:] == ["ReplyEndEvent", "Msg"]
    assert "ToolResultTextDeltaEvent" in kinds


# Going on where a reply was cut short


async def test_a_reply_cut_in_the_model_has_its_prompt_once(world: World) -> None:
    world.says, world.cut_in = [say("done")], "model"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware()).reply(user("hello"))
    agent = world.agent(world.middleware())
    await agent.reply(user("hello"))

    assert said(agent.state) == [("user", "hello"), ("assistant", "done")]
    assert len(world.asked) == 2


async def test_a_reply_goes_on_without_a_prompt_too(world: World) -> None:
    world.says, world.cut_in = [say("done")], "model"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware()).reply(user("hello"))
    agent = world.agent(world.middleware())
    await agent.reply(None)

    assert said(agent.state) == [("user", "hello"), ("assistant", "done")]


async def test_a_tool_that_finished_is_not_run_again(world: World) -> None:
    world.says, world.cut_in = [[call("look", "c1"), call("send", "c2")], say("done")], "send"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware()).reply(user("hello"))
    agent = world.agent(world.middleware())
    await agent.reply(user("hello"))

    assert world.ran == ["look", "send", "send"]
    assert [what for what, _ in said(agent.state)] == [
        "user",
        "call",
        "call",
        "result",
        "result",
        "assistant",
    ]
    assert len(agent.state.context) == 2  # one message for the whole reply, as without the cut


class CutAtEnd(MiddlewareBase):
    """Cuts a reply when all was said, before it is given to the caller."""

    async def on_reply(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Any
    ) -> AsyncGenerator[Any, None]:
        async for item in next_handler(**input_kwargs):
            if isinstance(item, ReplyEndEvent):
                raise PowerCut
            yield item


async def test_a_model_that_gave_its_last_answer_is_not_asked_again(world: World) -> None:
    world.says = [say("the answer")]
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(), CutAtEnd()).reply(user("hello"))
    agent = world.agent(world.middleware())
    reply = await agent.reply(user("hello"))

    assert reply.get_text_content() == "the answer"
    assert said(agent.state) == [("user", "hello"), ("assistant", "the answer")]
    assert len(world.asked) == 1


async def test_hints_are_given_once(world: World) -> None:
    world.says, world.cut_in = [[call("look", "c1")], say("done")], None
    agent = world.agent(world.middleware(), injection_config=InjectionConfig())
    await agent.reply(user("hello"))
    world.says = [say("the answer")]
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(), CutAtEnd()).reply(user("and"))
    later = world.agent(world.middleware())
    await later.reply(user("and"))

    hints = [b for m in later.state.context for b in m.content if b.type == "hint"]
    assert len(hints) == 1


class Summing(MiddlewareBase):
    """Sums up what was said, once."""

    made = 0

    async def on_compress_context(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Any
    ) -> None:
        if not agent.state.summary:
            self.made += 1
            agent.state.summary = "They said hello."


async def test_a_summary_that_was_made_before_a_cut_is_not_made_again(world: World) -> None:
    summing = Summing()
    world.says, world.cut_in = [say("done")], "model"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(), summing).reply(user("hello"))
    assert world.steps() == ["start", "user prompt", "summary"]
    agent = world.agent(world.middleware(), summing)
    await agent.reply(user("hello"))

    assert summing.made == 1
    assert agent.state.summary == "They said hello."
    assert said(agent.state) == [("user", "hello"), ("assistant", "done")]


async def test_another_prompt_leaves_the_reply_that_was_cut_and_answers_its_calls(
    world: World,
) -> None:
    world.says, world.cut_in = [[call("look", "c1"), call("send", "c2")], say("done")], "send"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware()).reply(user("hello"))
    agent = world.agent(world.middleware())
    await agent.reply(user("never mind"))

    assert said(agent.state) == [
        ("user", "hello"),
        ("call", "c1"),
        ("call", "c2"),
        ("result", "saw here"),
        ("result", "[Tool call interrupted: whether it took place is not known.]"),
        ("user", "never mind"),
        ("assistant", "done"),
    ]
    assert world.ran == ["look", "send"]


async def test_calls_that_nothing_ever_answered_are_answered_on_load(world: World) -> None:
    orphan = AssistantMsg("clerk", [ToolCallBlock(id="lost", name="look", input="{}")])
    own = AgentState(context=[user("one"), orphan, user("two")])
    world.says = [say("ok")]
    with SyncClient.open(world.url) as client:
        client.save(
            "agentscope",
            framework="agentscope",
            session_id="s",
            execution_state={"agent": own.model_dump(mode="json"), "reply": {"stage": "ended"}},
        )
    state = world.middleware().state()

    assert state is not None
    answer = state.context[1].content[-1]
    assert isinstance(answer, ToolResultBlock)
    assert (answer.id, answer.state) == ("lost", ToolResultState.INTERRUPTED)


async def test_a_model_that_repeats_the_id_of_a_call_in_a_later_reply_gets_its_tool_run(
    world: World,
) -> None:
    world.says = [[call("look", "call_0")], say("one"), [call("look", "call_0")], say("two")]
    agent = world.agent(world.middleware())
    await agent.reply(user("first"))
    await agent.reply(user("second"))

    assert world.ran == ["look", "look"]


class Answer(BaseModel):
    word: str


async def test_structured_output_is_given_after_a_cut(world: World) -> None:
    output = '{"word": "kelp"}'
    world.says = [[call("GenerateStructuredOutput", "c1", output)]]
    probe = world.agent(world.middleware("probe"))
    reply = await probe.reply(user("a word"), structured_schema=Answer)
    assert reply.structured_output == {"word": "kelp"}

    world.says = [[call("look", "c0"), call("GenerateStructuredOutput", "c1", output)]]
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(), CutAtEnd()).reply(
            user("a word"), structured_schema=Answer
        )
    again = await world.agent(world.middleware()).reply(user("a word"), structured_schema=Answer)

    assert again.structured_output == {"word": "kelp"}
    assert world.ran == ["look"]


async def test_tools_that_change_the_agents_state_have_changed_it_after_a_cut(
    world: World,
) -> None:
    async def note(_agent_state: AgentState) -> ToolChunk:
        """Note something."""
        world.ran.append("note")
        _agent_state.middle_context["noted"] = [*_agent_state.middle_context.get("noted", []), 1]
        return ToolChunk(content=[TextBlock(text="noted")])

    schema: dict[str, Any] = {"type": "object", "properties": {}}
    world.tools.append(
        FunctionTool(
            note,
            is_state_injected=True,
            permission=ALLOWED,
            is_concurrency_safe=False,
            input_schema=schema,
        )
    )
    world.says, world.cut_in = [[call("note", "c1"), call("send", "c2")], say("done")], "send"
    with pytest.raises(PowerCut):
        await world.agent(world.middleware()).reply(user("hello"))
    agent = world.agent(world.middleware())
    await agent.reply(user("hello"))

    assert world.ran == ["note", "send", "send"]
    assert agent.state.middle_context["noted"] == [1]


@pytest.mark.parametrize("is_restarted", [False, True])
async def test_a_prompt_that_is_given_again_after_an_error_of_the_model_is_there_once(
    world: World, is_restarted: bool
) -> None:
    agent = world.agent(world.middleware())
    with pytest.raises(IndexError):  # nothing is scripted
        await agent.reply(user("hello"))
    world.says = [say("done")]
    again = world.agent(world.middleware()) if is_restarted else agent
    await again.reply(user("hello"))

    assert said(again.state) == [("user", "hello"), ("assistant", "done")]


def test_one_agent_may_reply_on_one_event_loop_after_another(world: World) -> None:
    world.says = [say("one"), say("two")]
    agent = world.agent(world.middleware())
    asyncio.run(agent.reply(user("first")))
    asyncio.run(agent.reply(user("second")))

    assert [text for _, text in said(agent.state)] == ["first", "one", "second", "two"]


async def test_a_stream_that_is_closed_early_leaves_a_reply_that_goes_on(world: World) -> None:
    world.says = [[call("look", "c1")], say("done")]
    agent = world.agent(world.middleware())
    events = agent.reply_stream(user("hello"))
    async for event in events:
        if isinstance(event, ToolResultEndEvent):
            break
    await events.aclose()
    while True:  # each layer of the stream is closed by the event loop, one after another
        try:
            await agent.reply(user("hello"))
            break
        except SessionBusyError:
            await asyncio.sleep(0)

    assert world.ran == ["look"]
    assert [text for role, text in said(agent.state) if role == "user"] == ["hello"]


# Permission, and tools that others execute


async def test_a_call_that_waits_for_permission_waits_after_a_restart(world: World) -> None:
    world.says = [[call("send", "c1")], say("done")]
    await world.agent(world.middleware(), allowed=False).reply(user("mail"))
    agent = world.agent(world.middleware(), allowed=False)
    events = [event async for event in agent.reply_stream(user("mail"))]

    (asked,) = [event for event in events if isinstance(event, RequireUserConfirmEvent)]
    assert [each.id for each in asked.tool_calls] == ["c1"]
    confirmed = [ConfirmResult(confirmed=True, tool_call=asked.tool_calls[0])]
    later = world.agent(world.middleware(), allowed=False)
    reply = await later.reply(
        UserConfirmResultEvent(reply_id=asked.reply_id, confirm_results=confirmed)
    )
    assert reply.get_text_content() == "done"
    assert world.ran == ["send"]


async def test_who_gave_permission_is_not_asked_again_after_a_cut(world: World) -> None:
    world.says = [[call("send", "c1")], say("done")]
    agent = world.agent(world.middleware(), allowed=False)
    await agent.reply(user("mail"))
    (waiting,) = agent.state.get_awaiting_tool_calls("clerk")
    world.cut_in = "send"
    with pytest.raises(PowerCut):
        await agent.reply(
            UserConfirmResultEvent(
                reply_id=agent.state.reply_id,
                confirm_results=[ConfirmResult(confirmed=True, tool_call=waiting)],
            )
        )
    reply = await world.agent(world.middleware(), allowed=False).reply(user("mail"))

    assert reply.get_text_content() == "done"
    assert world.ran == ["send", "send"]


async def test_what_others_executed_is_taken_up_after_a_restart(world: World) -> None:
    external = FunctionTool(world.send, permission=ALLOWED)
    external.is_external_tool = True
    world.tools = [external]
    world.says = [[call("send", "c1")], say("done")]
    await world.agent(world.middleware()).reply(user("mail"))
    agent = world.agent(world.middleware())
    result = ToolResultBlock(id="c1", name="send", output="sent", state=ToolResultState.SUCCESS)
    reply = await agent.reply(
        ExternalExecutionResultEvent(reply_id=agent.state.reply_id, execution_results=[result])
    )

    assert reply.get_text_content() == "done"
    assert world.ran == []


# Effects, rollback, fork, files


async def test_an_irreversible_call_of_unknown_end_is_not_made_again(world: World) -> None:
    world.says, world.cut_in = [[call("send", "c1")], say("done")], "send"
    effects = {"send": "irreversible"}
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    with pytest.raises(UnknownEffectError, match="send"):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    async with Client.open(world.url) as client, client.session("agentscope", "s") as run:
        (unknown,) = run.unknown_effects()
        await unknown.mark_done("sent by hand")
    agent = world.agent(world.middleware(effects=effects))
    await agent.reply(user("mail"))

    assert world.ran == ["send"]
    assert ("result", "sent by hand") in said(agent.state)


@pytest.mark.parametrize("prompt", ["mail", "something else"])
async def test_a_call_that_somebody_says_has_failed_is_told_to_the_model_as_that(
    world: World, prompt: str
) -> None:
    world.says, world.cut_in = [[call("send", "c1")], say("a pity"), say("hm")], "send"
    effects = {"send": "irreversible"}
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    async with Client.open(world.url) as client, client.session("agentscope", "s") as run:
        (unknown,) = run.unknown_effects()
        await unknown.mark_failed("no such address")
    agent = world.agent(world.middleware(effects=effects))
    reply = await agent.reply(user(prompt))
    await world.agent(world.middleware(effects=effects)).reply(user("mail"))

    assert reply.get_text_content() == "a pity"
    assert world.ran == ["send"]
    (result,) = [
        b for m in agent.state.context for b in m.content if isinstance(b, ToolResultBlock)
    ]
    assert result.state == ToolResultState.ERROR
    assert ("result", "no such address") in said(agent.state)


async def test_a_call_said_to_have_failed_is_not_made_while_another_is_undecided(
    world: World,
) -> None:
    world.tools = [FunctionTool(each, permission=ALLOWED) for each in (world.look, world.send)]
    world.says, world.cut_in = [[call("look", "c1"), call("send", "c2")], say("done")], "both"
    effects = {"look": "irreversible", "send": "irreversible"}
    with pytest.raises(UnknownEffectError):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    async with Client.open(world.url) as client, client.session("agentscope", "s") as run:
        await run.unknown_effects()[0].mark_failed("nobody is there")
    with pytest.raises(UnknownEffectError):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    async with Client.open(world.url) as client, client.session("agentscope", "s") as run:
        (unknown,) = run.unknown_effects()
        await unknown.mark_done("sent by hand")
    reply = await world.agent(world.middleware(effects=effects)).reply(user("mail"))

    assert reply.get_text_content() == "done"
    assert sorted(world.ran) == ["look", "send"]


async def test_a_call_said_to_have_failed_is_not_made_when_the_reply_fails_for_another_reason(
    world: World,
) -> None:
    faults: list[BaseException] = [DeveloperOrientedException("a fault of the program")]

    async def check() -> ToolChunk:
        """Check it."""
        if faults:
            raise faults.pop()
        return ToolChunk(content=[TextBlock(text="checked")])

    world.tools = [world.send, check]
    world.says, world.cut_in = [[call("send", "c1"), call("check", "c2")], say("done")], "send"
    effects = {"send": "irreversible"}
    with pytest.raises(PowerCut):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    async with Client.open(world.url) as client, client.session("agentscope", "s") as run:
        await run.unknown_effects()[0].mark_failed("no such address")
    with pytest.raises(DeveloperOrientedException):
        await world.agent(world.middleware(effects=effects)).reply(user("mail"))
    agent = world.agent(world.middleware(effects=effects))
    await agent.reply(user("mail"))

    assert world.ran == ["send"]
    assert ("result", "no such address") in said(agent.state)


async def test_of_calls_at_once_one_of_unknown_end_is_the_error_that_the_user_sees(
    world: World,
) -> None:
    world.tools = [FunctionTool(each, permission=ALLOWED) for each in (world.look, world.send)]
    world.says, world.cut_in = [[call("look", "c1"), call("send", "c2")], say("done")], "send"
    for _ in range(2):  # the cut itself AgentScope does not tell of, of calls made at once
        agent = world.agent(world.middleware(effects={"send": "irreversible"}))
        with pytest.raises(UnknownEffectError, match="send"):
            await agent.reply(user("mail"))

    assert world.ran == ["look", "send"]


async def test_a_call_waits_for_approval_by_another_process(world: World) -> None:
    world.says = [[call("send", "c1")], say("done")]
    options: dict[str, Any] = {"effects": {"send": "irreversible"}, "approval": "wait"}
    options |= {"approval_timeout": 0}
    with pytest.raises(StillWaitingError):
        await world.agent(world.middleware(**options)).reply(user("mail"))
    with SyncClient.open(world.url) as client:
        (waiting,) = client.pending()
        client.approve(waiting.effect_id)
    reply = await world.agent(world.middleware(**options)).reply(user("mail"))

    assert reply.get_text_content() == "done"
    assert world.ran == ["send"]


async def test_a_call_that_was_denied_is_told_to_the_model(world: World) -> None:
    world.says = [[call("send", "c1")], say("as you wish")]
    agent = world.agent(
        world.middleware(effects={"send": "irreversible"}, approval=lambda effect: False)
    )
    reply = await agent.reply(user("mail"))

    assert reply.get_text_content() == "as you wish"
    assert world.ran == []
    results = [b for b in agent.state.context[-1].content if isinstance(b, ToolResultBlock)]
    assert [each.state for each in results] == [ToolResultState.DENIED]


async def test_an_approver_may_edit_the_arguments(world: World) -> None:
    world.says = [[call("send", "c1", '{"text": "rude"}')], say("done")]
    agent = world.agent(
        world.middleware(
            effects={"send": "irreversible"},
            approval=lambda effect: Decision(allowed=True, kwargs={"text": "polite"}),
        )
    )
    await agent.reply(user("mail"))

    assert ("result", "sent polite") in said(agent.state)


async def test_rolling_back_undoes_a_tool_and_the_reply_goes_on_from_there(world: World) -> None:
    undone: list[Any] = []

    def unsend(output: Any, **arguments: Any) -> None:
        undone.append(arguments)

    effects = {"send": ToolEffect("reversible", compensate=unsend)}
    world.says = [[call("send", "c1", '{"text": "x"}')], say("done"), say("other")]
    agent = world.agent(world.middleware(effects=effects))
    await agent.reply(user("mail"))
    async with (
        Client.open(world.url) as client,
        client.session("agentscope", "s", tools=[unsend]) as run,
    ):
        await run.rollback(to="user prompt")
    assert undone == [{"text": "x"}]
    reply = await agent.reply(user("mail"))  # the same agent sees that it was rolled back

    assert reply.get_text_content() == "other"
    assert said(agent.state) == [("user", "mail"), ("assistant", "other")]


def test_the_command_line_tells_of_a_reply_and_rolls_it_back(world: World) -> None:
    world.says = [[call("look", "c1")], say("done"), say("other")]
    asyncio.run(world.agent(world.middleware()).reply(user("look around")))

    def holdfast(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast", *words],
            env={**os.environ, "HOLDFAST_URL": world.url},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert "user prompt" in holdfast("log", "s")
    assert "look around" in holdfast("show", "s@", "--messages")
    holdfast("rollback", "user prompt", "--session", "s", "--yes")
    agent = world.agent(world.middleware())
    asyncio.run(agent.reply(user("look around")))

    assert said(agent.state) == [("user", "look around"), ("assistant", "other")]


async def test_steps_of_a_reply_are_compared(world: World) -> None:
    world.says = [say("hi")]
    await world.agent(world.middleware()).reply(user("hello"))
    with SyncClient.open(world.url) as client:
        model, prompt = client.timeline("agentscope", "s")[1:3]
        changes = str(client.diff(prompt.checkpoint_id, model.checkpoint_id))

    assert "$.agent.context[1]" in changes


async def test_a_fork_goes_its_own_way(world: World) -> None:
    world.says = [say("one"), say("two"), say("three")]
    await world.agent(world.middleware()).reply(user("first"))
    with SyncClient.open(world.url) as client:
        head = client.latest("agentscope", "s")
        assert head is not None
        client.fork(head.checkpoint_id, session_id="other")
    forked = world.agent(world.middleware("other"))
    await forked.reply(user("second"))
    state = world.middleware().state()

    assert [text for _, text in said(forked.state)] == ["first", "one", "second", "two"]
    assert state is not None
    assert [text for _, text in said(state)] == ["first", "one"]


async def test_files_are_kept_with_the_reply_and_go_back_with_it(
    world: World, tmp_path: Path
) -> None:
    place = tmp_path / "repo"
    place.mkdir()

    async def write(text: str) -> ToolChunk:
        """Write the file."""
        (place / "note.txt").write_text(text)
        return ToolChunk(content=[TextBlock(text="written")])

    world.tools = [write]
    world.says = [[call("write", "c1", '{"text": "one"}')], say("done")]
    world.says += [[call("write", "c2", '{"text": "two"}')], say("done")]
    agent = world.agent(world.middleware(workspace=place))
    await agent.reply(user("first"))
    await agent.reply(user("second"))
    with SyncClient.open(world.url) as client:
        steps = client.timeline("agentscope", "s")
        first_end = [each for each in steps if each.step_name == "end"][-1]
        with client.session("agentscope", "s", workspace=place) as run:
            run.rollback(to=first_end.checkpoint_id)

    assert (place / "note.txt").read_text() == "one"
    state = world.middleware().state()
    assert state is not None
    assert ("user", "second") not in said(state)


# Bad input, others, and stores that fail


@pytest.mark.parametrize("session_id", ["", 3, None])
def test_a_session_id_is_a_name(session_id: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id"):
        HoldfastMiddleware(session_id=session_id, url="memory://")


def test_a_client_and_a_url_are_one_too_many() -> None:
    with SyncClient.memory() as client, pytest.raises(InvalidArgumentError, match="not both"):
        HoldfastMiddleware(session_id="s", client=client, url="memory://")


async def test_effects_of_a_tool_that_the_agent_does_not_have_are_refused(world: World) -> None:
    agent = world.agent(world.middleware(effects={"sned": "irreversible"}))
    with pytest.raises(InvalidArgumentError, match="'sned'"):
        await agent.reply(user("hello"))


async def test_a_session_of_another_framework_is_refused(world: World) -> None:
    with SyncClient.open(world.url) as client:
        client.save("agentscope", framework="strands", session_id="s", execution_state={})
    with pytest.raises(AdapterError, match="continue_in"):
        world.middleware().state()


@pytest.mark.parametrize("state", [{}, {"agent": 3}, {"agent": {"context": [{"role": "x"}]}}, []])
async def test_a_damaged_state_is_clearly_refused(world: World, state: Any) -> None:
    with SyncClient.open(world.url) as client:
        client.save("agentscope", framework="agentscope", session_id="s", execution_state=state)
    with pytest.raises(AdapterError, match="session 's'"):
        world.middleware().state()


async def test_an_agent_whose_state_is_not_the_sessions_is_refused(world: World) -> None:
    world.says = [say("one")]
    await world.agent(world.middleware()).reply(user("first"))
    other = world.agent(world.middleware(), state=AgentState(context=[user("something else")]))
    with pytest.raises(AdapterError, match="state of its own"):
        await other.reply(user("second"))


async def test_two_processes_do_not_reply_on_one_session_at_once(world: World) -> None:
    async with Client.open(world.url) as client, client.session("agentscope", "s"):
        with pytest.raises(HoldfastError, match="'s'"):
            await world.agent(world.middleware(), state=None).reply(user("hello"))


async def test_one_middleware_is_for_one_reply_at_a_time(world: World) -> None:
    entered, go_on = asyncio.Event(), asyncio.Event()

    async def wait() -> ToolChunk:
        """Wait."""
        entered.set()
        await go_on.wait()
        return ToolChunk(content=[TextBlock(text="waited")])

    world.tools = [wait]
    world.says = [[call("wait", "c1")], say("done")]
    middleware = world.middleware()
    first = asyncio.create_task(world.agent(middleware).reply(user("hello")))
    await entered.wait()
    with pytest.raises(SessionBusyError, match="middle of a reply"):
        await world.agent(middleware, state=None).reply(user("hello"))
    go_on.set()
    await first


async def test_a_checkpoint_that_cannot_be_written_fails_the_reply(world: World) -> None:
    client = SyncClient.open(world.url)
    world.says = [say("never heard")]
    middleware = HoldfastMiddleware(session_id="s", client=client)
    agent = world.agent(middleware)

    def closing(messages: list[Msg]) -> list[Any]:
        client.close()
        return say("never heard")

    agent.model.script = closing
    with pytest.raises(StoreError):
        await agent.reply(user("hello"))


async def test_a_reply_that_is_cancelled_is_kept_as_interrupted(world: World) -> None:
    entered = asyncio.Event()

    async def wait() -> ToolChunk:
        """Wait for ever."""
        entered.set()
        await asyncio.Event().wait()
        raise AssertionError

    world.tools = [wait]
    world.says = [[call("wait", "c1")], say("done")]
    agent = world.agent(world.middleware())
    replying = asyncio.create_task(agent.reply(user("hello")))
    await entered.wait()
    replying.cancel()
    await replying
    later = world.agent(world.middleware())
    reply = await later.reply(user("go on"))

    assert reply.get_text_content() == "done"
    results = [b for m in later.state.context for b in m.content if isinstance(b, ToolResultBlock)]
    assert [each.state for each in results] == [ToolResultState.INTERRUPTED]
