"""Sessions of Pydantic AI's agents: named, forked, rolled back, with files, and refused if bad."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, Hooks, Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from holdfast import SyncClient
from holdfast.adapters.portable import conversation
from holdfast.adapters.pydantic_ai import HoldfastCapability, HoldfastConversationStore
from holdfast.errors import (
    AdapterError,
    InvalidArgumentError,
    SessionBusyError,
    StoreClosedError,
    StoreFullError,
)
from tests.frameworks.full_store import FullStore
from tests.frameworks.pydantic_ai_agents import Script, agent_of, call, said_in


@pytest.fixture
def client(tmp_path: Path) -> Iterator[SyncClient]:
    with SyncClient.sqlite(tmp_path / "store.db") as client:
        yield client


def texts(client: SyncClient, session_id: str) -> list[str]:
    found = conversation(session_id, client)
    assert found is not None
    return [part.get("content", "") for message in found.messages for part in message["parts"]]


# Which session it is


async def test_without_a_name_the_session_is_the_conversation(client: SyncClient) -> None:
    agent = agent_of(Script("one", "two"), HoldfastCapability(client))
    first = await agent.run("a")
    named = first.all_messages()[0].conversation_id
    assert [session.session_id for session in client.sessions()] == [named]
    second = await agent.run("b", conversation_id=named)
    assert len(second.all_messages()) == 4
    other = await agent.run("c")
    assert len(other.all_messages()) == 2


async def test_a_function_of_the_run_may_name_the_session(client: SyncClient) -> None:
    @dataclass
    class User:
        name: str

    capability = HoldfastCapability(client, session_id=lambda ctx: f"user-{ctx.deps.name}")
    agent = agent_of(Script("one", "two"), capability, deps_type=User)
    for name in ("ada", "bob", "ada"):
        await agent.run("hi", deps=User(name))
    assert {session.session_id for session in client.sessions()} == {"user-ada", "user-bob"}
    assert texts(client, "user-ada") == ["hi", "one", "hi", "two"]


async def test_a_run_may_have_a_capability_of_its_own(client: SyncClient) -> None:
    agent = agent_of(Script("one"), HoldfastCapability(client, session_id="agent"))
    await agent.run("hi", capabilities=[HoldfastCapability(client, session_id="run")])
    assert [session.session_id for session in client.sessions()] == ["run"]


async def test_another_agent_id_is_another_agent(client: SyncClient) -> None:
    await agent_of(Script("one"), HoldfastCapability(client, session_id="s", agent_id="pilot")).run(
        "hi"
    )
    assert client.latest("pilot", "s") is not None


# What is kept, and going back


async def test_every_step_has_a_name_and_says_what_changed(client: SyncClient) -> None:
    def look() -> str:
        return "seen"

    agent = agent_of(
        Script(call("look"), "done"), HoldfastCapability(client, session_id="s"), [look]
    )
    await agent.run("hi")
    steps = client.timeline("pydantic_ai", "s")
    names = ["end", "model", "tools", "model", "user prompt", "start"]
    assert [step.step_name for step in steps] == names
    assert {step.framework.value for step in steps} == {"pydantic_ai"}
    changed = client.diff(steps[3].checkpoint_id, steps[2].checkpoint_id)
    assert "$.messages[2]" in str(changed)


async def test_a_fork_goes_its_own_way(client: SyncClient) -> None:
    agent = agent_of(Script("one", "two", "three"), HoldfastCapability(client, session_id="s"))
    await agent.run("a")
    client.fork(client.timeline("pydantic_ai", "s")[0].checkpoint_id, session_id="other")
    await agent.run("b")
    other = agent_of(Script("", "else"), HoldfastCapability(client, session_id="other"))
    result = await other.run("c")
    assert (result.output, len(result.all_messages())) == ("else", 4)
    assert texts(client, "s") == ["a", "one", "b", "two"]
    assert texts(client, "other") == ["a", "one", "c", "else"]


async def test_a_rollback_is_gone_on_from(client: SyncClient, tmp_path: Path) -> None:
    agent = agent_of(Script("one", "two", "three"), HoldfastCapability(client, session_id="s"))
    await agent.run("a")
    end = client.timeline("pydantic_ai", "s")[0].checkpoint_id
    await agent.run("b")
    with client.session("pydantic_ai", "s") as run:
        run.rollback(to=end)
    assert (await agent.run("c")).output == "two"
    assert texts(client, "s") == ["a", "one", "c", "two"]
    command = [sys.executable, "-m", "holdfast", "rollback", end, "--yes"]
    store = ["--store", f"sqlite:///{tmp_path / 'store.db'}"]
    done = subprocess.run([*command, *store], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    await agent.run("d")
    assert texts(client, "s") == ["a", "one", "d", "two"]


async def test_a_rollback_into_a_turn_goes_on_with_it(client: SyncClient) -> None:
    ran = []

    def look() -> str:
        ran.append("look")
        return f"seen {len(ran)}"

    script = Script(call("look"), "done")
    agent = agent_of(script, HoldfastCapability(client, session_id="s"), [look])
    await agent.run("hi")
    with client.session("pydantic_ai", "s") as run:
        run.rollback(to="tools")
    result = await agent.run("hi")
    assert (result.output, ran, len(script.asked)) == ("done", ["look"], 3)
    with client.session("pydantic_ai", "s") as run:
        run.rollback(to="user prompt")
    await agent.run("hi")
    assert (len(ran), len(script.asked)) == (2, 5)


async def test_files_go_back_with_the_conversation(client: SyncClient, tmp_path: Path) -> None:
    place = tmp_path / "repo"
    place.mkdir()

    def write(text: str) -> str:
        (place / "notes.txt").write_text(text)
        return "written"

    script = Script(call("write", text="one"), "1", call("write", "call_2", text="two"), "2")
    capability = HoldfastCapability(client, session_id="s", workspace=place)
    agent = agent_of(script, capability, [write])
    await agent.run("a")
    end = client.timeline("pydantic_ai", "s")[0].checkpoint_id
    await agent.run("b")
    assert (place / "notes.txt").read_text() == "two"
    with client.session("pydantic_ai", "s", workspace=place) as run:
        run.rollback(to=end)
    assert (place / "notes.txt").read_text() == "one"
    assert texts(client, "s")[-1] == "1"


# What goes wrong


async def test_a_session_is_worked_on_by_one_run_at_a_time(client: SyncClient) -> None:
    inner = agent_of(Script("never"), HoldfastCapability(client, session_id="busy"))

    async def second() -> str:
        with pytest.raises(SessionBusyError):
            await outside.run("hi")
        return "refused"

    outside = Agent(
        Script("never").model, capabilities=[HoldfastCapability(client, session_id="busy")]
    )
    with client.session("pydantic_ai", "busy", framework="pydantic_ai"):
        assert await second() == "refused"
    assert (await inner.run("hi")).output == "never"


@pytest.mark.parametrize("moment", ["asked", "called"])
async def test_a_store_that_is_full_is_seen_by_who_runs_the_agent(moment: str) -> None:
    store = FullStore()

    def look() -> str:
        store.is_full = moment == "called"
        return "seen"

    def answers(messages: list[Any], info: Any) -> ModelResponse:
        store.is_full = moment == "asked"
        if len(messages) > 1:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("look", {}, "call_1")])

    capability = HoldfastCapability(SyncClient(store), session_id="s")
    agent = Agent(FunctionModel(answers), tools=[look], capabilities=[capability])
    with pytest.raises(StoreFullError):
        await agent.run("hi")


async def test_a_store_that_was_closed_is_too(tmp_path: Path) -> None:
    capability = HoldfastCapability(url=f"sqlite:///{tmp_path / 's.db'}", session_id="s")
    capability.close()
    with pytest.raises(StoreClosedError):
        await agent_of(Script("never"), capability).run("hi")


async def test_a_session_of_another_framework_is_named(client: SyncClient) -> None:
    client.save("pydantic_ai", "strands", {"messages": []}, session_id="s")
    agent = agent_of(Script("one"), HoldfastCapability(client, session_id="s"))
    with pytest.raises(AdapterError, match="is of strands, not of pydantic_ai"):
        await agent.run("hi")


@pytest.mark.parametrize(
    "state",
    [
        {"messages": "none"},
        ["messages"],
        {"messages": [{"kind": "request", "parts": [{"part_kind": "made-up"}]}]},
        {"messages": [1]},
    ],
)
async def test_a_damaged_state_is_named(client: SyncClient, state: Any) -> None:
    client.save("pydantic_ai", "pydantic_ai", state, session_id="s")
    agent = agent_of(Script("one"), HoldfastCapability(client, session_id="s"))
    with pytest.raises(AdapterError, match=r"'s' holds no conversation|is not what Pydantic AI"):
        await agent.run("hi")


async def test_a_stored_conversation_of_that_name_is_left_alone(client: SyncClient) -> None:
    store = HoldfastConversationStore(client)
    agent = Agent(Script("one").model)
    await store.save(await agent.run("hi", conversation_id="ada"))
    with pytest.raises(AdapterError, match="HoldfastConversationStore"):
        await agent_of(Script("two"), HoldfastCapability(client, session_id="ada")).run("hi")
    assert await store.load("ada") is not None


def test_bad_arguments_are_named(client: SyncClient) -> None:
    with pytest.raises(InvalidArgumentError, match="session_id is a string, not int"):
        HoldfastCapability(client, session_id=7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="session_id is empty"):
        HoldfastCapability(client, session_id=" ")
    with pytest.raises(InvalidArgumentError, match="not both"):
        HoldfastCapability(client, url="memory://")
    with pytest.raises(InvalidArgumentError, match="given a Client"):
        HoldfastCapability(3)  # type: ignore[arg-type]
    two = [HoldfastCapability(client, session_id="a"), HoldfastCapability(client, session_id="b")]
    with pytest.raises(InvalidArgumentError, match="2 HoldfastCapabilities"):
        Agent(Script("one").model, capabilities=two)


async def test_a_function_that_names_no_session_is_told(client: SyncClient) -> None:
    capability = HoldfastCapability(client, session_id=lambda ctx: 7)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="session_id is a string, not int"):
        await agent_of(Script("one"), capability).run("hi")


# Beside other capabilities


async def test_a_history_that_is_made_shorter_is_still_kept_at_every_step(
    client: SyncClient,
) -> None:
    class Forgetting(AbstractCapability[Any]):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            if len(ctx.messages) > 4:
                ctx.messages[:] = ctx.messages[:1] + ctx.messages[-2:]
            return request_context

    def look(at: int) -> str:
        return str(at)

    asked: list[int] = []

    def answers(messages: list[Any], info: Any) -> ModelResponse:
        asked.append(len(messages))
        if len(asked) == 6:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("look", {"at": len(asked)}, f"c{len(asked)}")])

    agent = Agent(
        FunctionModel(answers),
        tools=[look],
        capabilities=[HoldfastCapability(client, session_id="s"), Forgetting()],
    )
    await agent.run("hi")
    names = [step.step_name for step in client.timeline("pydantic_ai", "s")]
    assert names[::-1] == ["start", "user prompt", *["model", "tools"] * 5, "model", "end"]


async def test_other_capabilities_work_beside_it(client: SyncClient) -> None:
    seen: list[str] = []

    class Watching(AbstractCapability[Any]):
        async def wrap_run(self, ctx: Any, *, handler: Any) -> Any:
            seen.append("run")
            return await handler()

        async def wrap_tool_execute(
            self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any
        ) -> Any:
            seen.append(call.tool_name)
            return f"{await handler(args)}!"

    def look() -> str:
        return "seen"

    hooks = Hooks()

    @hooks.on.after_model_request
    async def louder(ctx: Any, *, request_context: Any, response: Any) -> Any:
        if not isinstance(response.parts[0], TextPart):
            return response
        return ModelResponse(parts=[TextPart(response.parts[0].content.upper())])

    agent = Agent(
        Script(call("look"), "done").model,
        tools=[look],
        capabilities=[
            Watching(),
            hooks,
            HoldfastCapability(client, session_id="s"),
            Instrumentation(),
        ],
    )
    result = await agent.run("hi")
    assert (result.output, seen) == ("DONE", ["run", "look"])
    kept = client.latest("pydantic_ai", "s")
    assert kept is not None
    assert kept.execution_state["messages"][2]["parts"][0]["content"] == "seen!"
    assert said_in(result.all_messages()) == ["user-prompt", "tool-call", "tool-return", "text"]
