"""holdfast mcp: a session with the client of the official SDK, over standard input and output."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient, __version__
from holdfast.cli.commands.mcp import CONFIGURED
from tests.cli.kit import Holdfast, environment

mcp = pytest.importorskip("mcp")
# The first version of the SDK has its types elsewhere.
types: Any = import_module("mcp_types" if find_spec("mcp_types") else "mcp.types")


def plain(message: Any) -> dict[str, Any]:
    """Return a message as it was sent: the two versions of the SDK call its fields otherwise."""
    return dict(message.model_dump(by_alias=True))


class Caller:
    """Calls tools and gives back what they answer."""

    def __init__(self, session: Any) -> None:
        self.session = session

    async def __call__(self, tool: str, **arguments: Any) -> Any:
        answer = await self.session.call_tool(tool, arguments)
        assert not plain(answer)["isError"], answer.content
        return plain(answer)["structuredContent"]

    async def with_meta(self, meta: dict[str, Any], tool: str, **arguments: Any) -> Any:
        """Call a tool as a program does that says more about the call."""
        answer = await self.session.call_tool(tool, arguments, meta=meta)
        assert not plain(answer)["isError"], answer.content
        return plain(answer)["structuredContent"]

    async def fails(self, tool: str, **arguments: Any) -> str:
        answer = await self.session.call_tool(tool, arguments)
        assert plain(answer)["isError"]
        return str(answer.content[0].text)


@asynccontextmanager
async def serving(
    directory: Path, *arguments: str, client: str = "tests", **variables: str
) -> AsyncIterator[Caller]:
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "holdfast", "mcp", *arguments],
        cwd=str(directory),
        env=environment(**variables),
    )
    about = types.Implementation(name=client, version="1")
    async with (
        mcp.stdio_client(server) as streams,
        mcp.ClientSession(*streams, client_info=about) as session,
    ):
        told = plain(await session.initialize())
        assert (told["serverInfo"]["name"], told["serverInfo"]["version"]) == (
            "holdfast",
            __version__,
        )
        yield Caller(session)


async def test_the_tools_say_what_they_are_for_take_and_may_destroy(tmp_path: Path) -> None:
    async with serving(tmp_path) as call:
        listed = (await call.session.list_tools()).tools

    tools = {tool.name: plain(tool) for tool in listed}
    assert {*tools} == {"checkpoint", "log", "diff", "rollback", "fork", "rewind"}
    for tool in tools.values():
        assert tool["title"]
        assert tool["description"]
        assert tool["outputSchema"]["type"] == "object"
        assert tool["inputSchema"]["additionalProperties"] is False
        for name, parameter in tool["inputSchema"]["properties"].items():
            assert name != "path"
            assert parameter["description"]
            assert parameter["type"] == "boolean" or {"maximum", "maxLength"} & {*parameter}
        assert tool["annotations"]["openWorldHint"] is False
    hints = {
        name: (tool["annotations"]["readOnlyHint"], tool["annotations"]["destructiveHint"])
        for name, tool in tools.items()
    }
    assert hints["checkpoint"] == (False, False)
    assert hints["log"] == hints["diff"] == (True, False)
    assert hints["rollback"] == hints["fork"] == hints["rewind"] == (False, True)


async def test_an_agent_checkpoints_compares_rolls_back_and_forks(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text("good\n")

    async with serving(tmp_path) as call:
        first = await call("checkpoint", name="it works", note="all tests pass")
        page.write_text("bad\n")
        await call("checkpoint", name="oops")
        listed = await call("log")
        changed = await call("diff", old="it works", new="oops", text=True)
        page.write_text("worse\n")
        now = await call("diff", old="oops")
        back = await call("rollback", checkpoint="it works")
        assert page.read_text() == "good\n"
        await call("rollback", checkpoint="before rollback")
        assert page.read_text() == "worse\n"
        forked = await call("fork", checkpoint="oops", name="bolder")
        assert page.read_text() == "bad\n"
        in_fork = await call("log")

    assert [each["step_name"] for each in listed["checkpoints"]] == ["oops", "it works"]
    assert "-good\n+bad\n" in changed["files"]["text"]
    assert now["files"]["modified"] == ["page.html"]
    assert (back["target"], back["written"]) == (first["checkpoint_id"], ["page.html"])
    assert (forked["session_id"], in_fork["session_id"]) == ("bolder", "bolder")
    assert forked["note"] == "what you call next is about session bolder"
    assert "it works" in Holdfast(tmp_path).ok("log", "--graph")


async def test_the_server_is_confined_to_its_workspace(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    for folder in (inside, outside):
        folder.mkdir()
        (folder / "file").write_text(folder.name)
    store = f"sqlite:///{tmp_path}/both.db"
    theirs = Holdfast(outside)
    theirs.ok("init", "--store", store)
    other = theirs.json("snapshot", "--store", store)["checkpoint_id"]
    with SyncClient.open(store) as client:
        plain = client.save("a", execution_state={}, session_id="plain")

    async with serving(inside, "--store", store) as call:
        await call("checkpoint", name="mine")
        for target in (other, plain):
            for tool in ("rollback", "fork"):
                arguments = {"name": "x"} if tool == "fork" else {}
                refused = await call.fails(tool, checkpoint=target, **arguments)
                assert "does not hold files of this workspace" in refused
        assert "there is no checkpoint" in await call.fails("rollback", checkpoint="nothing")

    assert (inside / "file").read_text() == "inside"
    assert (outside / "file").read_text() == "outside"


async def test_odd_arguments_are_errors_that_the_model_can_read(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    async with serving(tmp_path) as call:
        await call("checkpoint", name="first")
        for limit in (10**30, 0, -1):
            assert "limit is a number from 1 to 1000" in await call.fails("log", limit=limit)
        for name in ("x" * 50_000, "nul\x00", ""):
            assert "name has 1 to 500 characters" in await call.fails("checkpoint", name=name)
            assert "name has" in await call.fails("fork", checkpoint="first", name=name)
        for odd in ("-" * 50_000, "~" * 50_000, "first~" + "9" * 50_000, "\x1b[31m\x00"):
            said = await call.fails("rollback", checkpoint=odd)
            assert len(said) < 2000
            assert "\x1b" not in said
            await call.fails("diff", old=odd)
        wrong: Any
        for wrong in ([], {}, 5, None):
            await call.fails("rollback", checkpoint=wrong)
            await call.fails("log", limit="many")
        assert len((await call("log"))["checkpoints"]) == 1


@pytest.mark.parametrize(
    "name", ["a\n019ab  2026-01-01  forged", "a\rb", "\x1b[2J", "a\u2028b", "a\x85b"]
)
async def test_a_name_is_one_line_and_forges_no_other(tmp_path: Path, name: str) -> None:
    async with serving(tmp_path) as call:
        said = await call.fails("checkpoint", name=name)
        assert not (tmp_path / ".holdfast").exists()
        await call("checkpoint", name="fine: 100 % ✓ user@example.org")
        assert "is one line" in await call.fails("fork", checkpoint="@", name=name)

    assert "a name is one line without control characters" in said


async def test_a_name_that_means_another_point_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    async with serving(tmp_path) as call:
        made = await call("checkpoint", name="20261118")
        for name in ("@", "@~1", "@-", "@home", "main@", "main@~2"):
            assert "would be read as a place" in await call.fails("checkpoint", name=name)
            assert "would be read" in await call.fails("fork", checkpoint="@", name=name)
        for length in (8, 13, 36):
            name = made["checkpoint_id"][:length]
            assert "the beginning of the id" in await call.fails("checkpoint", name=name)
        name = made["checkpoint_id"].replace("-", "")[:12]
        assert "the beginning of the id" in await call.fails("checkpoint", name=name)
        await call("checkpoint", name="0")
        assert names(await call("log")) == ["0", "20261118"]


class Agent:
    """Stands in for a coding agent: its hooks tell what it does, as those of Claude Code do."""

    def __init__(self, directory: Path, session: str, program: str = "claude-code") -> None:
        self.directory = directory
        self.session = session
        self.program = program
        self.calls = 0

    def tells(self, event: str, **more: Any) -> None:
        told = {
            "session_id": self.session,
            "cwd": str(self.directory),
            "hook_event_name": event,
            **more,
        }
        done = Holdfast(self.directory)("hook", "--from", self.program, given=json.dumps(told))
        assert (done.code, done.out, done.err) == (0, "", "")

    def asked(self, prompt: str) -> None:
        self.tells("UserPromptSubmit", prompt=prompt)

    def runs(self, command: str) -> None:
        subprocess.run(command, shell=True, cwd=self.directory, check=True)
        self.calls += 1
        self.tells(
            "PostToolUse",
            tool_name="Bash",
            tool_input={"command": command},
            tool_response="",
            tool_use_id=f"call-{self.calls}",
        )


def names(log: Any) -> list[str]:
    return [each["step_name"] for each in log["checkpoints"]]


def test_the_page_and_the_help_say_the_same_and_how_each_program_is_told(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()
    shown = Holdfast(tmp_path).ok("mcp", "--help")

    for title, how in CONFIGURED.items():
        assert f"{title:<12} {how}" in shown
        said, _, file = how.partition(" in ")
        assert f"| {title} | `{said}`{f' in `{file}`' if file else ''} |" in page


async def test_what_hooks_recorded_is_listed_compared_and_put_back(tmp_path: Path) -> None:
    agent = Agent(tmp_path, "c0ffee")
    agent.asked("Make a page")
    agent.runs("echo good > page.html")
    agent.runs("echo bad > page.html; mkdir out; touch out/junk")

    async with serving(tmp_path) as call:
        listed = await call("log")
        by_name = await call("diff", old="Bash echo good > page.html")
        by_place = await call("diff", old="@~1", new="@", text=True)
        kept = await call("checkpoint", name="before I go on", note="sure")
        again = await call("checkpoint", name="nothing has changed")
        back = await call("rollback", checkpoint="Bash echo good > page.html")
        assert (tmp_path / "page.html").read_text() == "good\n"
        assert not (tmp_path / "out").exists()
        agent.runs("echo better > page.html")
        after = await call("log")

    assert listed["session_id"] == kept["session_id"] == "c0ffee"
    assert names(listed)[1:] == ["Bash echo good > page.html", "you: Make a page"]
    assert by_name["files"]["modified"] == ["page.html"]
    assert "-good\n+bad\n" in by_place["files"]["text"]
    assert kept["new_bytes"] == again["new_bytes"] == 0
    assert back["written"] == ["page.html"]
    assert set(back["removed"]) == {"out/junk", "out"}
    assert "read them again" in back["note"]
    assert names(after)[:5] == [
        "Bash echo better > page.html",
        "rolled back to Bash echo good > page.html",
        "before rollback",
        "nothing has changed",
        "before I go on",
    ]
    Holdfast(tmp_path).ok("verify")


async def test_a_point_that_is_asked_for_keeps_its_place_in_the_conversation(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path, "c0ffee")
    agent.asked("Make a page")
    agent.runs("echo good > page.html")
    meta = {"claudecode/toolUseId": "toolu_7"}

    async with serving(tmp_path, client="claude-code") as call:
        named = await call.with_meta(meta, "checkpoint", name="it works", note="all of it")
    async with serving(tmp_path) as call:
        unnamed = await call("checkpoint", name="who knows where")

    with SyncClient.open(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as client:
        of_call = client.restore(named["checkpoint_id"]).execution_state
        of_step = client.restore(unnamed["checkpoint_id"]).execution_state
    assert (of_call["program"], of_call["moment"]) == ("claude-code", "call")
    assert (of_call["call_id"], of_call["note"]) == ("toolu_7", "all of it")
    assert of_step["call_id"] == "toolu_7"
    assert "note" not in of_step


async def test_a_point_that_a_subagent_may_have_asked_for_is_where_the_step_before_was(
    tmp_path: Path,
) -> None:
    agent = Agent(tmp_path, "c0ffee")
    agent.runs("echo good > page.html")
    meta = {"claudecode/toolUseId": "toolu_7"}
    thread = {"sessionId": "c0ffee", "threadId": "helper", "callId": "toolu_8"}

    async with serving(tmp_path, client="claude-code") as call:
        agent.tells("SubagentStop", agent_id="helper", agent_type="any")
        by_helper = await call.with_meta(meta, "checkpoint", name="by the helper")
        agent.runs("echo better > page.html")
        by_main = await call.with_meta(meta, "checkpoint", name="by the agent")
    Agent(tmp_path, "c0ffee", "codex").runs("echo best > page.html")
    async with serving(tmp_path, client="codex-mcp-client") as call:
        by_thread = await call.with_meta(thread, "checkpoint", name="by a thread")

    with SyncClient.open(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as client:
        ids = [
            client.restore(each["checkpoint_id"]).execution_state["call_id"]
            for each in (by_helper, by_main, by_thread)
        ]
    assert ids == ["call-1", "toolu_7", "call-1"]


async def test_the_session_is_looked_for_at_each_call_and_that_of_a_subagent_is_not_it(
    tmp_path: Path,
) -> None:
    first, second = Agent(tmp_path, "first"), Agent(tmp_path, "second")

    async with serving(tmp_path) as call:
        own = await call("checkpoint", name="before all agents")
        first.asked("One")
        in_first = await call("log")
        second.asked("Two")
        in_second = await call("log")
        second.tells(
            "PostToolUse", tool_name="Bash", tool_input={}, agent_id="helper", agent_type="any"
        )
        in_subagent = await call("log")
        first.runs("echo x > x")
        in_first_again = await call("checkpoint", name="here")

    assert own["session_id"].startswith(tmp_path.name)
    assert [each["session_id"] for each in (in_first, in_second)] == ["first", "second"]
    assert in_subagent["session_id"] == "second"
    assert in_first_again["session_id"] == "first"


async def test_programs_that_say_which_session_calls_get_that_one(tmp_path: Path) -> None:
    for session in ("one", "two"):
        Agent(tmp_path, session, "codex").asked(session)
    Agent(tmp_path, "three").asked("three")

    async with serving(tmp_path, client="codex-mcp-client") as call:
        newest = await call("log")
        one = await call.with_meta({"sessionId": "one", "callId": "call_1"}, "log")
        two = await call.with_meta({"threadId": "two"}, "log")
        nobody = await call.with_meta({"sessionId": "three"}, "log")
        odd = await call.with_meta({"sessionId": ["one"]}, "log")

    said = [each["session_id"] for each in (newest, one, two, nobody, odd)]
    assert said == ["two", "one", "two", "two", "two"]


async def test_a_program_that_runs_twice_keeps_to_its_session_until_it_begins_another(
    tmp_path: Path,
) -> None:
    mine, other = Agent(tmp_path, "mine"), Agent(tmp_path, "other")
    mine.asked("Begin")
    other.asked("Begin elsewhere")
    mine.asked("Go on")
    other.runs("echo x > x")

    async with serving(tmp_path, client="claude-code", CLAUDE_CODE_SESSION_ID="mine") as call:
        side_by_side = await call("log")
        Agent(tmp_path, "cleared").asked("Something else")
        began_later = await call("log")

    assert side_by_side["session_id"] == "mine"
    assert began_later["session_id"] == "cleared"


async def test_a_session_that_is_named_is_the_one(tmp_path: Path) -> None:
    Agent(tmp_path, "c0ffee").asked("Make a page")
    Agent(tmp_path, "later").asked("Make another")

    async with serving(tmp_path, "--session", "c0ffee") as call:
        assert (await call("log"))["session_id"] == "c0ffee"
        kept = await call("checkpoint", name="here")
    async with serving(tmp_path, "--session", "new", "--agent", "me") as call:
        assert (await call("log"))["checkpoints"] == []
        made = await call("checkpoint", name="there")

    assert (kept["session_id"], made["session_id"]) == ("c0ffee", "new")
    sessions = Holdfast(tmp_path).json("sessions")["sessions"]
    assert {each["agent_id"] for each in sessions if each["session_id"] == "new"} == {"me"}


async def test_a_session_that_another_process_holds_is_said_and_no_file_is_touched(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.html"
    page.write_text("good\n")
    async with serving(tmp_path, "--session", "held") as call:
        await call("checkpoint", name="it works")
        page.write_text("bad\n")
        with (
            SyncClient.open(f"sqlite:///{tmp_path}/.holdfast/holdfast.db") as client,
            client.session("mcp", session_id="held"),
        ):
            refused = await call.fails("rollback", checkpoint="it works")
        assert page.read_text() == "bad\n"
        await call("rollback", checkpoint="it works")

    assert "held" in refused
    assert page.read_text() == "good\n"


async def test_a_point_of_another_session_is_reached_by_a_fork(tmp_path: Path) -> None:
    one, two = Agent(tmp_path, "one"), Agent(tmp_path, "two")
    one.runs("echo one > file")
    two.runs("echo two > file")
    (there,) = Holdfast(tmp_path).json("log", "one")["checkpoints"]

    async with serving(tmp_path) as call:
        refused = await call.fails("rollback", checkpoint=there["checkpoint_id"])
        assert (tmp_path / "file").read_text() == "two\n"
        forked = await call("fork", checkpoint=there["checkpoint_id"], name="three")
        in_fork = await call("log")
        newest = await call("diff", old="@")
        assert "already" in await call.fails("fork", checkpoint="@", name="three")

    assert "fork goes on from there" in refused
    assert (tmp_path / "file").read_text() == "one\n"
    assert (forked["session_id"], forked["left"]) == ("three", "two")
    # What the agent does next is recorded where it was: its hooks know nothing of the fork.
    assert forked["current"] == in_fork["session_id"] == "two"
    assert "your steps are recorded in session two as before" in forked["note"]
    assert names(in_fork)[:2] == ["forked as three", "before fork three"]
    assert not newest["files"]["modified"]


async def test_a_rewind_without_a_conversation_is_refused_and_touches_nothing(
    tmp_path: Path,
) -> None:
    page = tmp_path / "page.html"
    page.write_text("good\n")
    async with serving(tmp_path) as call:
        await call("checkpoint", name="of nobody")
        page.write_text("bad\n")
        of_nobody = await call.fails("rewind", checkpoint="of nobody")
        Agent(tmp_path, "c0ffee").runs("echo worse > page.html")
        unread = await call.fails("rewind", checkpoint="@")

    assert "conversation" in of_nobody
    assert "c0ffee" in unread or "call-1" in unread
    assert page.read_text() == "worse\n"


async def test_looking_makes_no_store_and_says_that_there_is_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path) as call:
        assert (await call("log"))["checkpoints"] == []
        assert "make one" in await call.fails("diff", old="@")
        assert "make one" in await call.fails("rollback", checkpoint="@")

    assert list(tmp_path.iterdir()) == []


async def test_a_home_directory_is_not_kept_as_a_whole_unless_it_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path, HOME=str(tmp_path)) as call:
        assert "--workspace" in await call.fails("checkpoint", name="everything")
    async with serving(tmp_path, "--workspace", ".", HOME=str(tmp_path)) as call:
        assert (await call("checkpoint", name="everything"))["files"] == 0


async def test_below_a_project_all_of_it_is_kept_as_the_hooks_do(tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    Holdfast(tmp_path).ok("init")
    (tmp_path / "file").write_text("x")

    async with serving(below) as call:
        assert (await call("checkpoint", name="all"))["files"] == 1
    project = tmp_path / "project"
    project.mkdir()
    Holdfast(project).ok("init")
    for client, own in (("claude-code", 0), ("codex-mcp-client", 1)):
        async with serving(below, client=client, CLAUDE_PROJECT_DIR=str(project)) as call:
            assert len((await call("log"))["checkpoints"]) == own


async def test_long_lists_are_cut_and_names_that_are_no_text_are_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as call:
        (tmp_path / "first").write_text("x")
        await call("checkpoint", name="first")
        for number in range(250):
            (tmp_path / f"{number:03}").write_text("x" * 300)
        (Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))).write_text("odd")
        changed = await call("diff", old="first", text=True)
        back = await call("rollback", checkpoint="first")

    assert (len(changed["files"]["added"]), changed["files"]["more"]) == (200, 51)
    assert len(changed["files"]["text"]) == 50_000
    assert (len(back["removed"]), back["more"]) == (200, 51)
    assert sorted(os.listdir(tmp_path)) == [".holdfast", "first"]


async def test_secrets_in_names_and_notes_are_not_kept(tmp_path: Path) -> None:
    token = "ghp_" + "a1" * 18
    async with serving(tmp_path) as call:
        await call("checkpoint", name=f"with {token}", note=token)
        listed = await call("log")

    assert names(listed) == ["with ***"]
    assert token not in Holdfast(tmp_path).ok("show", "@", "--json")


if hasattr(mcp, "Client"):  # since the second version of the SDK

    async def test_the_newest_client_talks_without_a_handshake(tmp_path: Path) -> None:
        server = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-m", "holdfast", "mcp"],
            cwd=str(tmp_path),
            env=environment(),
        )
        async with mcp.Client(mcp.stdio_client(server)) as client:
            version = client.protocol_version
            tools = (await client.list_tools()).tools
            kept = await client.call_tool("checkpoint", {"name": "first"})

        assert version == "2026-07-28"
        assert len(tools) == 6
        assert kept.structured_content["files"] == 0
