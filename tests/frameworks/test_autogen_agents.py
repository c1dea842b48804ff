"""Agents of AutoGen: going on, going back, what is refused and what is loud."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any, Literal

import pytest
from autogen_agentchat.agents import AssistantAgent, BaseChatAgent
from autogen_agentchat.base import Response, TaskResult
from autogen_agentchat.messages import (
    BaseChatMessage,
    BaseTextChatMessage,
    HandoffMessage,
    TextMessage,
    ToolCallExecutionEvent,
)
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_core import FunctionCall
from autogen_core.models import CreateResult, FunctionExecutionResult, UserMessage

from holdfast import (
    AdapterError,
    InvalidArgumentError,
    SessionBusyError,
    StoreFullError,
    SyncClient,
)
from holdfast.adapters.autogen import load, run, run_stream, save
from holdfast.adapters.portable import conversation
from holdfast.cli import main as command_line
from tests.frameworks.autogen_kit import ScriptedClient, asks_twice, harbour_agent, said, says
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

    def script(self, messages: Sequence[Any]) -> CreateResult:
        own = sum(each.type == "AssistantMessage" for each in messages)
        self.does(f"model {own}")
        return asks_twice(messages)

    async def depth(self, harbour: str, unit: str = "m") -> str:
        """Tell how deep a harbour is."""
        self.does("depth")
        return "12.5 m"

    async def tide(self, harbour: str) -> str:
        """Tell whether the water rises."""
        while "depth" not in self.happened:
            await asyncio.sleep(0)
        self.does("tide")
        return "rising"

    def agent(self, **options: Any) -> AssistantAgent:
        return harbour_agent(self.script, tools=[self.depth, self.tide], **options)


WHOLE = ["model 0", "depth", "tide", "model 1"]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


def messages_of(client: SyncClient, session_id: str = "s") -> list[Any]:
    head = client.latest("autogen", session_id)
    assert head is not None
    found: list[Any] = head.execution_state["state"]["llm_context"]["messages"]
    return found


def types(messages: Sequence[Any]) -> list[str]:
    return [each["type"].removesuffix("Message") for each in messages]


# Going on


@pytest.mark.parametrize("where", ["model 0", "model 1"])
@pytest.mark.parametrize("task", [PROMPT, None])
async def test_the_same_task_or_none_goes_on_where_a_run_was_cut_off(
    world: World, client: SyncClient, where: str, task: str | None
) -> None:
    world.fails[where] = PowerCut()
    with pytest.raises(PowerCut):
        await run(world.agent(), PROMPT, session_id="s", client=client)

    result = await run(world.agent(), task, session_id="s", client=client)

    assert [world.happened.count(each) for each in WHOLE] == [
        2 if each == where else 1 for each in WHOLE
    ]
    assert said(result.messages)[-1] == ["clerk", "TextMessage", ANSWER]
    assert types(messages_of(client)) == [
        "User",
        "Assistant",
        "FunctionExecutionResult",
        "Assistant",
    ]


async def test_a_resumed_run_gives_the_whole_result(world: World, client: SyncClient) -> None:
    whole = await run(world.agent(), PROMPT, session_id="whole", client=client)
    world.fails["model 1"] = PowerCut()
    with pytest.raises(PowerCut):
        await run(world.agent(), PROMPT, session_id="s", client=client)

    result = await run(world.agent(), PROMPT, session_id="s", client=client)

    assert isinstance(result, TaskResult)
    assert said(result.messages) == said(whole.messages)


async def test_what_happens_can_be_read_as_a_stream(world: World, client: SyncClient) -> None:
    events = [
        event async for event in run_stream(world.agent(), PROMPT, session_id="s", client=client)
    ]

    assert [type(event).__name__ for event in events] == [
        "TextMessage",
        "ThoughtEvent",
        "ToolCallRequestEvent",
        "ToolCallExecutionEvent",
        "TextMessage",
        "TaskResult",
    ]
    assert events[1].content == SAID


async def test_a_model_that_fails_is_asked_again_and_nothing_else_is_done_again(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()
    world.fails["model 1"] = ConnectionError("the line is down")
    with pytest.raises(ConnectionError):
        await run(agent, PROMPT, session_id="s", client=client)

    await run(agent, PROMPT, session_id="s", client=client)

    assert world.happened == [*WHOLE, "model 1"]


async def test_another_task_leaves_what_was_cut_off_and_answers_its_calls(
    client: SyncClient,
) -> None:
    ended = asyncio.Event()

    async def depth(harbour: str, unit: str = "m") -> str:
        """Tell how deep a harbour is."""
        return "12.5 m"

    async def tide(harbour: str) -> str:
        """Never come to an end."""
        ended.set()
        await asyncio.Event().wait()
        return "never"

    agent = harbour_agent(tools=[depth, tide])
    task = asyncio.create_task(run(agent, PROMPT, session_id="s", client=client))
    await ended.wait()
    while not [each for each in client.find(session_id="s") if each.step_name == "model"]:
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    other = harbour_agent(lambda _: says("as you like"))
    await run(other, "never mind", session_id="s", client=client)

    results = {each.call_id: each for each in other._model_client.sent[0][3].content}
    assert results["call_depth"].content == "12.5 m"
    assert "interrupted" in results["call_tide"].content
    assert results["call_tide"].is_error
    assert types(messages_of(client))[-2:] == ["User", "Assistant"]


async def test_after_its_end_the_same_task_is_a_new_one(world: World, client: SyncClient) -> None:
    agent = world.agent()
    for _ in range(2):
        await run(agent, PROMPT, session_id="s", client=client)

    assert types(messages_of(client)).count("User") == 2
    assert world.happened.count("depth") == 2  # although the model gave its calls the same ids


async def test_calls_without_ids_are_told_apart(world: World, client: SyncClient) -> None:
    def script(messages: Sequence[Any]) -> CreateResult:
        found = sum(each.type == "AssistantMessage" for each in messages)
        world.does(f"model {found}")
        call = FunctionCall("", '{"harbour": "a"}', "depth")
        return says([call, call]) if found < 2 else says("done")

    async def depth(harbour: str) -> str:
        """Tell how deep a harbour is."""
        world.does("depth")
        return str(world.happened.count("depth"))

    world.fails["model 2"] = PowerCut()
    with pytest.raises(PowerCut):
        await run(harbour_agent(script, tools=[depth]), PROMPT, session_id="s", client=client)
    await run(harbour_agent(script, tools=[depth]), PROMPT, session_id="s", client=client)

    assert world.happened.count("depth") == 4


async def test_a_tool_that_fails_is_told_again_as_it_was(world: World, client: SyncClient) -> None:
    world.fails |= {"depth": ValueError("too deep"), "model 1": PowerCut()}
    with pytest.raises(PowerCut):
        await run(world.agent(), PROMPT, session_id="s", client=client)
    await run(world.agent(), PROMPT, session_id="s", client=client)

    assert world.happened == [*WHOLE, "model 1"]
    (result, _) = messages_of(client)[2]["content"]
    assert result["is_error"] is True
    assert "too deep" in result["content"]


async def test_a_task_of_several_messages_goes_on_too(world: World, client: SyncClient) -> None:
    def task() -> list[BaseChatMessage]:
        context = [UserMessage(content="before", source="user")]
        handed = HandoffMessage(
            content="take over", target="clerk", source="other", context=context
        )
        return [TextMessage(content="one", source="user"), handed]

    world.fails["model 1"] = PowerCut()
    with pytest.raises(PowerCut):
        await run(world.agent(), task(), session_id="s", client=client)
    middle = types(messages_of(client))
    await run(world.agent(), task(), session_id="s", client=client)

    assert middle == ["User", "User", "User", "Assistant", "FunctionExecutionResult"]
    assert types(messages_of(client)) == [*middle, "Assistant"]


class Reckoner(BaseChatAgent):
    """An agent of one's own, with a state of its own."""

    def __init__(self, fails: bool = False) -> None:
        super().__init__("reckoner", "reckons")
        self.seen: list[str] = []
        self.fails = fails

    @property
    def produced_message_types(self) -> Sequence[type[BaseChatMessage]]:
        return (TextMessage,)

    async def on_messages(self, messages: Sequence[Any], cancellation_token: Any) -> Response:
        raise AssertionError("the stream is read")

    async def on_messages_stream(
        self, messages: Sequence[Any], cancellation_token: Any
    ) -> AsyncGenerator[Any, None]:
        self.seen += [each.content for each in messages]
        result = FunctionExecutionResult(content="4", name="add", call_id="c", is_error=False)
        yield ToolCallExecutionEvent(content=[result], source=self.name)
        if self.fails:
            raise PowerCut
        said = TextMessage(content=f"{len(self.seen)} seen", source=self.name)
        yield Response(chat_message=said)

    async def on_reset(self, cancellation_token: Any) -> None:
        self.seen = []

    async def save_state(self) -> dict[str, Any]:
        return {"type": "Reckoner", "seen": list(self.seen)}

    async def load_state(self, state: Any) -> None:
        self.seen = list(state["seen"])


async def test_an_agent_of_ones_own_goes_on_after_its_tools(client: SyncClient) -> None:
    with pytest.raises(PowerCut):
        await run(Reckoner(fails=True), "add", session_id="s", client=client)

    result = await run(Reckoner(), "add", session_id="s", client=client)

    assert result.messages[-1].content == "1 seen"
    assert (await run(Reckoner(), "add", session_id="s", client=client)).messages[-1].content == (
        "2 seen"
    )


# Going back


async def test_a_rolled_back_session_goes_on_from_there(
    world: World, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url = f"sqlite:///{tmp_path / 'agent.db'}"
    await run(world.agent(), PROMPT, session_id="s", url=url)
    with SyncClient.open(url) as client:
        first = client.latest("autogen", "s")
    await run(world.agent(), "two", session_id="s", url=url)
    assert first is not None

    code = command_line(["rollback", first.checkpoint_id, "--store", url, "--yes"])
    assert code == 0, capsys.readouterr()

    await run(world.agent(), "three", session_id="s", url=url)
    with SyncClient.open(url) as client:
        users = [each["content"] for each in messages_of(client) if each["type"] == "UserMessage"]
        names = [each.step_name for each in client.timeline("autogen", "s")]
    assert users == [PROMPT, "three"]
    assert names[:5] == ["end", "model", "tools", "model", "user prompt"]


async def test_a_session_rolled_back_into_the_middle_of_a_run_goes_on_there(
    world: World, client: SyncClient
) -> None:
    await run(world.agent(), PROMPT, session_id="s", client=client)
    with client.session("autogen", session_id="s") as opened:
        opened.rollback(to="tools")

    await run(world.agent(), PROMPT, session_id="s", client=client)

    assert world.happened == [*WHOLE, "model 1"]


async def test_a_fork_goes_its_own_way(world: World, client: SyncClient) -> None:
    await run(world.agent(), PROMPT, session_id="s", client=client)
    head = client.latest("autogen", "s")
    assert head is not None
    client.fork(head.checkpoint_id, session_id="fork")

    await run(world.agent(), "there", session_id="fork", client=client)

    assert types(messages_of(client, "fork")).count("User") == 2
    assert types(messages_of(client)).count("User") == 1
    fork = client.latest("autogen", "fork")
    assert fork is not None
    added = client.diff(head.checkpoint_id, fork.checkpoint_id).added
    assert added["$.state.llm_context.messages[4]"]["content"] == "there"


async def test_files_go_with_the_session(client: SyncClient, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()
    counted = []

    async def depth(harbour: str, unit: str = "m") -> str:
        """Tell how deep a harbour is."""
        counted.append(harbour)
        (place / "depth.txt").write_text(f"measured {len(counted)} times")
        return "12 m"

    async def tide(harbour: str) -> str:
        """Tell whether the water rises."""
        return "rising"

    options: Any = {"session_id": "s", "client": client, "workspace": place}
    await run(harbour_agent(tools=[depth, tide]), PROMPT, **options)
    first = client.latest("autogen", "s")
    await run(harbour_agent(tools=[depth, tide]), "again", **options)
    assert first is not None

    with client.session("autogen", session_id="s", workspace=place) as opened:
        opened.rollback(to=first.checkpoint_id)

    assert (place / "depth.txt").read_text() == "measured 1 times"


# Keeping by hand


async def test_an_agent_is_saved_and_loaded_by_hand(world: World, client: SyncClient) -> None:
    agent = world.agent()
    assert await load(agent, session_id="s", client=client) is False
    await agent.run(task=PROMPT)
    saved = await save(agent, session_id="s", client=client)

    other = world.agent()
    assert await load(other, session_id="s", client=client) is True
    assert await other.save_state() == await agent.save_state()
    assert client.restore(saved).step_name == "saved"
    found = conversation("s", client)
    assert found is not None
    assert found.problems() == []
    assert await save(other, session_id="s", client=client) != saved


async def test_a_run_goes_on_from_what_was_saved_by_hand(world: World, client: SyncClient) -> None:
    agent = world.agent()
    await agent.run(task=PROMPT)
    await save(agent, session_id="s", client=client)

    await run(world.agent(), "again", session_id="s", client=client)

    assert types(messages_of(client)).count("User") == 2


async def test_the_state_of_a_team_is_not_that_of_an_agent(
    world: World, client: SyncClient
) -> None:
    team = RoundRobinGroupChat([world.agent()])
    await save(team, session_id="team", client=client)
    await save(world.agent(), session_id="agent", client=client)

    with pytest.raises(AdapterError, match="a team, not of an agent"):
        await load(world.agent(), session_id="team", client=client)
    with pytest.raises(AdapterError, match="an agent, not of a team"):
        await load(team, session_id="agent", client=client)
    with pytest.raises(AdapterError, match="a team, not of an agent"):
        await run(world.agent(), "go", session_id="team", client=client)


# What is refused, and what is loud


async def test_bad_input_is_refused(world: World, client: SyncClient) -> None:
    team = RoundRobinGroupChat([world.agent()])
    given: list[tuple[Any, Any, dict[str, Any], str]] = [
        (team, PROMPT, {}, "TurnCheckpoints"),
        ("agent", PROMPT, {}, "takes an agent"),
        (world.agent(), PROMPT, {"session_id": ""}, "session_id"),
        (world.agent(), PROMPT, {"url": "memory://"}, "not both"),
        (world.agent(), 7, {}, "a task is"),
        (world.agent(), ["a", "b"], {}, "a task is"),
        (world.agent(), PROMPT, {"effects": {"sned": "read"}}, "its tools are depth, tide"),
        (world.agent(), PROMPT, {"effects": 7}, "effects is a dict"),
    ]
    for agent, task, options, why in given:
        with pytest.raises(InvalidArgumentError, match=why):
            await run(agent, task, **{"session_id": "s", "client": client, **options})
    for what in (save, load):
        with pytest.raises(InvalidArgumentError, match="an agent or a team"):
            await what("agent", session_id="s", client=client)
    assert world.happened == []


@pytest.mark.parametrize("state", [7, {"state": 7}, {"state": {}}, {"state": {"type": "X"}}])
async def test_a_damaged_state_is_named(world: World, client: SyncClient, state: Any) -> None:
    client.save("autogen", "autogen", state, session_id="s")

    with pytest.raises(AdapterError):
        await run(Reckoner(), PROMPT, session_id="s", client=client)


async def test_a_session_of_another_framework_is_refused(world: World, client: SyncClient) -> None:
    client.save("autogen", "strands", {"state": {}}, session_id="s")

    for what in (run(world.agent(), "x", session_id="s", client=client),):
        with pytest.raises(AdapterError, match="continue_in"):
            await what
    with pytest.raises(AdapterError, match="continue_in"):
        await load(world.agent(), session_id="s", client=client)


async def test_two_runs_of_one_session_at_once_are_refused(
    world: World, client: SyncClient
) -> None:
    runs = [run(world.agent(), PROMPT, session_id="s", client=client) for _ in range(2)]
    found = await asyncio.gather(*runs, return_exceptions=True)

    assert [type(each) for each in found].count(SessionBusyError) == 1


@pytest.mark.parametrize("where", ["model 0", "depth", "tide", "model 1"])
async def test_a_checkpoint_that_could_not_be_written_is_raised_out_of_the_run(where: str) -> None:
    store = FullStore()

    class Fills(World):
        def does(self, what: str) -> None:
            super().does(what)
            store.is_full = store.is_full or what == where

    with pytest.raises(StoreFullError):
        await run(Fills().agent(), PROMPT, session_id="s", client=SyncClient(store))


async def test_the_agent_has_its_own_model_and_tools_again_after_a_run(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()
    world.fails["model 1"] = ConnectionError()
    with pytest.raises(ConnectionError):
        await run(agent, PROMPT, session_id="s", client=client)

    assert isinstance(agent._model_client, ScriptedClient)
    assert (await agent.run(task="without holdfast")).messages[-1].content == ANSWER


class Ticket(BaseTextChatMessage):
    """A message of the user's own type."""

    type: Literal["Ticket"] = "Ticket"


async def test_a_task_of_ones_own_type_goes_on_if_it_is_given_again(
    world: World, client: SyncClient
) -> None:
    world.fails["model 1"] = PowerCut()
    with pytest.raises(PowerCut):
        await run(world.agent(), Ticket(content="7", source="user"), session_id="s", client=client)
    with pytest.raises(AdapterError, match="give the same task again"):
        await run(world.agent(), session_id="s", client=client)

    await run(world.agent(), Ticket(content="7", source="user"), session_id="s", client=client)

    assert world.happened == [*WHOLE, "model 1"]


async def test_an_agent_loaded_in_the_middle_of_calls_has_answers_to_them(
    world: World, client: SyncClient
) -> None:
    await run(world.agent(), PROMPT, session_id="s", client=client)
    with client.session("autogen", session_id="s") as opened:
        opened.rollback(
            to=[each for each in opened.history() if each.step_name == "model"][-1].checkpoint_id
        )

    agent = world.agent()
    assert await load(agent, session_id="s", client=client)

    messages = (await agent.save_state())["llm_context"]["messages"]
    assert types(messages) == ["User", "Assistant", "FunctionExecutionResult"]
    assert "interrupted" in messages[-1]["content"][0]["content"]
