"""HoldfastSession: the SDK's Session, of which every change is a checkpoint."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, SQLiteSession
from agents.memory import Session, SessionSettings
from agents.testing import assistant_message

from holdfast import AdapterError, Framework, InvalidArgumentError, StoreError, SyncClient
from holdfast.adapters.openai_agents import HoldfastRunner, HoldfastSession
from tests.frameworks.openai_agents_world import EVERYTHING, World, client, scripted, users, world

__all__ = ["client", "world"]

USER = {"role": "user", "content": "hello"}
REPLY = {"role": "assistant", "content": "hi"}
CALL = {"type": "function_call", "call_id": "c1", "name": "look", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "found"}


@pytest.fixture(params=["ours", "theirs"])
async def session(request: pytest.FixtureRequest, client: SyncClient) -> AsyncIterator[Session]:
    """The same is true of ours as of the SDK's own."""
    if request.param == "ours":
        yield HoldfastSession("s", client)
    else:
        own = SQLiteSession("s")
        yield own
        own.close()


async def test_it_is_a_session(session: Session) -> None:
    assert isinstance(session, Session)
    assert session.session_id == "s"
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()


async def test_items_come_back_in_order(session: Session) -> None:
    await session.add_items([USER, CALL, OUTPUT])
    await session.add_items([])
    await session.add_items([REPLY])

    assert await session.get_items() == [USER, CALL, OUTPUT, REPLY]


async def test_equal_items_are_kept_as_often_as_they_are_added(session: Session) -> None:
    await session.add_items([USER])
    await session.add_items([USER])

    assert await session.get_items() == [USER, USER]


async def test_a_limit_gives_the_newest(session: Session) -> None:
    items = [{"role": "user", "content": f"message {n}"} for n in range(6)]
    await session.add_items(items)

    assert await session.get_items(limit=2) == items[-2:]
    assert await session.get_items(limit=50) == items
    assert await session.get_items(limit=0) == []


async def test_the_newest_is_taken_back(session: Session) -> None:
    await session.add_items([USER, REPLY])

    assert await session.pop_item() == REPLY
    assert await session.get_items() == [USER]
    assert await session.pop_item() == USER
    assert await session.pop_item() is None


async def test_a_cleared_session_begins_anew(session: Session) -> None:
    await session.add_items([USER])
    await session.clear_session()
    assert await session.get_items() == []
    await session.add_items([REPLY])
    assert await session.get_items() == [REPLY]


async def test_any_text_comes_back(session: Session) -> None:
    odd = {"role": "user", "content": "Größe 水深 🌊 '; DROP TABLE items; -- \n\t \u2028"}
    await session.add_items([odd])
    assert await session.get_items() == [odd]


async def test_a_runner_goes_on_with_it(session: Session) -> None:
    model = scripted(lambda call: [assistant_message(f"heard {users(call.input)}")])
    agent = Agent(name="clerk", model=model)
    await Runner.run(agent, "one", session=session)

    result = await Runner.run(agent, "two", session=session)

    assert result.final_output == "heard ['one', 'two']"
    assert len(await session.get_items()) == 4


async def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    sessions = [HoldfastSession("s", url=url) for _ in range(4)]

    async def write(session: HoldfastSession, number: int) -> None:
        for n in range(5):
            await session.add_items([{"role": "user", "content": f"{number} {n}"}])

    await asyncio.gather(*(write(each, number) for number, each in enumerate(sessions)))

    found = users(await sessions[0].get_items())
    assert sorted(found) == sorted(f"{number} {n}" for number in range(4) for n in range(5))
    assert [text for text in found if text.startswith("2")] == [f"2 {n}" for n in range(5)]
    for session in sessions:
        await session.close()


async def test_its_settings_say_how_many_items_are_given(client: SyncClient) -> None:
    session = HoldfastSession("s", client, session_settings=SessionSettings(limit=1))
    await session.add_items([USER, REPLY])

    assert await session.get_items() == [REPLY]
    assert await session.get_items(limit=2) == [USER, REPLY]


async def test_a_call_that_was_cut_off_is_answered_when_it_is_loaded(client: SyncClient) -> None:
    session = HoldfastSession("s", client)
    await session.add_items([USER, CALL, {**CALL, "call_id": "c2"}, OUTPUT])
    await session.add_items([REPLY])

    items = await session.get_items()

    assert items[:4] == [USER, CALL, {**CALL, "call_id": "c2"}, OUTPUT]
    assert items[4]["call_id"] == "c2"
    assert "interrupted" in items[4]["output"]
    assert items[5] == REPLY
    assert await session.get_items(limit=2) == [REPLY]  # an answer without its call is refused too
    model = scripted(lambda call: [assistant_message("fine")])
    result = await Runner.run(Agent(name="clerk", model=model), "so?", session=session)
    assert result.final_output == "fine"


async def test_clearing_is_a_checkpoint_that_can_be_taken_back(client: SyncClient) -> None:
    session = HoldfastSession("s", client)
    await session.add_items([USER])
    await session.add_items([REPLY])
    await session.clear_session()
    steps = client.timeline("openai_agents", "s")
    assert [step.step_name for step in steps] == ["cleared", "model", "user prompt"]

    with client.session("openai_agents", session_id="s") as run:
        run.rollback(to=steps[1].checkpoint_id)

    assert await session.get_items() == [USER, REPLY]
    client.fork(steps[2].checkpoint_id, session_id="fork")
    assert await HoldfastSession("fork", client).get_items() == [USER]


async def test_a_prompt_given_again_after_a_kill_is_kept_once(client: SyncClient) -> None:
    await HoldfastSession("s", client).add_items([USER])  # and killed in the model

    again = HoldfastSession("s", client)
    await again.add_items([USER])

    assert await again.get_items() == [USER]


async def test_a_killed_run_goes_on_without_a_prompt(world: World, client: SyncClient) -> None:
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await Runner.run(world.agent(), "go", session=HoldfastSession("s", client))

    result = await Runner.run(world.agent(), [], session=HoldfastSession("s", client))

    assert result.final_output == "done: sent c"
    assert world.happened == [*EVERYTHING[:4], *EVERYTHING[3:]]
    assert users(await HoldfastSession("s", client).get_items()) == ["go"]


async def test_runner_and_session_go_on_with_each_others_conversation(
    world: World, client: SyncClient
) -> None:
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    session = HoldfastSession("s", client)
    model = scripted(lambda call: [assistant_message(f"heard {users(call.input)}")])

    mine = await Runner.run(Agent(name="clerk", model=model), "and?", session=session)
    ours = await HoldfastRunner.run(
        Agent(name="clerk", model=model), "so?", session_id="s", client=client
    )

    assert mine.final_output == "heard ['go', 'and?']"
    assert ours.final_output == "heard ['go', 'and?', 'so?']"


async def test_files_are_captured_with_it(client: SyncClient, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("one")
    session = HoldfastSession("s", client, workspace=tmp_path)
    await session.add_items([USER])
    (tmp_path / "note.txt").write_text("two")
    await session.add_items([REPLY])
    first = client.timeline("openai_agents", "s")[1].checkpoint_id

    with client.session("openai_agents", session_id="s", workspace=tmp_path) as run:
        run.rollback(to=first)

    assert (tmp_path / "note.txt").read_text() == "one"
    assert await session.get_items() == [USER]
    await session.close()


@pytest.mark.parametrize("session_id", ["", 7, None])
def test_a_session_has_a_name(session_id: Any, client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id"):
        HoldfastSession(session_id, client)


async def test_what_is_no_item_is_refused_and_nothing_is_kept(client: SyncClient) -> None:
    session = HoldfastSession("s", client)
    with pytest.raises(InvalidArgumentError, match="dicts"):
        await session.add_items([USER, "hello"])
    assert await session.get_items() == []


async def test_sessions_of_others_and_damaged_ones_are_refused(client: SyncClient) -> None:
    client.save("openai_agents", Framework.STRANDS, {"messages": []}, session_id="other")
    client.save("openai_agents", Framework.OPENAI_AGENTS, {"items": 7}, session_id="damaged")

    for session_id, said in (("other", "strands"), ("damaged", "no conversation")):
        session = HoldfastSession(session_id, client)
        with pytest.raises(AdapterError, match=said):
            await session.get_items()
        with pytest.raises(AdapterError, match=said):
            await session.add_items([USER])


async def test_a_store_that_fails_ends_the_run(world: World, tmp_path: Path) -> None:
    store = SyncClient.sqlite(tmp_path / "store.db")
    session = HoldfastSession("s", store)
    await session.add_items([USER])
    store.close()

    with pytest.raises(StoreError):
        await Runner.run(world.agent(), "go", session=session)


async def test_an_approval_of_the_sdks_own_runner_ends_with_the_same_conversation(
    client: SyncClient,
) -> None:
    found = []
    for session in (HoldfastSession("s", client), SQLiteSession("s")):
        world = World()
        agent = world.agent()
        agent.tools[1].needs_approval = True
        result = await Runner.run(agent, "go", session=session)
        while result.interruptions:
            state = result.to_state()
            state.approve(state.get_interruptions()[0])
            result = await Runner.run(agent, state, session=session)
        assert world.happened == EVERYTHING
        found.append(await session.get_items())

    assert found[0] == found[1]
