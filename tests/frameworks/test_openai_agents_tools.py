"""Tools of every kind that the OpenAI Agents SDK has, run through the journal."""

import asyncio
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    RunConfig,
    RunContextWrapper,
    Runner,
    StopAtTools,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    tool_input_guardrail,
)
from agents.mcp import MCPServer
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.types import ExecResult
from agents.testing import assistant_message, function_call, scripted_sandbox_session
from agents.tool_guardrails import ToolGuardrailFunctionOutput
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import BaseModel

from holdfast import InvalidArgumentError, SyncClient
from holdfast.adapters.openai_agents import HoldfastRunner, HoldfastSession
from holdfast.core.conversation import Conversation
from holdfast.core.conversation.frameworks import openai_agents as form
from holdfast.core.conversation.frameworks.openai_items import repaired, unanswered
from tests.frameworks.openai_agents_world import (
    EVERYTHING,
    World,
    client,
    outputs,
    scripted,
    users,
    world,
)

__all__ = ["client", "world"]


def one_call(world: World, name: str, arguments: dict[str, Any]) -> Any:
    """Return a model that calls one tool, and says what it gave."""

    def script(call: Any) -> list[Any]:
        world.happen(f"model {len(outputs(call))}")
        if outputs(call):
            return [assistant_message(str(outputs(call)[-1]))]
        return [function_call(name, arguments, call_id="c1")]

    return scripted(script)


async def run_twice(world: World, client: SyncClient, program: Any, **options: Any) -> Any:
    """Run a program that fails once behind its tool, and again."""
    world.fails_at = "model 1"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(program(), "go", session_id="s", client=client, **options)
    return await HoldfastRunner.run(program(), "go", session_id="s", client=client, **options)


class Harbour(MCPServer):
    """A server of tools, in this process."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    @property
    def name(self) -> str:
        return "harbour"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_tools(self, *args: Any, **kwargs: Any) -> list[Tool]:
        return [Tool(name="moor", inputSchema={"type": "object", "properties": {}})]

    async def call_tool(self, *args: Any, **kwargs: Any) -> CallToolResult:
        self._world.happen("moor")
        return CallToolResult(content=[TextContent(type="text", text="moored")])

    async def list_prompts(self) -> Any:
        raise NotImplementedError

    async def get_prompt(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


async def cut_off_beside(world: World, client: SyncClient, agent: Agent[Any], first: str) -> None:
    """Run an agent whose second tool never ends, until the first has ended; then kill it."""
    ended = asyncio.Event()

    class Ended(AgentHooks[Any]):
        async def on_tool_end(self, context: Any, given: Any, tool: Any, result: Any) -> None:
            if tool.name == first:
                ended.set()

    agent.hooks = Ended()
    running = asyncio.create_task(HoldfastRunner.run(agent, "go", session_id="s", client=client))
    await ended.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


@function_tool
async def stuck() -> str:
    """Wait for ever."""
    await asyncio.Event().wait()
    return "never"


@function_tool(name_override="stuck")
async def free() -> str:
    """Not wait."""
    return "free"


async def test_tools_of_servers_are_journaled_by_their_call(
    world: World, client: SyncClient
) -> None:
    def script(call: Any) -> list[Any]:
        world.happen("model")
        if outputs(call):
            return [assistant_message(str(outputs(call)))]
        return [function_call("moor", {}, call_id="c1"), function_call("stuck", {}, call_id="c2")]

    def program(tool: FunctionTool) -> Agent[Any]:
        servers = [Harbour(world)]
        return Agent(name="a", model=scripted(script), mcp_servers=servers, tools=[tool])

    await cut_off_beside(world, client, program(stuck), "moor")
    result = await HoldfastRunner.run(program(free), "go", session_id="s", client=client)

    assert world.happened == ["model", "moor", "model"]
    assert "moored" in result.final_output
    assert "free" in result.final_output


async def test_outputs_of_any_kind_come_back_from_the_journal_as_they_were(
    world: World, client: SyncClient
) -> None:
    @function_tool
    async def look() -> list[Any]:
        world.happen("look")
        return [
            ToolOutputText(text="tief"),
            ToolOutputImage(image_url="data:image/png;base64,AAAA"),
        ]

    def script(call: Any) -> list[Any]:
        if outputs(call):
            return [assistant_message(str(outputs(call)[0]))]
        return [function_call("look", {}, call_id="c1"), function_call("stuck", {}, call_id="c2")]

    def program(tool: FunctionTool) -> Agent[Any]:
        return Agent(name="a", model=scripted(script), tools=[look, tool])

    await cut_off_beside(world, client, program(stuck), "look")
    result = await HoldfastRunner.run(program(free), "go", session_id="s", client=client)

    assert world.happened == ["look"]
    assert "input_image" in result.final_output
    assert "tief" in result.final_output


class Found(BaseModel):
    depth: int


async def test_a_tool_that_ends_the_run_gives_its_own_output(
    world: World, client: SyncClient
) -> None:
    @function_tool
    async def look() -> Found:
        world.happen("look")
        return Found(depth=12)

    agent = Agent(
        name="a",
        model=one_call(world, "look", {}),
        tools=[look],
        tool_use_behavior=StopAtTools(stop_at_tool_names=["look"]),
    )

    result = await HoldfastRunner.run(agent, "go", session_id="s", client=client)

    assert world.happened == ["model 0", "look"]
    assert "12" in str(result.final_output)


async def test_guardrails_and_policies_of_tools_hold(world: World, client: SyncClient) -> None:
    @tool_input_guardrail
    def no(data: Any) -> ToolGuardrailFunctionOutput:
        return ToolGuardrailFunctionOutput.reject_content("not that")

    @function_tool(tool_input_guardrails=[no])
    async def look(q: str) -> str:
        world.happen("look")
        return "found"

    def program() -> Agent[Any]:
        return Agent(name="a", model=one_call(world, "look", {"q": "x"}), tools=[look])

    result = await run_twice(world, client, program)

    assert result.final_output == "not that"
    assert "look" not in world.happened


async def test_a_policy_that_asks_for_approval_sees_the_arguments(
    world: World, client: SyncClient
) -> None:
    async def large(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
        return bool(arguments["amount"] > 100)

    @function_tool(needs_approval=large)
    async def pay(amount: int) -> str:
        world.happen(f"pay {amount}")
        return "paid"

    def program(amount: Any) -> Agent[Any]:
        return Agent(name="a", model=one_call(world, "pay", {"amount": amount}), tools=[pay])

    options: dict[str, Any] = {"client": client}
    small = await HoldfastRunner.run(program(5), "go", session_id="small", **options)
    big = await HoldfastRunner.run(program(500), "go", session_id="big", **options)
    odd = await HoldfastRunner.run(program("5"), "go", session_id="odd", **options)

    assert small.final_output == "paid"
    assert [item.tool_name for item in big.interruptions] == ["pay"]
    assert len(odd.interruptions) == 1  # what validation would alter is asked of people, as ever
    assert world.happened.count("pay 5") == 1


async def test_an_approval_inside_of_an_agent_that_is_a_tool_outlives_a_restart(
    world: World, client: SyncClient
) -> None:
    @function_tool(needs_approval=True)
    async def pay() -> str:
        world.happen("pay")
        return "paid"

    def inner_says(call: Any) -> list[Any]:
        world.happen("inner")
        if outputs(call):
            return [assistant_message(outputs(call)[-1])]
        return [function_call("pay", {}, call_id="i1")]

    def program() -> Agent[Any]:
        inner = Agent(name="inner", model=scripted(inner_says), tools=[pay])
        tool = inner.as_tool(tool_name="ask", tool_description="")
        return Agent(name="outer", model=one_call(world, "ask", {"input": "x"}), tools=[tool])

    first = await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    assert [item.tool_name for item in first.interruptions] == ["pay"]
    again = await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    state = again.to_state()
    state.approve(state.get_interruptions()[0])
    result = await HoldfastRunner.run(program(), state, session_id="s", client=client)

    assert result.final_output == "paid"
    assert world.happened == ["model 0", "inner", "pay", "inner", "model 1"]
    with pytest.raises(InvalidArgumentError, match=r"'ask'.*not journaled"):
        await HoldfastRunner.run(
            program(), "go", session_id="t", client=client, effects={"ask": "irreversible"}
        )


async def test_a_tool_of_plain_functions_gets_its_context(world: World, client: SyncClient) -> None:
    @function_tool
    def look(context: RunContextWrapper[Any], q: str) -> str:
        return f"{context.context['user']} found {q}"

    def program() -> Agent[Any]:
        return Agent(name="a", model=one_call(world, "look", {"q": "x"}), tools=[look])

    result = await run_twice(world, client, program, context={"user": "ada"})

    assert result.final_output == "ada found x"


async def test_tools_of_an_agent_in_a_sandbox_are_journaled(
    world: World, client: SyncClient
) -> None:
    def program() -> Agent[Any]:
        return SandboxAgent(**{**vars(world.agent()), "name": "clerk"})

    def sandbox() -> RunConfig:
        done = ExecResult(stdout=b"", stderr=b"", exit_code=0)
        session = scripted_sandbox_session([{"method": "exec", "result": done}])
        return RunConfig(sandbox=SandboxRunConfig(session=session))

    async def run(**options: Any) -> Any:
        return await HoldfastRunner.run(
            program(), "go", session_id="s", client=client, run_config=sandbox(), **options
        )

    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await run(effects={"send": "irreversible"})
    result = await run(effects={"send": "irreversible"})

    assert result.final_output == "done: sent c"
    assert world.happened == [*EVERYTHING[:4], *EVERYTHING[3:]]
    with client.session("openai_agents", session_id="s") as session:
        calls = [f"{effect.tool} {effect.kind}" for effect in session.effects]
    assert calls == ["look local", "send irreversible", "send irreversible"]


async def test_a_tool_that_runs_a_session_of_its_own_keeps_it(client: SyncClient) -> None:
    inside, outside = World(), World()

    @function_tool
    async def ask() -> str:
        result = await HoldfastRunner.run(inside.agent(), "go", session_id="in", client=client)
        return str(result.final_output)

    agent = Agent(name="outer", model=one_call(outside, "ask", {}), tools=[ask])
    result = await HoldfastRunner.run(agent, "go", session_id="out", client=client)

    assert result.final_output == "done: sent c"
    names = [step.step_name for step in client.timeline("openai_agents", "in")]
    assert names.count("model") == 3


# What another framework left


USER = {"role": "user", "content": "go"}
CALLS = [
    {"type": "function_call", "call_id": "c1", "name": "look", "arguments": '{"q": "a"}'},
    {"type": "function_call", "call_id": "c2", "name": "send", "arguments": '{"q": "b"}'},
]
ANSWER = {"type": "function_call_output", "call_id": "c1", "output": "found elsewhere"}


@pytest.mark.parametrize("given", ["go", []])
@pytest.mark.parametrize("answers", [[], [ANSWER]])
async def test_calls_that_another_framework_left_are_run(
    world: World, client: SyncClient, given: Any, answers: list[Any]
) -> None:
    said = {"role": "assistant", "content": "Let me see"}
    items, run = unanswered([USER, said, *CALLS, *answers])
    state = {"items": items, "instructions": None, "run": run}
    assert form.extract(state) is not None
    client.save("openai_agents", "openai_agents", state, session_id="s")

    result = await HoldfastRunner.run(world.agent(), given, session_id="s", client=client)

    expected = ["look a", "send b"] if not answers else ["send b"]
    assert world.happened == [*expected, "model 2", "send c", "model 3"]
    assert result.final_output == "done: sent c"
    assert [item["role"] for item in result.to_input_list() if "role" in item].count("user") == 1


def test_calls_that_wait_for_approval_elsewhere_are_not_run() -> None:
    waits = {"id": "c2", "reason": "tool_approval", "tool_call_id": "c2"}
    items = [USER, *CALLS]

    assert form.state(items, Conversation())["run"] is not None
    assert form.state(items, Conversation(interrupts=[waits])) == {
        "items": items,
        "instructions": None,
        "run": None,
    }


async def test_a_state_of_the_sdks_own_runner_is_gone_on_with(
    world: World, client: SyncClient
) -> None:
    def program() -> Agent[Any]:
        agent = world.agent()
        agent.tools[1].needs_approval = True
        return agent

    agent = program()
    state = (await Runner.run(agent, "go")).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)

    result = await HoldfastRunner.run(program(), state, session_id="s", client=client)
    more = await HoldfastRunner.run(program(), "more", session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert users(more.to_input_list()) == ["go", "more"]


def test_what_is_answered_is_no_run() -> None:
    earlier = [USER, *CALLS, ANSWER, {**ANSWER, "call_id": "c2"}]
    later = {"type": "function_call", "call_id": "c3", "name": "look", "arguments": "{}"}

    assert unanswered(earlier) == (earlier, None)
    items, run = unanswered([*earlier, later])
    assert items == earlier
    assert run is not None
    assert run["answer"]["output"] == [later]
    assert run["prompt"] == [USER]


def test_repair_keeps_the_order_that_providers_want() -> None:
    odd = {"type": "computer_call", "call_id": "k1"}
    thought = {"type": "reasoning", "id": "rs_1", "summary": []}
    stray = {"type": "function_call_output", "call_id": "gone", "output": "?"}

    items = repaired([stray, USER, thought, odd, *CALLS, ANSWER, USER, {"type": "item_reference"}])

    assert items[:4] == [USER, *CALLS, ANSWER]
    assert items[4]["call_id"] == "c2"
    assert items[5:] == [USER, {"type": "item_reference"}]
    assert repaired(items) == items
    assert repaired([*CALLS], {"c2": ANSWER | {"call_id": "c2"}})[-1]["output"] == "found elsewhere"


async def test_a_session_of_the_sdk_answers_what_another_framework_left(
    client: SyncClient,
) -> None:
    items, run = unanswered([USER, *CALLS])
    state = {"items": items, "instructions": None, "run": run}
    client.save("openai_agents", "openai_agents", state, session_id="s")

    found = await HoldfastSession("s", client).get_items()

    assert [item.get("call_id") for item in found] == [None, "c1", "c2", "c1", "c2"]
