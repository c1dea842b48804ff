"""A run of Pydantic AI that was cut off goes on with the same lines, however it is started."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, RunContext, capture_run_messages
from pydantic_ai.exceptions import UsageLimitExceeded
from pydantic_ai.messages import BinaryImage, ModelRequest, TextPart, UserPromptPart
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import UsageLimits

from holdfast import SyncClient
from holdfast.adapters.portable import conversation
from holdfast.adapters.pydantic_ai import HoldfastCapability
from holdfast.errors import InvalidArgumentError
from holdfast.session.async_run import AsyncRun
from tests.frameworks.pydantic_ai_agents import (
    PowerCut,
    Script,
    agent_of,
    answers_in,
    call,
    said_in,
)


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


@pytest.fixture
def capability(client: SyncClient) -> HoldfastCapability:
    return HoldfastCapability(client, session_id="s")


class Tools:
    """Two tools, one of which can be cut off."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.cut = False

    async def depth(self) -> str:
        self.ran.append("depth")
        return "12 m"

    async def tide(self) -> str:
        self.ran.append("tide")
        if self.cut:
            raise PowerCut
        return "rising"


BOTH = [TextPart("Wait."), call("depth"), call("tide")]


async def cut_off(agent: Agent[Any, Any], tools: Tools, prompt: Any = "How deep?") -> None:
    tools.cut = True
    with pytest.raises(PowerCut):
        await agent.run(prompt)
    tools.cut = False


async def test_only_the_tool_that_was_cut_off_runs_again(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide], instructions="Be brief.")
    await cut_off(agent, tools)
    result = await agent.run("How deep?")
    assert result.output == "12 m, rising"
    assert tools.ran == ["depth", "tide", "tide"]
    assert len(script.asked) == 2
    kinds = ["user-prompt", "text", "tool-call", "tool-call", "tool-return", "tool-return", "text"]
    assert said_in(result.all_messages()) == kinds
    assert (result.usage.requests, result.usage.tool_calls) == (2, 2)


async def test_a_model_that_failed_is_asked_again_and_the_prompt_is_there_once(
    capability: HoldfastCapability,
) -> None:
    script = Script([ConnectionError("down"), TextPart("hello")])
    agent = agent_of(script, capability)
    with pytest.raises(ConnectionError):
        await agent.run("hi")
    result = await agent.run("hi")
    assert said_in(result.all_messages()) == ["user-prompt", "text"]
    assert len(script.asked) == 2


async def test_a_finished_turn_takes_the_prompt_as_a_new_one(
    capability: HoldfastCapability,
) -> None:
    script = Script("one", "two", "three")
    agent = agent_of(script, capability, instructions="Be brief.")
    said = [(await agent.run("again")).output for _ in range(2)]
    result = await agent.run("again")
    assert [*said, result.output] == ["one", "two", "three"]
    assert said_in(result.all_messages()) == ["user-prompt", "text"] * 3
    assert len(result.new_messages()) == 2


async def test_an_answer_that_was_kept_is_not_asked_for_again(client: SyncClient) -> None:
    script = Script("the answer")
    capability = HoldfastCapability(client, session_id="s")

    def stop(output: str) -> str:
        if len(script.asked) == 1 and not stopped:
            stopped.append(True)
            raise PowerCut
        return output

    stopped: list[bool] = []
    agent = agent_of(script, capability, instructions="Be brief.")
    agent.output_validator(stop)
    with pytest.raises(PowerCut):
        await agent.run("hi")
    assert (await agent.run("hi")).output == "the answer"
    assert len(script.asked) == 1


async def test_a_result_that_nobody_had_is_given_without_asking_again(
    capability: HoldfastCapability, monkeypatch: pytest.MonkeyPatch
) -> None:
    script, tools = Script(BOTH, "12 m, rising", "again"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide], instructions="Be brief.")
    first = await agent.run("How deep?")
    with monkeypatch.context() as patched:  # as if killed before it let go of the session
        patched.setattr(AsyncRun, "follows_crash", True)
        second = await agent.run("How deep?")
    assert second.output == first.output
    assert second.usage == first.usage
    assert (len(script.asked), tools.ran) == (2, ["depth", "tide"])
    assert (await agent.run("How deep?")).output == "again"


async def test_another_prompt_closes_the_turn_that_was_cut_off(
    capability: HoldfastCapability,
) -> None:
    script, tools = Script(BOTH, "never mind"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    await cut_off(agent, tools)
    result = await agent.run("Forget it.")
    assert result.output == "never mind"
    assert tools.ran == ["depth", "tide"]
    given = answers_in(result.all_messages())
    assert given["call_depth"] == "12 m"
    assert "interrupted" in str(given["call_tide"])
    found = conversation("s", capability.client)
    assert found is not None
    assert found.problems() == []


async def test_no_prompt_at_all_goes_on_too(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    await cut_off(agent, tools)
    assert (await agent.run()).output == "12 m, rising"
    assert tools.ran == ["depth", "tide", "tide"]


async def test_a_prompt_with_a_picture_is_known_again(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])

    def prompt() -> list[Any]:
        return ["How deep?", BinaryImage(b"\xff\xfb\xfe", media_type="image/png")]

    await cut_off(agent, tools, prompt())
    result = await agent.run(prompt())
    assert said_in(result.all_messages()).count("user-prompt") == 1
    assert result.all_messages()[0].parts[0].content[1].data == b"\xff\xfb\xfe"


class Answer(BaseModel):
    metres: int


async def test_a_typed_output_is_made_of_the_answer_that_was_kept(
    capability: HoldfastCapability,
) -> None:
    script, tools = Script(BOTH, call("final_result", metres=12), "and"), Tools()
    agent: Agent[Any, Any] = agent_of(
        script, capability, [tools.depth, tools.tide], output_type=[Answer, str]
    )
    await cut_off(agent, tools)
    result = await agent.run("How deep?")
    assert result.output == Answer(metres=12)
    assert (await agent.run("And now?")).output == "and"
    found = conversation("s", capability.client)
    assert found is not None
    assert found.problems() == []


async def test_streams_go_on_and_are_kept(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH[1:], "12 m, rising", "bye"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    tools.cut = True
    with pytest.raises(PowerCut):
        async with agent.run_stream("How deep?"):
            pass
    tools.cut = False
    async with agent.run_stream("How deep?") as stream:
        said = [text async for text in stream.stream_text(delta=True)]
    assert "".join(said).split() == ["12", "m,", "rising"]
    assert tools.ran == ["depth", "tide", "tide"]
    names = [step.step_name for step in capability.client.timeline("pydantic_ai", "s")]
    assert names == ["end", "model", "tools", "model", "user prompt", "start"]
    async with agent.run_stream("Thanks") as stream:
        await stream.get_output()
    found = conversation("s", capability.client)
    assert found is not None
    roles = [message["role"] for message in found.messages]
    assert roles[-4:] == ["tool", "assistant", "user", "assistant"]


async def test_the_answer_of_a_stream_is_kept_when_its_block_ends(
    capability: HoldfastCapability,
) -> None:
    script = Script("12 m, rising")
    agent = agent_of(script, capability)

    async def read_and_fail() -> None:
        async with agent.run_stream("How deep?") as stream:
            await stream.get_output()
            raise PowerCut

    with pytest.raises(PowerCut):
        await read_and_fail()
    async with agent.run_stream("How deep?") as stream:
        await stream.get_output()
    assert len(script.asked) == 2
    found = conversation("s", capability.client)
    assert found is not None
    assert [message["role"] for message in found.messages] == ["user", "assistant"]


async def test_a_streamed_output_tool_leaves_no_open_call(capability: HoldfastCapability) -> None:
    script = Script(call("final_result", metres=12), "bye")
    agent: Agent[Any, Any] = agent_of(script, capability, output_type=[Answer, str])
    async with agent.run_stream("How deep?") as stream:
        assert await stream.get_output() == Answer(metres=12)
    assert (await agent.run("Thanks")).output == "bye"


async def test_iter_and_events_go_on(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, "12 m, rising", BOTH_AGAIN, "still"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    await cut_off(agent, tools)
    async with agent.iter("How deep?") as run:
        nodes = [type(node).__name__ async for node in run]
    assert run.result is not None
    assert run.result.output == "12 m, rising"
    assert nodes[0] == "UserPromptNode"
    await cut_off(agent, tools, "And now?")
    async with agent.run_stream_events("And now?") as events:
        kinds = [event.event_kind async for event in events]
    assert kinds[-1] == "agent_run_result"
    assert tools.ran == ["depth", "tide", "tide"] * 2


BOTH_AGAIN = [call("depth", "call_3"), call("tide", "call_4")]


async def test_who_leaves_a_loop_over_nodes_early_goes_on_later(
    capability: HoldfastCapability,
) -> None:
    script, tools = Script(BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    async with agent.iter("How deep?") as run:
        async for node in run:
            if Agent.is_call_tools_node(node):
                break
    result = await agent.run("How deep?")
    assert result.output == "12 m, rising"
    assert (len(script.asked), tools.ran) == (2, ["depth", "tide"])


@pytest.fixture
def loop() -> Any:
    """The loop that ``run_sync`` takes, which it would not close."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield loop
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("loop")
def test_run_sync_goes_on(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, "12 m, rising", "bye"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    tools.cut = True
    with pytest.raises(PowerCut):
        agent.run_sync("How deep?")
    tools.cut = False
    assert agent.run_sync("How deep?").output == "12 m, rising"
    assert agent.run_sync("Thanks").output == "bye"
    assert tools.ran == ["depth", "tide", "tide"]


async def test_limits_count_what_was_used_before_the_cut(capability: HoldfastCapability) -> None:
    script, tools = Script(BOTH, BOTH_AGAIN, "12 m"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    await cut_off(agent, tools)
    with pytest.raises(UsageLimitExceeded):
        await agent.run("How deep?", usage_limits=UsageLimits(request_limit=2))
    assert len(script.asked) == 2
    result = await agent.run("How deep?")
    assert result.usage.requests == 3
    assert tools.ran == ["depth", "tide", "tide", "depth", "tide"]


async def test_an_agent_that_a_tool_asks_has_a_session_of_its_own_and_goes_on_in_it(
    client: SyncClient,
) -> None:
    capability = HoldfastCapability(client, session_id="s")
    inner_script, tools = Script(BOTH, "12 m, rising"), Tools()
    pilot = agent_of(inner_script, capability, [tools.depth, tools.tide])
    outer_script = Script(call("ask_pilot"), "The pilot says 12 m.")
    cuts = [False, True]

    async def ask_pilot(ctx: RunContext[None]) -> str:
        said = (await pilot.run("How deep?", usage=ctx.usage)).output
        if cuts.pop(0):
            raise PowerCut
        return str(said)

    harbour = agent_of(outer_script, capability, [ask_pilot])
    tools.cut = True
    with pytest.raises(PowerCut):
        await harbour.run("Ask the pilot.")
    tools.cut, cuts[:] = False, [True]
    with pytest.raises(PowerCut):  # when the pilot has answered
        await harbour.run("Ask the pilot.")
    cuts[:] = [False]
    result = await harbour.run("Ask the pilot.")
    assert result.output == "The pilot says 12 m."
    assert tools.ran == ["depth", "tide", "tide"]
    assert (len(inner_script.asked), len(outer_script.asked)) == (2, 2)
    assert result.usage.requests == 4
    names = {session.session_id for session in client.sessions("pydantic_ai")}
    assert names == {"s", "s.call_ask_pilot"}


async def test_what_a_finished_delegate_used_still_counts(client: SyncClient) -> None:
    capability = HoldfastCapability(client, session_id="s")
    pilot = agent_of(Script("12 m"), capability)
    tools = Tools()

    async def ask_pilot(ctx: RunContext[None]) -> str:
        return str((await pilot.run("How deep?", usage=ctx.usage)).output)

    script = Script([call("ask_pilot")], [call("tide")], "done")
    harbour = agent_of(script, capability, [ask_pilot, tools.tide])
    await cut_off(harbour, tools, "Ask.")
    assert (await harbour.run("Ask.")).usage.requests == 4


async def test_a_history_that_is_the_sessions_own_may_be_given(
    capability: HoldfastCapability,
) -> None:
    script = Script("one", "two", "three")
    agent = agent_of(script, capability)
    first = await agent.run("a")
    second = await agent.run("b", message_history=first.all_messages())
    assert len(second.all_messages()) == 4
    third = await agent.run("c", message_history=first.all_messages())
    assert len(third.all_messages()) == 6


async def test_a_new_session_begins_with_the_history_it_is_given(
    capability: HoldfastCapability,
) -> None:
    elsewhere = await Agent(TestModel(custom_output_text="hello")).run("hi")
    script, tools = Script("", BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    tools.cut = True
    with pytest.raises(PowerCut):
        await agent.run("How deep?", message_history=elsewhere.all_messages())
    tools.cut = False
    result = await agent.run("How deep?", message_history=elsewhere.all_messages())
    assert said_in(result.all_messages())[:3] == ["user-prompt", "text", "user-prompt"]
    assert said_in(result.all_messages()).count("user-prompt") == 2


async def test_another_history_than_the_sessions_is_refused(
    capability: HoldfastCapability,
) -> None:
    agent = agent_of(Script("one", "two"), capability)
    await agent.run("a")
    with pytest.raises(InvalidArgumentError, match="session 's' holds a conversation of 2"):
        await agent.run("b", message_history=[ModelRequest(parts=[UserPromptPart("other")])])


async def test_captured_messages_are_those_of_the_whole_run(
    capability: HoldfastCapability,
) -> None:
    script, tools = Script(BOTH, "12 m, rising"), Tools()
    agent = agent_of(script, capability, [tools.depth, tools.tide])
    await cut_off(agent, tools)
    with capture_run_messages() as captured:
        result = await agent.run("How deep?")
    assert captured == result.all_messages()
