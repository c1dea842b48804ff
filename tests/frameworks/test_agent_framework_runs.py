"""Runs of agents of Agent Framework: going on, going back, what is refused and what is loud."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_framework import (
    AgentMiddleware,
    AgentSession,
    Content,
    FunctionInvocationContext,
    Message,
    tool,
)
from pydantic import BaseModel

from holdfast import (
    AdapterError,
    Client,
    InvalidArgumentError,
    SessionBusyError,
    StoreFullError,
    SyncClient,
)
from holdfast.adapters.agent_framework import HoldfastCheckpointStorage, HoldfastHistoryProvider
from holdfast.adapters.portable import conversation
from holdfast.cli import main as command_line
from tests.frameworks.agent_framework_kit import asks_twice, calls, harbour_agent, said
from tests.frameworks.full_store import FullStore
from tests.frameworks.reference import ANSWER, PROMPT, SAID


class PowerCut(BaseException):
    """Ends a run as a kill would."""


class World:
    """Counts what happens, and fails where a test says so."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.fails: dict[str, BaseException] = {}

    def does(self, what: str) -> None:
        self.happened.append(what)
        error = self.fails.pop(what, None)
        if error is not None:
            raise error

    def script(self, messages: Sequence[Message]) -> list[Content]:
        answers = sum(each.role == "assistant" for each in messages)
        self.does(f"model {answers}")
        return asks_twice(messages)

    @property
    def tools(self) -> list[Any]:
        @tool(approval_mode="never_require")
        async def depth(harbour: str, unit: str = "m") -> str:
            self.does("depth")
            return "12.5 m"

        @tool(approval_mode="never_require")
        async def tide(harbour: str) -> str:
            while "depth" not in self.happened:
                await asyncio.sleep(0)
            self.does("tide")
            return "rising"

        return [depth, tide]

    def agent(self, provider: Any, **options: Any) -> Any:
        return harbour_agent(provider, self.script, **{"tools": self.tools, **options})


WHOLE = ["model 0", "depth", "tide", "model 1"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


@pytest.fixture
async def provider(client: SyncClient) -> AsyncIterator[HoldfastHistoryProvider]:
    provider = HoldfastHistoryProvider(client)
    yield provider
    await provider.aclose()


def session(name: str = "s") -> AgentSession:
    return AgentSession(session_id=name)


async def read(agent: Any) -> None:
    """Read a run to its end, as a stream."""
    async for _ in agent.run(PROMPT, session=session(), stream=True):
        pass


async def cut_off(world: World, provider: Any, where: str, prompt: Any = PROMPT) -> None:
    world.fails[where] = PowerCut()
    with pytest.raises(PowerCut):
        await world.agent(provider).run(prompt, session=session())


# Going on


@pytest.mark.parametrize("where", ["model 0", "depth", "tide", "model 1"])
@pytest.mark.parametrize("prompt", [PROMPT, None])
async def test_the_same_prompt_or_none_goes_on_where_a_run_was_cut_off(
    world: World, provider: HoldfastHistoryProvider, where: str, prompt: str | None
) -> None:
    await cut_off(world, provider, where)
    assert await provider.is_unfinished("s")

    result = await world.agent(provider).run(prompt, session=session())

    assert result.text.endswith(ANSWER)
    assert [world.happened.count(each) for each in WHOLE] == [
        2 if each == where else 1 for each in WHOLE
    ]
    assert said(await provider.get_messages("s")) == [
        ("user", PROMPT),
        ("assistant", f"{SAID} | call_depth | call_tide"),
        ("tool", "call_depth | call_tide"),
        ("assistant", ANSWER),
    ]


async def test_a_resumed_run_gives_the_whole_response(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    whole = await world.agent(provider).run(PROMPT, session=session("whole"))
    await cut_off(world, provider, "model 1")

    result = await world.agent(provider).run(PROMPT, session=session())

    assert said(result.messages) == said(whole.messages)
    assert result.response_id == whole.response_id


async def test_a_model_that_fails_is_asked_again_and_nothing_else_is_done_again(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    world.fails["model 1"] = ConnectionError("the line is down")
    agent, same = world.agent(provider), session()
    with pytest.raises(ConnectionError):
        await agent.run(PROMPT, session=same)

    await agent.run(PROMPT, session=same)

    assert world.happened == [*WHOLE, "model 1"]


@pytest.mark.parametrize("per_call", [False, True])
async def test_a_streamed_run_goes_on_and_tells_the_whole_again(
    world: World, provider: HoldfastHistoryProvider, per_call: bool
) -> None:
    options = {"require_per_service_call_history_persistence": per_call}
    world.fails["model 1"] = PowerCut()
    with pytest.raises(PowerCut):
        await read(world.agent(provider, **options))

    stream = world.agent(provider, **options).run(PROMPT, session=session(), stream=True)
    told = "".join([update.text async for update in stream])

    assert told == SAID + ANSWER
    assert world.happened == [*WHOLE, "model 1"]
    assert (await stream.get_final_response()).text.endswith(ANSWER)
    assert not await provider.is_unfinished("s")


async def test_a_stream_that_nobody_reads_to_its_end_lets_go_of_the_session(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    async with world.agent(provider).run(PROMPT, session=session(), stream=True) as stream:
        async for _ in stream:
            break

    await world.agent(provider).run(PROMPT, session=session())

    assert world.happened.count("depth") == 1


async def test_another_prompt_leaves_what_was_cut_off_and_answers_its_calls(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    await cut_off(world, provider, "tide")
    agent = harbour_agent(provider, lambda messages: [Content.from_text("as you like")])

    await agent.run("never mind", session=session())

    sent = agent.client.sent[-1]
    results = {each.call_id: each.result for each in sent[2].contents}
    assert results["call_depth"] == "12.5 m"
    assert "interrupted" in results["call_tide"]
    assert said(await provider.get_messages("s"))[-2:] == [
        ("user", "never mind"),
        ("assistant", "as you like"),
    ]


async def test_after_its_end_the_same_prompt_is_a_new_one(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    for _ in range(2):
        await world.agent(provider).run(PROMPT, session=session())

    users = [each for each in await provider.get_messages("s") if each.role == "user"]
    assert len(users) == 2
    assert world.happened.count("depth") == 2


async def test_a_model_that_gives_the_same_ids_again_has_its_tools_called_again(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    def script(messages: Sequence[Message]) -> list[Content]:
        answers = sum(each.role == "assistant" for each in messages)
        return calls() if answers < 2 else [Content.from_text("done")]

    agent = harbour_agent(provider, script, tools=world.tools)
    await agent.run(PROMPT, session=session())

    assert world.happened.count("depth") == world.happened.count("tide") == 2


async def test_another_prompt_is_told_what_the_last_call_of_an_id_gave(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    @tool(approval_mode="never_require")
    async def depth(harbour: str, unit: str = "m") -> str:
        world.does("depth")
        return f"{world.happened.count('depth')} m"

    options = {"tools": [depth, world.tools[1]]}
    await world.agent(provider, **options).run(PROMPT, session=session())
    world.fails["tide"] = PowerCut()
    with pytest.raises(PowerCut):
        await world.agent(provider, **options).run("again", session=session())
    await world.agent(provider, **options).run("other", session=session())

    answered = [each for each in await provider.get_messages("s") if each.role == "tool"]
    assert [each.contents[0].result for each in answered] == ["1 m", "2 m", "3 m"]


async def test_what_a_tool_raised_is_told_again_as_it_was(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    world.fails |= {"depth": ValueError("too deep"), "model 1": PowerCut()}
    with pytest.raises(PowerCut):
        await world.agent(provider).run(PROMPT, session=session())
    first = [each.to_dict() for each in await provider.get_messages("s")]

    await world.agent(provider).run(PROMPT, session=session())

    assert world.happened == [*WHOLE, "model 1"]
    results = (await provider.get_messages("s"))[2].contents
    assert results[0].exception is not None
    assert results[0].result == first[2]["contents"][0]["result"]


async def test_a_tool_that_gives_more_than_text_is_given_again_with_all(
    provider: HoldfastHistoryProvider, world: World
) -> None:
    @tool(approval_mode="never_require")
    async def depth(harbour: str, unit: str = "m") -> list[Content]:
        world.does("depth")
        return [Content.from_text("a chart"), Content.from_data(b"\x89PNG", "image/png")]

    options = {"tools": [depth, world.tools[1]]}
    world.fails["model 1"] = PowerCut()
    with pytest.raises(PowerCut):
        await world.agent(provider, **options).run(PROMPT, session=session())
    await world.agent(provider, **options).run(PROMPT, session=session())

    assert world.happened.count("depth") == 1
    (result, _) = (await provider.get_messages("s"))[2].contents
    assert [each.type for each in result.items] == ["text", "data"]
    found = conversation("s", provider.client)
    assert found is not None
    assert found.messages[2]["parts"][0]["parts"][0]["mime_type"] == "image/png"


@pytest.mark.parametrize("brackets", [True, False])
async def test_the_middleware_is_given_as_one_of_a_list_or_alone(
    provider: HoldfastHistoryProvider, world: World, brackets: bool
) -> None:
    given = [provider.middleware] if brackets else provider.middleware
    agent = world.agent(provider, middleware=given)
    await agent.run(PROMPT, session=session())

    names = [each.step_name for each in provider.client.timeline("agent_framework", "s")]
    assert names == ["end", "model", "tools", "model", "user prompt", "start"][: len(names)]
    assert "tools" in names


async def test_a_run_that_looks_at_its_history_before_each_model_call_sends_each_message_once(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    options = {"require_per_service_call_history_persistence": True}
    agent = world.agent(provider, **options)
    await agent.run(PROMPT, session=session())
    await agent.run("and now?", session=session())

    assert [said(each) for each in agent.client.sent[:2]] == [
        [("user", PROMPT)],
        [
            ("user", PROMPT),
            ("assistant", f"{SAID} | call_depth | call_tide"),
            ("tool", "call_depth | call_tide"),
        ],
    ]
    assert len(await provider.get_messages("s")) == 8


@pytest.mark.parametrize("given", ["async client", "sync client", "url", "environment"])
async def test_a_store_is_given_as_a_client_or_a_url_or_by_the_environment(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    monkeypatch.setenv("HOLDFAST_URL", url)
    options: dict[str, Any] = {}
    if given == "url":
        options = {"url": url}
    elif given != "environment":
        options = {"client": (Client if given == "async client" else SyncClient).open(url)}
    provider = HoldfastHistoryProvider(**options)
    await world.agent(provider).run(PROMPT, session=session())
    await provider.aclose()
    if given == "async client":
        await options["client"].close()
    elif given == "sync client":
        options["client"].close()

    with SyncClient.open(url) as client:
        assert len(client.timeline("agent_framework", "s")) == 6


# Sessions


async def test_the_state_of_a_session_is_there_after_a_restart(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    first = session()
    first.state["user"] = {"name": "Ada"}
    await world.agent(provider).run(PROMPT, session=first)

    second = session()
    await world.agent(provider).run("again", session=second)

    assert second.state["user"] == {"name": "Ada"}


@pytest.mark.parametrize("where", ["tide", "model 1"])
async def test_what_a_tool_puts_into_the_session_is_there_although_it_is_not_run_again(
    world: World, provider: HoldfastHistoryProvider, where: str
) -> None:
    @tool(name="depth", approval_mode="never_require")
    async def noted(harbour: str, ctx: FunctionInvocationContext, unit: str = "m") -> str:
        world.does("depth")
        ctx.session.state.setdefault("measured", []).append(harbour)
        return "12 m"

    def script(messages: Sequence[Message]) -> list[Content]:
        answers = sum(each.role == "assistant" for each in messages)
        world.does(f"model {answers}")
        given = calls()
        return [given[:1], given[1:], [Content.from_text("done")]][answers]

    def agent() -> Any:
        return harbour_agent(provider, script, tools=[noted, world.tools[1]])

    world.fails[where] = PowerCut()
    with pytest.raises(PowerCut):
        await agent().run(PROMPT, session=session())
    again = session()
    await agent().run(PROMPT, session=again)

    assert again.state["measured"] == ["Süd"]
    assert world.happened.count("depth") == 1


async def test_an_answer_in_a_form_is_read_again_after_a_resume(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    class Depth(BaseModel):
        metres: int

    def script(messages: Sequence[Message]) -> list[Content]:
        world.does("model")
        return [Content.from_text('{"metres": 12}')]

    class Fails(AgentMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            await call_next()
            raise PowerCut

    options: Any = {"response_format": Depth}
    middleware = [provider.middleware, Fails()]
    with pytest.raises(PowerCut):
        await harbour_agent(provider, script, middleware=middleware).run(
            PROMPT, session=session(), options=options
        )
    result = await harbour_agent(provider, script).run(PROMPT, session=session(), options=options)

    assert result.value == Depth(metres=12)
    assert world.happened == ["model"]


async def test_what_is_changed_between_two_runs_of_a_session_stays_changed(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    same = session()
    same.state["count"] = 1
    await world.agent(provider).run(PROMPT, session=same)
    same.state["count"] = 2
    await world.agent(provider).run("again", session=same)

    assert same.state["count"] == 2


async def test_a_session_state_that_cannot_be_kept_fails_with_its_path(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    given = session()
    given.state["lock"] = asyncio.sleep  # a function

    with (
        pytest.warns(RuntimeWarning, match="unsupported type"),
        pytest.raises(TypeError, match=r"lock"),
    ):
        await world.agent(provider).run(PROMPT, session=given)
    assert world.happened == []


async def test_two_runs_of_one_session_at_once_are_refused(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    runs = [world.agent(provider).run(PROMPT, session=session()) for _ in range(2)]
    found = await asyncio.gather(*runs, return_exceptions=True)

    assert [type(each) for each in found].count(SessionBusyError) == 1


# Going back


async def test_a_rolled_back_session_goes_on_from_there(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    provider = HoldfastHistoryProvider(url=url)
    await world.agent(provider).run(PROMPT, session=session())
    after_one = provider.client.latest("agent_framework", "s")
    await world.agent(provider).run("two", session=session())
    assert after_one is not None

    code = command_line(["rollback", after_one.checkpoint_id, "--store", url, "--yes"])
    assert code == 0, capsys.readouterr()

    assert [each.role for each in await provider.get_messages("s")].count("user") == 1
    await world.agent(provider).run("three", session=session())
    users = [each.text for each in await provider.get_messages("s") if each.role == "user"]
    assert users == [PROMPT, "three"]
    await provider.aclose()


async def test_a_session_rolled_back_into_the_middle_of_a_run_goes_on_there(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    await world.agent(provider).run(PROMPT, session=session())
    with client.session("agent_framework", session_id="s") as run:
        (answer,) = [each for each in run.history() if each.step_name == "tools"]
        run.rollback(to=answer.checkpoint_id)

    await world.agent(provider).run(PROMPT, session=session())

    assert world.happened == [*WHOLE, "model 1"]
    assert len(await provider.get_messages("s")) == 4


async def test_a_fork_goes_its_own_way(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    await world.agent(provider).run(PROMPT, session=session())
    head = client.latest("agent_framework", "s")
    assert head is not None
    client.fork(head.checkpoint_id, session_id="other")

    await world.agent(provider).run("there", session=session("other"))

    texts = [each.text for each in await provider.get_messages("other") if each.role == "user"]
    assert texts == [PROMPT, "there"]
    assert len(await provider.get_messages("s")) == 4
    other = client.latest("agent_framework", "other")
    assert other is not None
    added = client.diff(head.checkpoint_id, other.checkpoint_id).added
    assert added["$.messages[4]"]["contents"][0]["text"] == "there"


async def test_files_go_with_the_session(world: World, client: SyncClient, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()

    @tool(approval_mode="never_require")
    async def depth(harbour: str, unit: str = "m") -> str:
        world.does("depth")
        (place / "depth.txt").write_text(f"measured {world.happened.count('depth')} times")
        return "12 m"

    provider = HoldfastHistoryProvider(client, workspace=place)
    options = {"tools": [depth, world.tools[1]]}
    await world.agent(provider, **options).run(PROMPT, session=session())
    first = client.latest("agent_framework", "s")
    await world.agent(provider, **options).run("again", session=session())
    assert (place / "depth.txt").read_text() == "measured 2 times"
    assert first is not None

    with client.session("agent_framework", session_id="s", workspace=place) as run:
        run.rollback(to=first.checkpoint_id)

    assert (place / "depth.txt").read_text() == "measured 1 times"
    await provider.aclose()


# What is refused, and what is loud


async def test_a_run_without_a_session_is_refused(
    world: World, provider: HoldfastHistoryProvider
) -> None:
    with pytest.raises(InvalidArgumentError, match="create_session"):
        await world.agent(provider).run(PROMPT)


async def test_the_middleware_of_a_provider_that_the_agent_does_not_have_is_refused(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    async with HoldfastHistoryProvider(client) as other:
        agent = world.agent(provider, middleware=[other.middleware])
        with pytest.raises(InvalidArgumentError, match="not its own"):
            await agent.run(PROMPT, session=session())
    assert world.happened == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"source_id": ""}, "source_id"),
        ({"agent_id": 7}, "agent_id"),
        ({"effects": ["send"]}, "effects is a dict"),
        ({"effects": {"send": "terrible"}}, "one of read"),
        ({"url": "memory://", "client": SyncClient.memory()}, "not both"),
        ({"client": 7}, "a Client"),
    ],
)
def test_bad_options_are_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=said):
        HoldfastHistoryProvider(**given)


async def test_a_session_of_another_framework_is_refused(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    client.save("agent_framework", "strands", {"messages": []}, session_id="s")

    with pytest.raises(AdapterError, match="continue_in"):
        await world.agent(provider).run(PROMPT, session=session())
    with pytest.raises(AdapterError, match="of strands"):
        await provider.get_messages("s")


@pytest.mark.parametrize(
    "state", [[1], {"messages": "none"}, {"messages": [7]}, {"messages": [], "turn": {"start": 9}}]
)
async def test_a_damaged_state_is_named(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient, state: Any
) -> None:
    client.save("agent_framework", "agent_framework", state, session_id="s")

    with pytest.raises(AdapterError, match="damaged"):
        await world.agent(provider).run(PROMPT, session=session())
    assert world.happened == []


async def test_a_session_of_a_workflow_is_refused(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    state: dict[str, Any] = {"checkpoint": {}}
    client.save("agent_framework", "agent_framework", state, session_id="s")

    with pytest.raises(AdapterError, match="of a workflow"):
        await world.agent(provider).run(PROMPT, session=session())
    with pytest.raises(AdapterError, match="of a workflow"):
        await provider.get_messages("s")


async def test_a_session_of_an_agent_is_refused_by_workflows(
    world: World, provider: HoldfastHistoryProvider, client: SyncClient
) -> None:
    await world.agent(provider).run(PROMPT, session=session())

    with pytest.raises(AdapterError, match="another session_id for the workflow"):
        await HoldfastCheckpointStorage("s", client).get_latest(workflow_name="w")


@pytest.mark.parametrize("where", ["model 0", "depth", "tide", "model 1"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_checkpoint_that_could_not_be_written_is_raised_out_of_the_run(
    where: str, stream: bool
) -> None:
    store = FullStore()
    provider = HoldfastHistoryProvider(SyncClient(store))

    class Fills(World):
        def does(self, what: str) -> None:
            super().does(what)
            store.is_full = store.is_full or what == where

    agent = Fills().agent(provider)
    with pytest.raises(StoreFullError):
        await (read(agent) if stream else agent.run(PROMPT, session=session()))
