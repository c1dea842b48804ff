"""Teams of AutoGen, kept between their turns."""

from collections.abc import Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import (
    MaxMessageTermination,
    TextMentionTermination,
    TokenUsageTermination,
)
from autogen_agentchat.messages import StructuredMessage
from autogen_agentchat.teams import RoundRobinGroupChat, SelectorGroupChat, Swarm
from autogen_core import FunctionCall
from autogen_core.models import CreateResult
from pydantic import BaseModel

from holdfast import AdapterError, InvalidArgumentError, SyncClient
from holdfast.adapters.autogen import TurnCheckpoints, load, save
from holdfast.adapters.portable import conversation
from tests.frameworks.autogen_kit import ScriptedClient, numbered, said, says
from tests.frameworks.full_store import FullStore

ERRORS = (RuntimeError, ConnectionError)


@pytest.fixture
def client() -> Any:
    with SyncClient.memory() as client:
        yield client


class Line:
    """The line to all models, which may be cut at a request."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.asked = 0
        self.fails_at = fails_at

    def script(self, messages: Sequence[Any]) -> CreateResult:
        self.asked += 1
        if self.asked == self.fails_at:
            raise ConnectionError("the line is down")
        return numbered(messages)

    def agent(self, name: str, **options: Any) -> AssistantAgent:
        return AssistantAgent(name, ScriptedClient(self.script), **options)


def round_robin(line: Line, condition: Any, **options: Any) -> RoundRobinGroupChat:
    members: list[Any] = [line.agent("north"), line.agent("south"), line.agent("east")]
    return RoundRobinGroupChat(members, termination_condition=condition, **options)


async def goes(team: Any, checkpoints: TurnCheckpoints, task: str = "count") -> Any:
    """Run a team as the page says."""
    cut_off = await checkpoints.resume(team)
    return await team.run(task=None if cut_off else task)


def thread(client: SyncClient, session_id: str = "t") -> list[list[str]]:
    head = client.latest("autogen", session_id)
    assert head is not None
    states = head.execution_state["state"]["agent_states"].values()
    (found,) = [each["message_thread"] for each in states if "message_thread" in each]
    return [[each["source"], each["content"]] for each in found]


async def test_a_team_that_was_cut_off_goes_on_with_the_speaker_whose_turn_it_is(
    client: SyncClient,
) -> None:
    for name, fails_at in (("whole", None), ("t", 3)):
        line = Line(fails_at)
        checkpoints = TurnCheckpoints(session_id=name, client=client)
        team = round_robin(line, checkpoints | MaxMessageTermination(6))
        if fails_at is None:
            await goes(team, checkpoints)
            continue
        with pytest.raises(ERRORS):
            await goes(team, checkpoints)

    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    result = await goes(round_robin(line, checkpoints | MaxMessageTermination(6)), checkpoints)

    assert line.asked == 3
    assert thread(client) == thread(client, "whole")
    assert [each.source for each in result.messages] == ["east", "north", "south"]
    assert result.stop_reason == "Maximum number of messages 6 reached, current message count: 6"


async def test_turns_that_the_team_counts_itself_are_counted_on(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(ERRORS):
        await goes(round_robin(Line(3), checkpoints, max_turns=4), checkpoints)

    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(line, checkpoints, max_turns=4), checkpoints)

    assert line.asked == 2
    assert len(thread(client)) == 5


@pytest.mark.parametrize("is_behind", [True, False])
async def test_conditions_that_count_other_things_count_on_too(
    client: SyncClient, is_behind: bool
) -> None:
    def conditions() -> tuple[TurnCheckpoints, Any]:
        tokens = TokenUsageTermination(max_total_token=8)
        if is_behind:
            checkpoints = TurnCheckpoints(session_id="t", client=client)
            return checkpoints, checkpoints | TextMentionTermination("never") | tokens
        checkpoints = TurnCheckpoints(session_id="t", client=client, conditions=[tokens])
        return checkpoints, tokens | checkpoints

    checkpoints, condition = conditions()
    with pytest.raises(ERRORS):
        await goes(round_robin(Line(3), condition), checkpoints)
    line = Line()
    checkpoints, condition = conditions()
    await goes(round_robin(line, condition), checkpoints)

    assert line.asked == 2  # of four turns of two tokens each


async def test_after_its_end_a_team_takes_a_new_task(client: SyncClient) -> None:
    line = Line()
    for task in ("one", "two"):
        checkpoints = TurnCheckpoints(session_id="t", client=client)
        team = round_robin(line, checkpoints | MaxMessageTermination(3))
        await goes(team, checkpoints, task)

    assert line.asked == 4
    assert [source for source, _ in thread(client)] == [
        *("user", "north", "south"),
        *("user", "east", "north"),
    ]
    names = [each.step_name for each in client.timeline("autogen", "t")]
    assert names == [
        *("end", "turn 4: north", "turn 3: east", "task"),
        *("end", "turn 2: south", "turn 1: north", "task"),
    ]


async def test_one_team_runs_twice_in_one_process(client: SyncClient) -> None:
    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    team = round_robin(line, checkpoints | MaxMessageTermination(3))
    await goes(team, checkpoints, "one")
    await goes(team, checkpoints, "two")

    assert len(thread(client)) == 6


async def test_a_team_killed_between_its_last_turn_and_its_end_has_ended(
    client: SyncClient,
) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(Line(), checkpoints | MaxMessageTermination(3)), checkpoints)
    with client.session("autogen", session_id="t") as run:
        run.rollback(to="turn 2: south")  # where the kill would have left it

    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(line, checkpoints | MaxMessageTermination(3)), checkpoints)
    assert line.asked == 0

    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(line, checkpoints | MaxMessageTermination(3)), checkpoints, "two")
    assert line.asked == 2


async def test_a_rolled_back_team_goes_on_from_there(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(Line(), checkpoints | MaxMessageTermination(5)), checkpoints)
    with client.session("autogen", session_id="t") as run:
        run.rollback(to="turn 1: north")

    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    result = await goes(round_robin(line, checkpoints | MaxMessageTermination(5)), checkpoints)

    assert [each.source for each in result.messages] == ["south", "east", "north"]


async def test_a_forked_team_goes_its_own_way(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(Line(), checkpoints | MaxMessageTermination(5)), checkpoints)
    place = next(
        each for each in client.timeline("autogen", "t") if each.step_name == "turn 2: south"
    )
    client.fork(place.checkpoint_id, session_id="fork")

    checkpoints = TurnCheckpoints(session_id="fork", client=client)
    result = await goes(round_robin(Line(), checkpoints | MaxMessageTermination(6)), checkpoints)

    assert [each.source for each in result.messages] == ["east", "north", "south"]
    assert len(thread(client)) == 5


async def test_teams_that_choose_their_speakers_are_kept_too(client: SyncClient) -> None:
    def swarm(line: Line, condition: Any) -> Swarm:
        def hands_over(messages: Sequence[Any]) -> CreateResult:
            found = line.script(messages)
            own = sum(each.type == "AssistantMessage" for each in messages)
            return found if own else says([FunctionCall("h", "{}", "transfer_to_south")])

        north = AssistantAgent("north", ScriptedClient(hands_over), handoffs=["south"])
        return Swarm([north, line.agent("south")], termination_condition=condition)

    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(ERRORS):
        await goes(swarm(Line(2), checkpoints | MaxMessageTermination(8)), checkpoints)
    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    result = await goes(swarm(line, checkpoints | MaxMessageTermination(8)), checkpoints)

    assert {each.source for each in result.messages} == {"south"}


async def test_a_team_with_a_model_that_selects_goes_on(client: SyncClient) -> None:
    def selector(line: Line, condition: Any) -> SelectorGroupChat:
        def selects(messages: Sequence[Any]) -> CreateResult:
            return says("south" if "north" in str(messages[-1].content)[-300:] else "north")

        members: list[Any] = [line.agent("north"), line.agent("south")]
        return SelectorGroupChat(members, ScriptedClient(selects), termination_condition=condition)

    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(ERRORS):
        await goes(selector(Line(2), checkpoints | MaxMessageTermination(4)), checkpoints)
    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(selector(line, checkpoints | MaxMessageTermination(4)), checkpoints)

    assert line.asked == 2
    assert len(thread(client)) == 4


async def test_what_a_team_said_is_read_as_a_conversation(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(Line(), checkpoints | MaxMessageTermination(3)), checkpoints)

    found = conversation("t", client)
    assert found is not None
    assert [each["role"] for each in found.messages] == ["user", "assistant"]
    assert [part["content"] for part in found.messages[1]["parts"]] == [
        text for _, text in thread(client)[1:]
    ]
    assert "north said it" in found.lost[0]


async def test_a_team_is_saved_and_loaded_by_hand(client: SyncClient) -> None:
    team = round_robin(Line(), MaxMessageTermination(3))
    await team.run(task="count")
    await save(team, session_id="t", client=client)

    other = round_robin(Line(), MaxMessageTermination(3))
    assert await load(other, session_id="t", client=client) is True
    result = await other.run()
    assert said(result.messages)[0][0] == "east"


# What is refused, and what is loud


async def test_a_team_that_was_not_resumed_is_refused(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    team = round_robin(Line(), checkpoints | MaxMessageTermination(3))

    with pytest.raises((AdapterError, RuntimeError), match=r"checkpoints\.resume\(team\)"):
        await team.run(task="count")


async def test_another_team_than_the_one_that_was_kept_is_refused(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(round_robin(Line(), checkpoints | MaxMessageTermination(3)), checkpoints)
    other: Any = RoundRobinGroupChat([Line().agent("west")], termination_condition=checkpoints)

    with pytest.raises(AdapterError, match="does not fit"):
        await checkpoints.resume(other)


def test_bad_options_are_refused(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(InvalidArgumentError, match="ends nothing"):
        checkpoints & MaxMessageTermination(3)
    with pytest.raises(InvalidArgumentError, match="session_id"):
        TurnCheckpoints(session_id="", client=client)
    with pytest.raises(InvalidArgumentError, match="not both"):
        TurnCheckpoints(session_id="t", client=client, url="memory://")


async def test_only_a_team_is_resumed(client: SyncClient) -> None:
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(InvalidArgumentError, match="takes a team"):
        await checkpoints.resume(Line().agent("north"))


async def test_a_turn_that_could_not_be_kept_ends_the_run_loudly() -> None:
    store = FullStore()
    checkpoints = TurnCheckpoints(session_id="t", client=SyncClient(store))
    line = Line()

    class Fills(Line):
        def script(self, messages: Sequence[Any]) -> CreateResult:
            store.is_full = True
            return line.script(messages)

    with pytest.raises(RuntimeError, match="no space is left"):
        await goes(round_robin(Fills(), checkpoints | MaxMessageTermination(5)), checkpoints)
    assert line.asked == 1


async def test_two_processes_that_run_one_team_are_told(client: SyncClient) -> None:
    mine, other = (TurnCheckpoints(session_id="t", client=client) for _ in range(2))
    team = round_robin(Line(), mine | MaxMessageTermination(5))
    await mine.resume(team)
    await goes(round_robin(Line(), other | MaxMessageTermination(3)), other)

    with pytest.raises((RuntimeError, AdapterError), match="gone on with elsewhere"):
        await team.run(task="count")


async def test_members_that_answer_in_a_form_of_their_own_are_counted_on(
    client: SyncClient,
) -> None:
    class Depth(BaseModel):
        metres: int

    def measuring(line: Line, condition: Any) -> RoundRobinGroupChat:
        def script(messages: Sequence[Any]) -> CreateResult:
            line.script(messages)
            return says('{"metres": 12}')

        members: list[Any] = [
            AssistantAgent(name, ScriptedClient(script), output_content_type=Depth)
            for name in ("north", "south")
        ]
        return RoundRobinGroupChat(
            members,
            termination_condition=condition,
            custom_message_types=[StructuredMessage[Depth]],
        )

    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(ERRORS):
        await goes(measuring(Line(2), checkpoints | MaxMessageTermination(4)), checkpoints)
    line = Line()
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(measuring(line, checkpoints | MaxMessageTermination(4)), checkpoints)

    assert line.asked == 2


async def test_a_team_inside_a_team_speaks_as_one(client: SyncClient) -> None:
    def nested(line: Line, condition: Any) -> RoundRobinGroupChat:
        inner: Any = RoundRobinGroupChat(
            [line.agent("north"), line.agent("south")],
            name="coast",
            termination_condition=MaxMessageTermination(2),
        )
        members: list[Any] = [inner, line.agent("east")]
        return RoundRobinGroupChat(members, termination_condition=condition, max_turns=3)

    checkpoints = TurnCheckpoints(session_id="whole", client=client)
    await goes(nested(Line(), checkpoints), checkpoints)
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    with pytest.raises(ERRORS):
        await goes(nested(Line(3), checkpoints), checkpoints)
    checkpoints = TurnCheckpoints(session_id="t", client=client)
    await goes(nested(Line(), checkpoints), checkpoints)

    assert thread(client) == thread(client, "whole")
    assert len(client.timeline("autogen", "t")) == len(client.timeline("autogen", "whole")) == 5
