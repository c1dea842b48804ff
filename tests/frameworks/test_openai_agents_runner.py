"""HoldfastRunner: runs go on where they stopped, and conversations turn by turn."""

import asyncio
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrailTripwireTriggered,
    MaxTurnsExceeded,
    ModelBehaviorError,
    ModelRetrySettings,
    ModelSettings,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    RunHooks,
    RunResultStreaming,
    handoff,
    input_guardrail,
    output_guardrail,
)
from agents.testing import ModelStep, ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from holdfast import (
    AdapterError,
    Client,
    Framework,
    InvalidArgumentError,
    SessionBusyError,
    SyncClient,
)
from holdfast.adapters.openai_agents import HoldfastRunner
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


def state_of(client: SyncClient, session_id: str = "s") -> Any:
    kept = client.latest("openai_agents", session_id)
    assert kept is not None
    return kept.execution_state


async def test_a_run_ends_as_it_would_and_each_step_is_a_checkpoint(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()

    result = await HoldfastRunner.run(agent, "go", session_id="s", client=client)

    assert isinstance(result, RunResultStreaming)
    assert result.final_output == "done: sent c"
    assert result.last_agent is agent
    assert all(item.agent is agent for item in result.new_items)
    assert world.happened == EVERYTHING
    steps = client.timeline("openai_agents", "s")
    assert [step.step_name for step in reversed(steps)] == [
        *("start", "user prompt", "model", "tools", "model", "tools", "model", "end")
    ]
    assert {step.framework for step in steps} == {Framework.OPENAI_AGENTS}


async def test_the_next_prompt_is_the_next_turn_of_the_conversation(client: SyncClient) -> None:
    model = scripted(lambda call: [assistant_message(f"heard {len(users(call.input))}")])
    agent = Agent(name="clerk", model=model)

    await HoldfastRunner.run(agent, "one", session_id="s", client=client)
    second = await HoldfastRunner.run(agent, "two", session_id="s", client=client)
    third = await HoldfastRunner.run(agent, "two", session_id="s", client=client)

    assert (second.final_output, third.final_output) == ("heard 2", "heard 3")
    assert users(state_of(client)["items"]) == ["one", "two", "two"]


@pytest.mark.parametrize("fails_at", ["model 0", "model 2", "model 3"])
@pytest.mark.parametrize("again", ["go", [], None, [{"role": "user", "content": "go"}]])
async def test_a_run_that_failed_goes_on_with_its_prompt_or_with_nothing(
    world: World, client: SyncClient, fails_at: str, again: Any
) -> None:
    world.fails_at = fails_at
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    result = await HoldfastRunner.run(world.agent(), again, session_id="s", client=client)

    assert result.final_output == "done: sent c"
    at = EVERYTHING.index(fails_at)
    assert world.happened == [*EVERYTHING[: at + 1], *EVERYTHING[at:]]
    assert users(state_of(client)["items"]) == ["go"]


async def test_another_prompt_leaves_a_run_that_failed_and_its_calls_are_answered(
    world: World, client: SyncClient
) -> None:
    agent = world.agent(tools=[tool for tool in world.tools() if tool.name == "look"])
    with pytest.raises(ModelBehaviorError):  # there is no tool send
        await HoldfastRunner.run(agent, "go", session_id="s", client=client)
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    await HoldfastRunner.run(world.agent(), "never mind", session_id="s", client=client)

    last = world.requests[-1]
    assert users(last) == ["go", "never mind"]
    assert world.happened.count("look a") == 1


async def test_calls_of_an_answer_that_was_left_are_told_as_far_as_they_are_known(
    client: SyncClient,
) -> None:
    world = World()
    agent = world.agent()
    _, send = agent.tools

    async def stuck(context: Any, arguments: str) -> str:
        await asyncio.Event().wait()
        return "never"

    looked = asyncio.Event()

    class Hooks(RunHooks[Any]):
        async def on_tool_end(self, context: Any, given: Any, tool: Any, result: Any) -> None:
            looked.set()

    send.on_invoke_tool = stuck
    running = asyncio.create_task(
        HoldfastRunner.run(agent, "go", session_id="s", client=client, hooks=Hooks())
    )
    await looked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    other = scripted(lambda call: [assistant_message(" | ".join(outputs(call)))])
    result = await HoldfastRunner.run(
        world.agent(model=other), "and now?", session_id="s", client=client
    )

    assert result.final_output.startswith("found a | [interrupted")


async def test_a_turn_that_is_begun_again_counts_once(world: World, client: SyncClient) -> None:
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, max_turns=3)

    result = await HoldfastRunner.run(
        world.agent(), "go", session_id="s", client=client, max_turns=3
    )

    assert result.final_output == "done: sent c"


async def test_a_run_of_too_many_turns_goes_on_where_more_are_allowed(
    world: World, client: SyncClient
) -> None:
    with pytest.raises(MaxTurnsExceeded):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, max_turns=2)
    with pytest.raises(MaxTurnsExceeded):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, max_turns=2)

    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, max_turns=9)

    assert world.happened == EVERYTHING


async def test_a_streamed_run_gives_its_events_and_is_kept(
    world: World, client: SyncClient
) -> None:
    world.fails_at = "model 2"
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    assert isinstance(run, RunResultStreaming)
    assert not run.is_complete
    with pytest.raises(ConnectionError):
        async for _ in run.stream_events():
            pass

    agent = world.agent()
    run = HoldfastRunner.run_streamed(agent, "go", session_id="s", client=client)
    kinds = [event.type async for event in run.stream_events()]

    assert "raw_response_event" in kinds
    assert "run_item_stream_event" in kinds
    assert run.final_output == "done: sent c"
    assert run.last_agent is agent
    assert world.happened == [*EVERYTHING[:4], *EVERYTHING[3:]]


async def test_a_run_that_is_stopped_behind_a_turn_goes_on_from_there(
    world: World, client: SyncClient
) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    async for event in run.stream_events():
        if event.type == "run_item_stream_event":
            run.cancel(mode="after_turn")
    assert world.happened == EVERYTHING[:3]
    with pytest.raises(MaxTurnsExceeded):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, max_turns=1)

    result = await HoldfastRunner.run(
        world.agent(), "go", session_id="s", client=client, max_turns=3
    )

    assert world.happened == EVERYTHING
    assert result.final_output == "done: sent c"


async def test_a_run_that_is_stopped_at_once_goes_on_as_after_a_kill(
    world: World, client: SyncClient
) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    async for event in run.stream_events():
        if event.type == "run_item_stream_event":
            run.cancel()

    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    assert world.happened.count("model 0") == 1
    assert result.final_output == "done: sent c"


async def test_agents_that_hand_over_go_on_with_the_right_one(client: SyncClient) -> None:
    world = World()
    calls: list[str] = []

    def first(call: Any) -> list[Any]:
        world.happen("first")
        return [function_call("transfer_to_expert", {}, call_id="h1")]

    def second(call: Any) -> list[Any]:
        world.happen("second")
        return [assistant_message("expert here")]

    def program() -> tuple[Agent[Any], Agent[Any]]:
        expert = Agent(name="expert", model=scripted(second))
        desk = Agent(
            name="desk",
            model=scripted(first),
            handoffs=[handoff(expert, on_handoff=lambda context: calls.append("handed"))],
        )
        expert.handoffs = [desk]
        return desk, expert

    world.fails_at = "second"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(program()[0], "go", session_id="s", client=client)
    desk, expert = program()
    result = await HoldfastRunner.run(desk, "go", session_id="s", client=client)

    assert result.final_output == "expert here"
    assert result.last_agent is expert
    assert world.happened == ["first", "second", "second"]
    assert calls == ["handed"]
    assert "handoff" in [step.step_name for step in client.timeline("openai_agents", "s")]


async def test_hooks_are_called_with_the_agents_of_the_program(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()
    seen: list[tuple[str, bool]] = []

    class Hooks(RunHooks[Any]):
        async def on_llm_start(self, context: Any, given: Any, system: Any, items: Any) -> None:
            seen.append(("model", given is agent))

        async def on_tool_end(self, context: Any, given: Any, tool: Any, result: Any) -> None:
            seen.append((tool.name, given is agent))

        async def on_agent_end(self, context: Any, given: Any, output: Any) -> None:
            seen.append(("end", given is agent))

    await HoldfastRunner.run(agent, "go", session_id="s", client=client, hooks=Hooks())

    assert [name for name, _ in seen] == [
        *("model", "look", "send", "model", "send", "model", "end")
    ]
    assert all(is_own for _, is_own in seen)


async def test_the_agents_of_the_program_stay_as_they_are(world: World, client: SyncClient) -> None:
    agent = world.agent()
    before = dict(vars(agent)), [tool.on_invoke_tool for tool in agent.tools]

    result = await HoldfastRunner.run(agent, "go", session_id="s", client=client)
    await HoldfastRunner.run(result.last_agent, "go on", session_id="s", client=client)

    assert (dict(vars(agent)), [tool.on_invoke_tool for tool in agent.tools]) == before


async def test_a_prompt_that_a_guardrail_refuses_is_no_part_of_the_conversation(
    client: SyncClient,
) -> None:
    @input_guardrail
    async def no_secrets(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        last = given if isinstance(given, str) else users(given)[-1]
        return GuardrailFunctionOutput(None, tripwire_triggered="secret" in last)

    model = scripted(lambda call: [assistant_message(f"heard {users(call.input)}")])
    agent = Agent(name="clerk", model=model, input_guardrails=[no_secrets])

    with pytest.raises(InputGuardrailTripwireTriggered):
        await HoldfastRunner.run(agent, "a secret", session_id="s", client=client)
    result = await HoldfastRunner.run(agent, "hello", session_id="s", client=client)

    assert result.final_output == "heard ['hello']"


async def test_an_answer_that_a_guardrail_refuses_is_asked_for_again(client: SyncClient) -> None:
    @output_guardrail
    async def polite(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered="rude" in output)

    said = iter(["rude", "kind"])
    model = scripted(lambda call: [assistant_message(next(said))])
    agent = Agent(name="clerk", model=model, output_guardrails=[polite])

    with pytest.raises(OutputGuardrailTripwireTriggered):
        await HoldfastRunner.run(agent, "hello", session_id="s", client=client)
    result = await HoldfastRunner.run(agent, "hello", session_id="s", client=client)

    assert result.final_output == "kind"
    assert users(state_of(client)["items"]) == ["hello"]


class Report(BaseModel):
    title: str
    lines: int


async def test_an_answer_of_a_type_is_one_and_a_bad_one_is_asked_for_again(
    client: SyncClient,
) -> None:
    said = iter(["no report", '{"title": "Hafen", "lines": 3}'])
    model = scripted(lambda call: [assistant_message(next(said))])
    agent = Agent(name="clerk", model=model, output_type=Report)

    with pytest.raises(ModelBehaviorError):
        await HoldfastRunner.run(agent, "hello", session_id="s", client=client)
    result = await HoldfastRunner.run(agent, "hello", session_id="s", client=client)

    assert result.final_output == Report(title="Hafen", lines=3)


async def test_a_context_is_as_it_was_when_the_run_stopped(client: SyncClient) -> None:
    world = World()

    def program() -> Agent[Any]:
        agent = world.agent()
        look = agent.tools[0]

        async def noted(context: Any, arguments: str) -> str:
            context.context["looked"] = context.context.get("looked", 0) + 1
            return "found"

        look.on_invoke_tool = noted
        return agent

    world.fails_at = "model 2"
    first: dict[str, Any] = {"user": "ada"}
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(program(), "go", session_id="s", client=client, context=first)
    second: dict[str, Any] = {"user": "ada"}
    await HoldfastRunner.run(program(), "go", session_id="s", client=client, context=second)

    assert first == second == {"user": "ada", "looked": 1}


class Desk:
    """A context that is no dict."""

    def __init__(self, notes: list[str]) -> None:
        self.notes = notes


async def test_a_context_of_a_class_goes_through_its_serializer(client: SyncClient) -> None:
    world = World()
    seen: list[list[str]] = []

    def instructions(context: Any, agent: Any) -> str:
        seen.append(list(context.context.notes))
        context.context.notes.append("asked")
        return "Be brief."

    world.instructions = instructions
    options: dict[str, Any] = {
        "context_serializer": lambda desk: {"notes": desk.notes},
        "context_deserializer": lambda kept: Desk(kept["notes"]),
    }
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(
            world.agent(), "go", session_id="s", client=client, context=Desk([]), **options
        )
    await HoldfastRunner.run(
        world.agent(), "go", session_id="s", client=client, context=Desk([]), **options
    )

    assert seen[-1] == ["asked"] * 3


async def test_models_by_name_and_of_the_run_are_kept_too(world: World, client: SyncClient) -> None:
    from agents import ModelProvider

    model = scripted(world.script)

    class Provider(ModelProvider):
        def get_model(self, model_name: str | None) -> Any:
            assert model_name == "clever"
            return model

    for number, (config, own) in enumerate(
        [
            (RunConfig(model_provider=Provider()), {"model": "clever"}),
            (RunConfig(model=model), {}),
            ({"model": model}, {}),
        ]
    ):
        world.happened.clear()
        world.fails_at = "model 2"
        options: dict[str, Any] = {"session_id": f"s{number}", "client": client}
        with pytest.raises(ConnectionError):
            await HoldfastRunner.run(world.agent(**own), "go", run_config=config, **options)
        await HoldfastRunner.run(world.agent(**own), "go", run_config=config, **options)
        assert world.happened == [*EVERYTHING[:4], *EVERYTHING[3:]]


async def test_call_ids_that_a_model_uses_again_in_a_later_turn_are_other_calls(
    world: World, client: SyncClient
) -> None:
    def script(call: Any) -> list[Any]:
        if call.input[-1].get("role") == "user":
            return [function_call("send", {"q": "x"}, call_id="call_0")]
        return [assistant_message("ok")]

    agent = world.agent(model=scripted(script))
    await HoldfastRunner.run(agent, "one", session_id="s", client=client)
    await HoldfastRunner.run(agent, "two", session_id="s", client=client)

    assert world.happened == ["send x", "send x"]


async def test_an_agent_that_is_a_tool_is_one_call(client: SyncClient) -> None:
    world = World()
    inner = world.agent(name="inner")

    def script(call: Any) -> list[Any]:
        world.happen(f"outer {len(outputs(call))}")
        if outputs(call):
            return [assistant_message(outputs(call)[0])]
        return [function_call("ask_inner", {"input": "go"}, call_id="o1")]

    def program() -> Agent[Any]:
        tool = inner.as_tool(tool_name="ask_inner", tool_description="")
        return Agent(name="outer", model=scripted(script), tools=[tool])

    world.fails_at = "outer 1"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    result = await HoldfastRunner.run(program(), "go", session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert world.happened == ["outer 0", *EVERYTHING, "outer 1", "outer 1"]
    assert state_of(client)["items"][-1]["content"][0]["text"] == "done: sent c"


async def test_a_session_is_run_by_one_at_a_time(world: World, client: SyncClient) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    async for _ in run.stream_events():
        if not run.is_complete:
            with pytest.raises(SessionBusyError):
                await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
            break


async def test_an_async_client_and_a_url_are_taken_and_not_both(
    world: World, tmp_path: Any
) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    await HoldfastRunner.run(world.agent(), "go", session_id="s", url=url)
    async with Client.open(url) as client:
        await HoldfastRunner.run(world.agent(), "more", session_id="s", client=client)
        kept = await client.latest("openai_agents", "s")
        assert kept is not None
        assert users(kept.execution_state["items"]) == ["go", "more"]
        with pytest.raises(InvalidArgumentError, match="not both"):
            await HoldfastRunner.run(world.agent(), "more", session_id="s", client=client, url=url)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"session_id": ""}, "session_id"),
        ({"session_id": 7}, "session_id"),
        ({"input": 7}, "input is a text"),
        ({"agent": "clerk"}, "Agent"),
        ({"effects": {"look": "dangerous"}}, "one of read"),
        ({"effects": {"fly": "irreversible"}}, "'fly'.*look, send"),
        ({"effects": ["look"]}, "dict"),
        ({"session": "x"}, "HoldfastSession"),
        ({"conversation_id": "conv_1"}, "conversation_id"),
        ({"max_turn": 3}, "max_turn"),
        ({"workspace": 7}, "workspace"),
        ({"journal": False, "effects": {"look": "read"}}, "journal=False"),
        ({"journal": False, "approval": "wait"}, "journal=False"),
    ],
)
async def test_bad_input_is_told_by_its_name(
    world: World, client: SyncClient, given: dict[str, Any], said: str
) -> None:
    options: dict[str, Any] = {
        "agent": world.agent(),
        "input": "go",
        "session_id": "s",
        "client": client,
    }
    with pytest.raises(InvalidArgumentError, match=said):
        await HoldfastRunner.run(**(options | given))
    assert world.happened == []
    assert client.sessions() == []


async def test_a_session_of_another_framework_and_a_damaged_one_are_refused(
    world: World, client: SyncClient
) -> None:
    client.save("openai_agents", Framework.STRANDS, {"messages": []}, session_id="other")
    with pytest.raises(AdapterError, match="strands"):
        await HoldfastRunner.run(world.agent(), "go", session_id="other", client=client)
    run: dict[str, Any] = {"prompt": "go", "state": None, "answer": None, "outputs": {}}
    states: list[Any] = [
        {"items": 7},
        {"items": [], "run": 7},
        {"items": [], "run": {**run, "state": {}}},
        {"items": [], "run": {**run, "answer": {"output": None}}},
        {"items": [], "run": None, "ended": 7},
        {"items": [], "run": None, "ended": {"run": {}}},
        {"messages": []},
        [],
        7,
    ]
    for damaged in states:
        client.save("openai_agents", Framework.OPENAI_AGENTS, damaged, session_id="damaged")
        with pytest.raises(AdapterError, match="no conversation"):
            await HoldfastRunner.run(world.agent(), "go", session_id="damaged", client=client)
    assert world.happened == []


async def test_agents_that_are_others_than_before_are_refused_but_for_a_new_prompt(
    world: World, client: SyncClient
) -> None:
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    other = world.agent(name="somebody else")

    with pytest.raises(AdapterError, match=r"'s' cannot go on with these agents"):
        await HoldfastRunner.run(other, "go", session_id="s", client=client)
    result = await HoldfastRunner.run(other, "hello", session_id="s", client=client)

    assert users(result.to_input_list()) == ["go", "hello"]


async def test_a_request_that_the_sdk_tries_again_is_one_step(
    world: World, client: SyncClient
) -> None:
    def twice(data: Any) -> bool:
        return isinstance(data.error, ConnectionError)

    settings = ModelSettings(retry=ModelRetrySettings(max_retries=2, policy=twice))
    for at in ("model 0", "model 2"):
        world.fails_at = at
        await HoldfastRunner.run(
            world.agent(model_settings=settings), "go", session_id=at, client=client
        )
        names = [step.step_name for step in client.timeline("openai_agents", at)]
        assert [names.count(name) for name in ("model", "tools", "failed")] == [3, 2, 0]


async def test_without_a_prompt_there_has_to_be_something_to_go_on_with(
    world: World, client: SyncClient
) -> None:
    with pytest.raises(InvalidArgumentError, match=r"'s'.*give a prompt"):
        await HoldfastRunner.run(world.agent(), session_id="s", client=client)

    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    result = await HoldfastRunner.run(world.agent(), session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert users(result.to_input_list()) == ["go"]


async def test_a_model_that_cannot_stream_is_run(client: SyncClient) -> None:
    class Whole(ScriptedModel):
        def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            raise NotImplementedError

    model = Whole([ModelStep(output=[assistant_message("whole")])])

    result = await HoldfastRunner.run(
        Agent(name="clerk", model=model), "go", session_id="s", client=client
    )

    assert result.final_output == "whole"


class Bare:
    """A context that nobody can write down."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()


@pytest.mark.parametrize("context", [Bare(), Report(title="x", lines=1), None])
async def test_a_context_without_a_serializer_is_the_one_that_is_given(
    client: SyncClient, context: Any
) -> None:
    world = World()
    seen: list[Any] = []

    def instructions(given: Any, agent: Any) -> str:
        seen.append(given.context)
        return "Be brief."

    world.instructions = instructions
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(
            world.agent(), "go", session_id="s", client=client, context=context
        )
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, context=context)

    assert len(seen) == 4
    assert all(each is context for each in seen)


async def test_who_stops_listening_to_a_run_ends_it(world: World, client: SyncClient) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    assert "KeptRun" in repr(run)
    events = run.stream_events()
    async for event in events:
        if event.type == "run_item_stream_event":
            break
    await events.aclose()
    happened = list(world.happened)

    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    assert happened[0] == "model 0"
    assert world.happened.count("model 0") == 1
    assert "model 2" not in happened
    assert result.final_output == "done: sent c"


async def test_a_tool_that_takes_too_long_is_told_to_the_model(
    world: World, client: SyncClient
) -> None:
    def program() -> Agent[Any]:
        agent = world.agent()
        send = agent.tools[1]

        async def slow(context: Any, arguments: str) -> str:
            await asyncio.Event().wait()
            return "never"

        send.on_invoke_tool = slow
        send.timeout_seconds = 0.01
        return agent

    result = await HoldfastRunner.run(program(), "go", session_id="s", client=client)

    assert "timed out" in result.final_output
    assert world.happened == ["model 0", "look a", "model 2", "model 3"]


async def test_a_run_that_is_cancelled_before_it_began_does_nothing(
    world: World, client: SyncClient
) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    run.cancel()

    assert [event async for event in run.stream_events()] == []
    assert client.sessions() == []
