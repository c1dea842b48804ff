"""Claude's sessions in a store of Holdfast's, with the real program and a scripted model."""

import asyncio
import base64
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    ClaudeAgentOptions,
    HookMatcher,
    MirrorErrorMessage,
    ResultMessage,
    UserMessage,
    create_sdk_mcp_server,
    get_session_messages_from_store,
    project_key_for_directory,
    query,
    tool,
)
from claude_agent_sdk.testing import run_session_store_conformance

from holdfast import AdapterError, Framework, HoldfastError, InvalidArgumentError, SyncClient
from holdfast.adapters.claude_agent_sdk import HoldfastSessionStore
from holdfast.core.conversation.reading import conversation_in
from tests.frameworks.claude_server import Blocks, ClaudeServer, call, results_in, said_in, text
from tests.frameworks.commands import command
from tests.frameworks.full_store import FullStore
from tests.frameworks.reference import ANSWER, PNG, PROMPT

AGENT = "claude_agent_sdk"
SESSION = "0b5ad6a4-98e2-4bd9-9d61-0d4c0d1d7c55"
KEY = {"project_key": "harbour", "session_id": "s"}


@tool("write", "Write a file.", {"name": str, "said": str})
async def write(arguments: dict[str, Any]) -> dict[str, Any]:
    Path(arguments["name"]).write_text(arguments["said"])
    return {"content": [text(f"wrote {arguments['said']}")]}


def two_files(place: Path) -> Any:
    """Return a script that writes a file twice, and says what it was told last."""

    def script(messages: list[dict[str, Any]]) -> Blocks:
        found = results_in(messages)
        for number in ("one", "two"):
            if f"toolu_{number}" not in found:
                name = str(place / "note.txt")
                return [call(f"toolu_{number}", "mcp__files__write", name=name, said=number)]
        return [text(f"answer to {said_in(messages)[-1]}")]

    return script


def echo(messages: list[dict[str, Any]]) -> Blocks:
    return [text(f"answer to {said_in(messages)[-1]}")]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    place = tmp_path / "place"
    place.mkdir()
    return place


@pytest.fixture
def server(place: Path) -> Iterator[ClaudeServer]:
    with ClaudeServer(two_files(place)) as server:
        yield server


@pytest.fixture
async def store(tmp_path: Path, place: Path) -> AsyncIterator[HoldfastSessionStore]:
    async with HoldfastSessionStore(
        url=f"sqlite:///{tmp_path / 'store.db'}", workspace=place
    ) as store:
        yield store


def options(server: ClaudeServer, tmp_path: Path, **more: Any) -> ClaudeAgentOptions:
    servers = {"files": create_sdk_mcp_server("files", tools=[write])}
    return server.options(tmp_path / "home", mcp_servers=servers, **more)


async def ask(
    store: HoldfastSessionStore,
    prompt: str,
    given: ClaudeAgentOptions,
    session_id: str = SESSION,
    **more: Any,
) -> str | None:
    result = None
    messages = store.query(prompt=prompt, session_id=session_id, options=given, **more)
    async for message in messages:
        if isinstance(message, ResultMessage):
            result = message.result
    return result


def steps(store: HoldfastSessionStore, session_id: str = SESSION) -> list[str | None]:
    timeline = store.client.timeline(AGENT, session_id)
    return [info.step_name for info in reversed(timeline)]


def roles(store: HoldfastSessionStore, session_id: str = SESSION) -> list[str]:
    head = store.client.latest(AGENT, session_id)
    assert head is not None
    found = conversation_in(AGENT, head.execution_state)
    assert found is not None
    return [message["role"] for message in found.messages]


# The store


@pytest.mark.parametrize("kind", ["memory", "sqlite", "file"])
async def test_it_keeps_what_the_sdk_asks_of_a_session_store(kind: str, tmp_path: Path) -> None:
    numbers = itertools.count()
    made: list[HoldfastSessionStore] = []

    def make() -> HoldfastSessionStore:
        urls = {"memory": "memory://", "sqlite": "sqlite:///{}.db", "file": "file:///{}"}
        url = urls[kind].format(tmp_path / str(next(numbers)))
        made.append(HoldfastSessionStore(url=url))
        return made[-1]

    await run_session_store_conformance(make)

    for store in made:
        store.close()


async def test_an_entry_that_is_there_is_not_kept_twice() -> None:
    async with HoldfastSessionStore(url="memory://") as store:
        entries = [{"type": "user", "uuid": "a"}, {"type": "mode", "mode": "x"}]
        await store.append(KEY, entries)
        await store.append(KEY, [entries[0], {"type": "user", "uuid": "b"}])

        assert await store.load(KEY) == [*entries, {"type": "user", "uuid": "b"}]


async def test_projects_with_a_session_of_one_name_do_not_mix() -> None:
    async with HoldfastSessionStore(url="memory://") as store:
        here, there = [{**KEY, "project_key": name} for name in ("here", "there")]
        await store.append(here, [{"type": "user", "uuid": "a"}])
        await store.append(there, [{"type": "user", "uuid": "b"}])
        await store.delete(here)

        assert await store.load(here) is None
        assert await store.load(there) == [{"type": "user", "uuid": "b"}]
        assert await store.list_sessions("there") != []
        assert [each.session_id for each in store.client.sessions()] == ["s in there"]


@pytest.mark.parametrize(
    "key", [None, {}, {"project_key": "p"}, {**KEY, "subpath": ""}, {**KEY, "session_id": 1}]
)
async def test_a_key_that_names_nothing_is_refused(key: Any) -> None:
    async with HoldfastSessionStore(url="memory://") as store:
        with pytest.raises(InvalidArgumentError):
            await store.append(key, [{"type": "user"}])


async def test_a_session_of_another_framework_is_refused_with_the_way_over() -> None:
    with SyncClient.memory() as client:
        client.save(AGENT, Framework.STRANDS, execution_state={}, session_id="s")
        store = HoldfastSessionStore(client)

        with pytest.raises(AdapterError, match="is of strands"):
            await store.load(KEY)


async def test_a_state_that_is_no_transcript_is_named() -> None:
    with SyncClient.memory() as client:
        client.save(AGENT, Framework.CLAUDE_AGENT_SDK, execution_state=[1], session_id="s")
        store = HoldfastSessionStore(client)

        with pytest.raises(AdapterError, match="'s' is no transcript"):
            await store.load(KEY)


@pytest.mark.parametrize("wrong", [{"existing": [1]}, {"existing": {"Stop": [1]}}, {"effects": 1}])
def test_hooks_that_are_none_are_refused(wrong: Any) -> None:
    with (
        HoldfastSessionStore(url="memory://") as store,
        pytest.raises(InvalidArgumentError),
    ):
        store.hooks(**wrong)


def test_a_client_and_a_url_are_too_much() -> None:
    with SyncClient.memory() as client, pytest.raises(InvalidArgumentError, match="not both"):
        HoldfastSessionStore(client, url="memory://")


# With the real program


async def test_a_session_goes_on_by_its_name_with_every_step_kept(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path
) -> None:
    given = options(server, tmp_path)

    assert await ask(store, "hello", given, "harbour") == "answer to hello"
    assert await ask(store, "again", given, "harbour") == "answer to again"

    assert said_in(server.requests[-1]) == ["hello", "again"]
    turn = ["assistant", "tool", "assistant", "tool", "assistant"]
    assert roles(store, "harbour") == ["user", *turn, "user", "assistant"]
    named = steps(store, "harbour")
    assert named[0] == "user prompt"
    assert named.count("mcp__files__write") == 2
    assert "model" in named


async def test_the_users_own_options_resume_a_session_in_another_process(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path
) -> None:
    seen: list[str] = []

    async def own(given: Any, tool_use_id: str | None, context: Any) -> dict[str, Any]:
        seen.append(given["hook_event_name"])
        return {}

    mine = {"PostToolUse": [HookMatcher(matcher="mcp__.*", hooks=[own])]}
    hooks = store.hooks(mine)
    assert hooks["PostToolUse"][0] is mine["PostToolUse"][0]
    assert len(mine["PostToolUse"]) == 1
    given = options(server, tmp_path, session_store=store, hooks=hooks, session_id=SESSION)

    async for _ in query(prompt="hello", options=given):
        pass

    with SyncClient.open(f"sqlite:///{tmp_path / 'store.db'}") as client:
        other = HoldfastSessionStore(client)
        given = options(server, tmp_path, session_store=other, hooks=other.hooks(), resume=SESSION)
        async for _ in query(prompt="again", options=given):
            pass
        told = await get_session_messages_from_store(other, SESSION, str(given.cwd))

    assert seen == ["PostToolUse"] * 2
    assert said_in(server.requests[-1]) == ["hello", "again"]
    assert len(told) == 8


async def test_a_conversation_of_another_framework_is_gone_on_with(tmp_path: Path) -> None:
    said = [
        {"role": "user", "parts": [{"type": "text", "content": PROMPT}, _png()]},
        {
            "role": "assistant",
            "parts": [
                {"type": "text", "content": "Ich sehe nach…"},
                {"type": "tool_call", "id": "call_a", "name": "depth", "arguments": {"at": "Süd"}},
            ],
        },
        {
            "role": "tool",
            "parts": [{"type": "tool_call_response", "id": "call_a", "response": "12,5 m"}],
        },
        {"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]},
    ]
    conversation = {
        "format": "holdfast.conversation/1",
        "messages": said,
        "system_instructions": [{"type": "text", "content": "You are a clerk."}],
    }
    async with HoldfastSessionStore(url=f"sqlite:///{tmp_path / 'store.db'}") as store:
        with ClaudeServer(echo) as server:
            given = server.options(tmp_path / "home", system_prompt=None)
            assert given.cwd is not None
            kept = await store.put_conversation(conversation, "talk", given.cwd)
            assert store.client.restore(kept).framework is Framework.CLAUDE_AGENT_SDK
            await ask(store, "und jetzt?", given, "talk")

        (request,) = server.requests
        assert [message["role"] for message in request] == [
            "user",
            "assistant",
            "user",
            "assistant",
            "user",
        ]
        assert said_in(request) == [PROMPT, "und jetzt?"]
        assert request[0]["content"][1]["source"]["data"] == _png()["content"]
        assert results_in(request) == {"call_a": "12,5 m"}
        assert request[1]["content"][1]["input"] == {"at": "Süd"}
        head = store.client.latest(AGENT, "talk")
        assert head is not None
        found = conversation_in(AGENT, head.execution_state)
        assert found is not None
        assert found.messages[0] == said[0]
        assert len(found.messages) == 6
        assert found.system_instructions == conversation["system_instructions"]


def _png() -> dict[str, Any]:
    data = base64.b64encode(PNG).decode()
    return {"type": "blob", "modality": "image", "mime_type": "image/png", "content": data}


async def test_going_back_takes_the_conversation_and_the_files(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path, place: Path
) -> None:
    given = options(server, tmp_path)
    await ask(store, "hello", given)
    assert (place / "note.txt").read_text() == "two"
    written = [
        info
        for info in store.client.timeline(AGENT, SESSION)
        if info.step_name == "mcp__files__write"
    ]

    with store.client.session(AGENT, SESSION, workspace=place) as run:
        run.rollback(to=written[-1].checkpoint_id)
    assert (place / "note.txt").read_text() == "one"
    asked = len(server.requests)
    assert await ask(store, "hello", given) == "answer to Continue from where you left off."

    assert len(server.requests) == asked + 2
    assert list(results_in(server.requests[asked])) == ["toolu_one"]
    assert (place / "note.txt").read_text() == "two"


async def test_a_fork_goes_on_by_its_own_name_with_its_own_files(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path, place: Path
) -> None:
    given = options(server, tmp_path)
    await ask(store, "hello", given)
    first = next(
        info
        for info in reversed(store.client.timeline(AGENT, SESSION))
        if info.step_name == "mcp__files__write"
    )
    fork = str(uuid.uuid4())

    store.client.fork(first.checkpoint_id, session_id=fork)
    head = store.client.latest(AGENT, SESSION)
    assert await ask(store, "hello", given, fork) == "answer to Continue from where you left off."

    assert store.client.latest(AGENT, SESSION) == head
    assert roles(store, fork) == roles(store)
    loaded = await store.load(
        {"project_key": project_key_for_directory(given.cwd), "session_id": fork}
    )
    assert loaded is not None
    assert {entry["sessionId"] for entry in loaded if "sessionId" in entry} == {fork}


async def test_a_fork_of_claudes_own_is_kept_as_a_session(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path
) -> None:
    given = options(server, tmp_path)
    await ask(store, "hello", given)
    fork = str(uuid.uuid4())
    forking = options(
        server,
        tmp_path,
        session_store=store,
        hooks=store.hooks(),
        resume=SESSION,
        fork_session=True,
        session_id=fork,
    )

    async for _ in query(prompt="another way", options=forking):
        pass

    assert said_in(server.requests[-1]) == ["hello", "another way"]
    assert roles(store, fork)[-2:] == ["user", "assistant"]
    assert roles(store)[-1] == "assistant"
    assert await ask(store, "and on", given, fork) == "answer to and on"
    assert said_in(server.requests[-1]) == ["hello", "another way", "and on"]


async def test_a_session_is_brought_to_another_directory(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path
) -> None:
    await ask(store, "hello", options(server, tmp_path))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()

    assert await ask(store, "again", options(server, tmp_path, cwd=elsewhere)) == "answer to again"

    assert said_in(server.requests[-1]) == ["hello", "again"]


class Filling:
    """An agent whose tool fills the store up, so that what follows cannot be kept."""

    def __init__(self) -> None:
        self.full = FullStore()
        self.client = SyncClient(self.full)

    def options(self, server: ClaudeServer, home: Path, **more: Any) -> ClaudeAgentOptions:
        @tool("fill", "Fill the disk.", {})
        async def fill(arguments: dict[str, Any]) -> dict[str, Any]:
            self.full.is_full = True
            return {"content": [text("filled")]}

        servers = {"disk": create_sdk_mcp_server("disk", tools=[fill])}
        return server.options(home, mcp_servers=servers, **more)

    @staticmethod
    def script(messages: list[dict[str, Any]]) -> Blocks:
        return [call(f"toolu_{len(messages)}", "mcp__disk__fill")]


async def test_what_cannot_be_kept_ends_the_run_with_an_error(tmp_path: Path) -> None:
    filling = Filling()
    store = HoldfastSessionStore(filling.client)
    with ClaudeServer(filling.script) as server:
        given = filling.options(server, tmp_path / "home")
        with pytest.raises(HoldfastError, match="no space is left"):
            await ask(store, "hello", given)

    assert len(server.requests) == 1


async def test_who_asks_by_themselves_are_told_what_could_not_be_kept(tmp_path: Path) -> None:
    filling = Filling()
    store = HoldfastSessionStore(filling.client)
    with ClaudeServer(filling.script) as server:
        own = {"session_store": store, "hooks": store.hooks(), "session_id": SESSION}
        given = filling.options(server, tmp_path / "home", **own)
        told = [message async for message in query(prompt="hello", options=given)]

    assert len(server.requests) == 1
    assert any(isinstance(message, MirrorErrorMessage) for message in told)
    with pytest.raises(HoldfastError, match="no space is left"):
        store.check(SESSION)
    with pytest.raises(HoldfastError, match="could not be kept"):
        await store.load({**KEY, "session_id": SESSION})

    filling.full.is_full = False  # what was held back is written first

    key = {"project_key": project_key_for_directory(given.cwd), "session_id": SESSION}
    loaded = await store.load(key)
    assert loaded is not None
    assert any(entry["type"] == "assistant" for entry in loaded)


async def test_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.db'}"
    async with HoldfastSessionStore(url=url) as one, HoldfastSessionStore(url=url) as other:
        await asyncio.gather(
            *(
                store.append(KEY, [{"type": "user", "uuid": f"{name}{number}"}])
                for number in range(10)
                for name, store in (("a", one), ("b", other))
            )
        )
        loaded = await one.load(KEY)

    assert loaded is not None
    assert sorted(entry["uuid"] for entry in loaded) == sorted(
        f"{name}{number}" for number in range(10) for name in "ab"
    )


async def test_the_command_line_goes_back_and_shows_what_was_said(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path, place: Path
) -> None:
    given = options(server, tmp_path)
    await ask(store, "hello", given)
    url = f"sqlite:///{tmp_path / 'store.db'}"
    written = [
        info
        for info in store.client.timeline(AGENT, SESSION)
        if info.step_name == "mcp__files__write"
    ]
    newest, oldest = written[0].checkpoint_id, written[-1].checkpoint_id

    shown = await asyncio.to_thread(command, "diff", oldest, newest, "--store", url)
    await asyncio.to_thread(
        command, "rollback", oldest, "--store", url, "--workspace", str(place), "--yes"
    )

    assert "-> mcp__files__write(" in shown
    assert "tool: wrote two" in shown
    assert "M note.txt" in shown
    assert (place / "note.txt").read_text() == "one"
    asked = len(server.requests)
    await ask(store, "hello", given)
    assert list(results_in(server.requests[asked])) == ["toolu_one"]
    assert (place / "note.txt").read_text() == "two"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (ClaudeAgentOptions(resume=str(uuid.uuid4())), "give one of them"),
        (ClaudeAgentOptions(continue_conversation=True), "session_id says with what"),
        (ClaudeAgentOptions(session_store=HoldfastSessionStore(url="memory://")), "another store"),
        ({"cwd": "."}, "ClaudeAgentOptions"),
    ],
)
async def test_options_that_say_something_else_are_refused(given: Any, said: str) -> None:
    async with HoldfastSessionStore(url="memory://") as store:
        with pytest.raises(InvalidArgumentError, match=said):
            await store.options(SESSION, given)
        with pytest.raises(InvalidArgumentError, match="session_id"):
            await store.options("", None)
        with pytest.raises(InvalidArgumentError, match="prompt is a text"):
            await ask(store, 7, ClaudeAgentOptions(cwd="/"))  # type: ignore[arg-type]


async def test_whoever_stops_listening_finds_what_was_done_and_goes_on(
    store: HoldfastSessionStore, server: ClaudeServer, tmp_path: Path, place: Path
) -> None:
    given = options(server, tmp_path)
    asked = store.query(prompt="hello", session_id=SESSION, options=given)
    async with contextlib.aclosing(asked):
        async for message in asked:
            if isinstance(message, UserMessage):  # the first tool has ended
                break
    assert (place / "note.txt").read_text() == "one"

    await ask(store, "hello", given)

    written = [step for step in steps(store) if step == "mcp__files__write"]
    assert len(written) == 2
    assert roles(store) == ["user", "assistant", "tool", "assistant", "tool", "assistant"]
