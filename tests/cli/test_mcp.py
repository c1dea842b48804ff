"""holdfast mcp: a session with the client of the official SDK, over standard input and output."""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient, __version__
from tests.cli.kit import Holdfast, environment

mcp = pytest.importorskip("mcp")


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

    async def fails(self, tool: str, **arguments: Any) -> str:
        answer = await self.session.call_tool(tool, arguments)
        assert plain(answer)["isError"]
        return str(answer.content[0].text)


@asynccontextmanager
async def serving(directory: Path, *arguments: str) -> AsyncIterator[Caller]:
    server = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "holdfast", "mcp", *arguments],
        cwd=str(directory),
        env=environment(),
    )
    async with mcp.stdio_client(server) as streams, mcp.ClientSession(*streams) as session:
        told = plain(await session.initialize())
        assert (told["serverInfo"]["name"], told["serverInfo"]["version"]) == (
            "holdfast",
            __version__,
        )
        yield Caller(session)


async def test_the_tools_say_what_they_are_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as call:
        tools = {tool.name: tool for tool in (await call.session.list_tools()).tools}

    assert set(tools) == {"checkpoint", "log", "diff", "rollback", "fork"}
    assert all(tool.description for tool in tools.values())
    assert not any("path" in plain(tool)["inputSchema"]["properties"] for tool in tools.values())


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
