"""What tools of the OpenAI Agents SDK do: approval, unknown ends, files, going back."""

import asyncio
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, UserError, function_tool
from agents.testing import assistant_message, function_call

from holdfast import (
    AdapterError,
    HoldfastError,
    StillWaitingError,
    SyncClient,
    UnknownEffectError,
)
from holdfast.adapters.journal import ToolEffect
from holdfast.adapters.openai_agents import HoldfastRunner
from holdfast.session.async_run import AsyncRun
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


async def test_a_tool_that_needs_approval_waits_over_restarts(
    world: World, client: SyncClient
) -> None:
    def program() -> Agent[Any]:
        agent = world.agent()
        agent.tools[1].needs_approval = True
        return agent

    first = await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    assert [item.tool_name for item in first.interruptions] == ["send"]
    assert world.happened == ["model 0", "look a"]

    result = await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    assert world.happened == ["model 0", "look a"]  # as after a restart: nothing is asked or done
    state = result.to_state()
    (waiting,) = state.get_interruptions()
    state.approve(waiting)
    result = await HoldfastRunner.run(program(), state, session_id="s", client=client)
    assert world.happened == EVERYTHING[:4]

    state = result.to_state()
    state.reject(state.get_interruptions()[0], rejection_message="not today")
    result = await HoldfastRunner.run(program(), state, session_id="s", client=client)

    assert world.happened == [*EVERYTHING[:4], "model 3"]
    assert result.final_output == "done: not today"
    names = [step.step_name for step in client.timeline("openai_agents", "s")]
    assert names.count("decision") == 2


async def test_a_decision_outlives_a_failure_behind_it(world: World, client: SyncClient) -> None:
    def program() -> Agent[Any]:
        agent = world.agent()
        agent.tools[1].needs_approval = True
        return agent

    result = await HoldfastRunner.run(program(), "go", session_id="s", client=client)
    state = result.to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await HoldfastRunner.run(program(), state, session_id="s", client=client)

    result = await HoldfastRunner.run(program(), "go", session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert world.happened == [*EVERYTHING[:4], *EVERYTHING[3:]]


async def test_a_run_that_waits_can_be_left_for_another_prompt(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()
    agent.tools[1].needs_approval = True
    await HoldfastRunner.run(agent, "go", session_id="s", client=client)

    other = scripted(lambda call: [assistant_message(outputs(call)[-1])])
    result = await HoldfastRunner.run(
        world.agent(model=other), "leave it", session_id="s", client=client
    )

    assert "interrupted" in result.final_output
    assert world.happened == ["model 0", "look a"]


async def test_an_approval_that_is_delivered_again_makes_no_call_twice(
    world: World, client: SyncClient
) -> None:
    async def go(given: Any) -> Any:
        agent = world.agent()
        agent.tools[1].needs_approval = True
        return await HoldfastRunner.run(
            agent, given, session_id="s", client=client, effects={"send": "irreversible"}
        )

    first = (await go("go")).to_state()
    first.approve(first.get_interruptions()[0])
    second = (await go(first)).to_state()
    again = await go(first)  # the run waits for the next approval
    assert [item.raw_item.call_id for item in again.interruptions] == ["c3"]
    assert world.happened == EVERYTHING[:4]

    second.approve(second.get_interruptions()[0])
    world.fails_at = "model 3"
    with pytest.raises(ConnectionError):
        await go(second)
    assert (await go(second)).final_output == "done: sent c"  # it goes on where it was
    assert world.happened == [*EVERYTHING, "model 3"]

    for state in (first, second):
        with pytest.raises(AdapterError, match="session 's' is past this RunState"):
            await go(state)
    assert world.happened == [*EVERYTHING, "model 3"]
    assert (await go("more")).final_output == "done: sent c"
    with pytest.raises(AdapterError, match="is past this RunState"):
        await go(second)


async def test_an_approval_whose_run_ended_untold_gives_that_end_once_more(
    world: World, client: SyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = world.agent()
    agent.tools[1].needs_approval = True
    state = (await HoldfastRunner.run(agent, "go", session_id="s", client=client)).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    await HoldfastRunner.run(agent, state, session_id="s", client=client)
    assert world.happened == EVERYTHING

    with monkeypatch.context() as patched:
        patched.setattr(AsyncRun, "follows_crash", True)
        result = await HoldfastRunner.run(agent, state, session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert world.happened == EVERYTHING


async def test_an_approval_of_a_run_that_was_left_is_refused(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()
    agent.tools[1].needs_approval = True
    state = (await HoldfastRunner.run(agent, "go", session_id="s", client=client)).to_state()
    state.approve(state.get_interruptions()[0])
    other = world.agent(model=scripted(lambda call: [assistant_message("left")]))
    await HoldfastRunner.run(other, "leave it", session_id="s", client=client)

    with pytest.raises(AdapterError, match="is past this RunState"):
        await HoldfastRunner.run(agent, state, session_id="s", client=client)

    assert world.happened == ["model 0", "look a"]


async def test_an_approval_of_a_call_id_that_was_used_before_is_of_its_own_turn(
    world: World, client: SyncClient
) -> None:
    def script(call: Any) -> list[Any]:
        if call.input[-1].get("role") == "user":
            return [function_call("send", {"q": "x"}, call_id="call_0")]
        return [assistant_message("ok")]

    agent = world.agent(model=scripted(script))
    agent.tools[1].needs_approval = True
    states = []
    for prompt in ("one", "two"):
        result = await HoldfastRunner.run(agent, prompt, session_id="s", client=client)
        states.append(result.to_state())
        states[-1].approve(states[-1].get_interruptions()[0])
        if len(states) == 2:
            with pytest.raises(AdapterError, match="is past this RunState"):
                await HoldfastRunner.run(agent, states[0], session_id="s", client=client)
        await HoldfastRunner.run(agent, states[-1], session_id="s", client=client)

    assert world.happened == ["send x", "send x"]


async def test_a_run_that_was_stopped_and_has_ended_is_not_gone_on_with_again(
    world: World, client: SyncClient
) -> None:
    run = HoldfastRunner.run_streamed(world.agent(), "go", session_id="s", client=client)
    async for event in run.stream_events():
        if event.type == "run_item_stream_event":
            run.cancel(mode="after_turn")
    state = run.to_state()
    await HoldfastRunner.run(world.agent(), state, session_id="s", client=client)
    assert world.happened == EVERYTHING

    with pytest.raises(AdapterError, match="is past this RunState"):
        await HoldfastRunner.run(world.agent(), state, session_id="s", client=client)

    assert world.happened == EVERYTHING


async def test_a_call_that_is_denied_is_told_to_the_model(world: World, client: SyncClient) -> None:
    result = await HoldfastRunner.run(
        world.agent(),
        "go",
        session_id="s",
        client=client,
        effects={"send": "irreversible"},
        approval=lambda effect: effect.kwargs["q"] != "c",
    )

    assert "send b" in world.happened
    assert "send c" not in world.happened
    assert result.final_output == "done: send was not allowed"


async def test_a_call_that_waits_for_approval_is_made_by_the_same_lines_later(
    world: World, client: SyncClient
) -> None:
    options: dict[str, Any] = {
        "session_id": "s",
        "client": client,
        "effects": {"send": "irreversible"},
        "approval": "wait",
        "approval_timeout": 0.01,
    }
    with pytest.raises(StillWaitingError):
        await HoldfastRunner.run(world.agent(), "go", **options)
    (question,) = client.pending()
    client.approve(question.effect_id, kwargs={"q": "edited"})
    with pytest.raises(StillWaitingError):
        await HoldfastRunner.run(world.agent(), "go", **options)
    (question,) = client.pending()
    client.approve(question.effect_id)

    result = await HoldfastRunner.run(world.agent(), "go", **options)

    assert sorted(world.happened) == sorted(
        ["model 0", "look a", "send edited", "model 2", "send c", "model 3"]
    )
    assert result.final_output == "done: sent c"


async def _cut_off(world: World, client: SyncClient, **options: Any) -> None:
    """Begin a run, and end it while send is under way, as a kill would."""
    agent = world.agent()
    begun = asyncio.Event()

    async def stuck(context: Any, arguments: str) -> str:
        world.happen("send begun")
        begun.set()
        await asyncio.Event().wait()
        return "never"

    agent.tools[1].on_invoke_tool = stuck
    running = asyncio.create_task(
        HoldfastRunner.run(agent, "go", session_id="s", client=client, **options)
    )
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_call_of_unknown_end_reaches_the_user_and_is_decided(
    world: World, client: SyncClient
) -> None:
    options: dict[str, Any] = {"effects": {"send": "irreversible"}}
    await _cut_off(world, client, **options)

    for _ in range(2):
        with pytest.raises(UnknownEffectError, match="send"):
            await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, **options)
    with client.session("openai_agents", session_id="s") as run:
        run.unknown_effects()[0].mark_done("sent b, by hand")
    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, **options)

    assert result.final_output == "done: sent c"
    assert "send b" not in world.happened
    assert world.happened.count("model 0") == 1


def _in_own_words(context: Any, error: Exception) -> str:
    return f"Sorry: {error}"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (..., "send failed: the bank said no"),
        (None, "send failed: the bank said no"),
        (_in_own_words, "Sorry: the bank said no"),
    ],
)
async def test_a_call_that_somebody_says_has_failed_is_told_to_the_model_and_not_made(
    world: World, client: SyncClient, words: Any, told: str
) -> None:
    async def go() -> Any:
        tools = world.tools()
        if words is not ...:
            tools[1]._failure_error_function = words
            tools[1]._use_default_failure_error_function = False
        return await HoldfastRunner.run(
            world.agent(tools=tools),
            "go",
            session_id="s",
            client=client,
            effects={"send": "irreversible"},
        )

    await _cut_off(world, client, effects={"send": "irreversible"})
    (call,) = client.unknown_effects()
    client.resolve(call.effect_id, failed="the bank said no")
    world.fails_at = "model 2"
    with pytest.raises(ConnectionError):
        await go()

    assert (await go()).final_output == "done: sent c"
    assert _outputs(client, "s") == ["found a", told, "sent c"]
    assert "send b" not in world.happened
    assert world.happened.count("model 0") == 1


async def test_a_call_that_somebody_says_has_failed_is_told_where_its_run_is_left(
    world: World, client: SyncClient
) -> None:
    await _cut_off(world, client, effects={"send": "irreversible"})
    (call,) = client.unknown_effects()
    client.resolve(call.effect_id, failed="the bank said no")
    other = scripted(lambda call: [assistant_message(outputs(call)[-1])])

    result = await HoldfastRunner.run(
        world.agent(model=other), "leave it", session_id="s", client=client
    )

    assert result.final_output == "send failed: the bank said no"


async def test_a_local_call_of_unknown_end_is_made_again(world: World, client: SyncClient) -> None:
    await _cut_off(world, client)

    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    assert result.final_output == "done: sent c"
    assert world.happened.count("send b") == 1


async def test_without_a_journal_tools_of_the_last_turn_run_again(
    world: World, client: SyncClient
) -> None:
    await _cut_off(world, client, journal=False)
    world.happened.clear()

    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, journal=False)

    assert world.happened == EVERYTHING[1:]


async def test_what_a_tool_raises_is_the_models_business_or_ends_the_run(
    world: World, client: SyncClient
) -> None:
    world.fails_at = "send b"
    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    assert result.final_output == "done: sent c"
    assert any("error" in str(output) for output in _outputs(client, "s"))

    @function_tool(failure_error_function=None)
    async def send(q: str) -> str:
        world.happen(f"strict {q}")
        return f"sent {q}"

    world.happened.clear()
    world.fails_at = "strict b"
    tools = [world.tools()[0], send]
    with pytest.raises((UserError, ConnectionError)):
        await HoldfastRunner.run(world.agent(tools=tools), "go", session_id="t", client=client)
    result = await HoldfastRunner.run(world.agent(tools=tools), "go", session_id="t", client=client)
    assert result.final_output == "done: sent c"
    assert world.happened.count("strict b") == 2
    assert world.happened.count("model 0") == 1


def _outputs(client: SyncClient, session_id: str) -> list[Any]:
    kept = client.latest("openai_agents", session_id)
    assert kept is not None
    items = kept.execution_state["items"]
    return [item["output"] for item in items if item.get("type") == "function_call_output"]


async def test_a_tool_that_returns_what_cannot_be_kept_is_an_error_of_the_run(
    world: World, client: SyncClient
) -> None:
    agent = world.agent()

    async def lock(context: Any, arguments: str) -> Any:
        return threading.Lock()

    agent.tools[0].on_invoke_tool = lock
    with pytest.raises(HoldfastError, match="look"):
        await HoldfastRunner.run(agent, "go", session_id="s", client=client)


@pytest.mark.parametrize("at", [2, 3, 4, 6])
async def test_a_store_that_fails_is_an_error_of_the_run(
    world: World, tmp_path: Path, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from holdfast.session.async_run import AsyncRun

    written: list[str | None] = []
    whole = AsyncRun.checkpoint

    async def checkpoint(self: Any, name: str | None = None, **tags: Any) -> str:
        written.append(name)
        if len(written) == at:
            raise HoldfastError("no space left on device")
        return await whole(self, name, **tags)

    monkeypatch.setattr(AsyncRun, "checkpoint", checkpoint)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    with pytest.raises(HoldfastError, match="no space left"):
        await HoldfastRunner.run(world.agent(), "go", session_id="s", url=url)
    monkeypatch.undo()

    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", url=url)

    assert result.final_output == "done: sent c"
    assert [world.happened.count(f"send {q}") for q in "bc"] == [1, 1]


def _writer(place: Path, world: World) -> Agent[Any]:
    @function_tool
    async def write(text: str) -> str:
        world.happen(f"write {text}")
        (place / "note.txt").write_text(text)
        return "written"

    def script(call: Any) -> list[Any]:
        if call.input[-1].get("role") == "user":
            said = users(call.input)
            return [function_call("write", {"text": said[-1]}, call_id=f"w{len(said)}")]
        return [assistant_message("ok")]

    return Agent(name="writer", model=scripted(script), tools=[write])


async def test_files_go_back_with_the_conversation(world: World, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    options: dict[str, Any] = {"session_id": "s", "url": url, "workspace": place}
    await HoldfastRunner.run(_writer(place, world), "one", **options)
    await HoldfastRunner.run(_writer(place, world), "two", **options)
    assert (place / "note.txt").read_text() == "two"

    with SyncClient.open(url) as client:
        steps = client.timeline("openai_agents", "s")
        first_end = [step for step in steps if step.step_name == "end"][-1]
        with client.session("openai_agents", session_id="s", workspace=place) as run:
            run.rollback(to=first_end.checkpoint_id)
        assert (place / "note.txt").read_text() == "one"
    result = await HoldfastRunner.run(_writer(place, world), "three", **options)

    assert users(result.to_input_list()) == ["one", "three"]
    assert (place / "note.txt").read_text() == "three"


async def test_a_rollback_by_the_command_line_is_gone_on_from(world: World, tmp_path: Path) -> None:
    place = tmp_path / "place"
    place.mkdir()
    url = f"sqlite:///{tmp_path / 'store.db'}"
    options: dict[str, Any] = {"session_id": "s", "url": url, "workspace": place}
    await HoldfastRunner.run(_writer(place, world), "one", **options)
    await HoldfastRunner.run(_writer(place, world), "two", **options)
    with SyncClient.open(url) as client:
        steps = client.timeline("openai_agents", "s")
        first_end = [step for step in steps if step.step_name == "end"][-1]
        assert "two" in str(client.diff(first_end.checkpoint_id, steps[0].checkpoint_id))

    command = ["rollback", first_end.checkpoint_id, "--store", url, "--yes"]
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *command], cwd=place, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (place / "note.txt").read_text() == "one"
    result = await HoldfastRunner.run(_writer(place, world), "three", **options)

    assert users(result.to_input_list()) == ["one", "three"]


async def test_a_fork_from_the_middle_of_a_run_goes_on_there(
    world: World, client: SyncClient
) -> None:
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    steps = {step.step_name: step for step in client.timeline("openai_agents", "s")}
    world.happened.clear()

    client.fork(steps["tools"].checkpoint_id, session_id="fork")  # behind the first tools
    result = await HoldfastRunner.run(world.agent(), "go", session_id="fork", client=client)

    assert world.happened == EVERYTHING[3:]
    assert result.final_output == "done: sent c"


async def test_a_fork_at_an_answer_runs_its_tools_and_does_not_ask(
    world: World, client: SyncClient
) -> None:
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)
    steps = [s for s in client.timeline("openai_agents", "s") if s.step_name == "model"]
    world.happened.clear()

    client.fork(steps[-1].checkpoint_id, session_id="fork")
    result = await HoldfastRunner.run(world.agent(), [], session_id="fork", client=client)

    assert "model 0" not in world.happened
    assert result.final_output == "done: sent c"


async def test_going_back_undoes_what_can_be_undone(world: World, client: SyncClient) -> None:
    undone: list[Any] = []

    def unsend(output: Any, q: str) -> None:
        undone.append((output, q))

    effects = {"send": ToolEffect("reversible", compensate=unsend)}
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, effects=effects)
    steps = client.timeline("openai_agents", "s")
    prompt = next(step for step in steps if step.step_name == "user prompt")

    with client.session("openai_agents", session_id="s", tools=[unsend]) as run:
        run.rollback(to=prompt.checkpoint_id)

    assert undone == [("sent c", "c"), ("sent b", "b")]
    world.happened.clear()
    await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client, effects=effects)
    assert world.happened == EVERYTHING


async def test_the_sdks_own_runner_takes_agents_and_results_of_ours(
    world: World, client: SyncClient
) -> None:
    result = await HoldfastRunner.run(world.agent(), "go", session_id="s", client=client)

    own = await Runner.run(result.last_agent, result.to_input_list())

    assert own.final_output == "done: sent c"
