"""Holdfast's tools over MCP, called by the real programs as their users set them up."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.commands.mcp import CONFIGURED
from holdfast.cli.mcp.protocol import ABOUT
from holdfast.cli.mcp.tool_table import TOOLS
from tests.coding_agents.kit import (
    ROOT,
    SECONDS,
    RealProgram,
    Reply,
    Request,
    Script,
    Shell,
    Tool,
    Write,
)
from tests.coding_agents.programs import CLASSES, real_program

TITLES = dict(zip(CLASSES, CONFIGURED, strict=True))
NAMED = {
    "claude-code": "mcp__holdfast__{}",
    "codex": "mcp__holdfast__{}",
    "gemini-cli": "mcp_holdfast_{}",
    "opencode": "holdfast_{}",
}
"""What each program calls the tools of a server."""
PROMPT = "Make the page better."
HARM = "echo bad > page.txt; mkdir -p out/empty; rm kept.txt"


def story(name: str) -> Script:
    """An agent that keeps a point, does harm, looks at it and goes back."""

    def tool(tool: str, **arguments: Any) -> Reply:
        return Reply("", [Tool(NAMED[name].format(tool), arguments)])

    return {
        PROMPT: [
            Reply("I begin.", [Write("page.txt", "good\n")]),
            tool("checkpoint", name="it works", note="The page is good."),
            Reply("", [Shell(HARM)]),
            tool("log"),
            tool("diff", old="it works", text=True),
            tool("rollback", checkpoint="it works"),
            tool("log", limit=3),
            Reply("It is as it was."),
        ]
    }


@pytest.fixture(params=list(CLASSES))
def program(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[RealProgram]:
    """Every program, with the hook and the server set up as the pages say."""
    made = real_program(request.param)(tmp_path, story(request.param))
    (made.project / "kept.txt").write_text("by the user\n")
    made.holdfast("hook", "install", made.name)
    set_up(made, with_holdfast(tmp_path), monkeypatch)
    yield made
    made.close()


def with_holdfast(directory: Path) -> str:
    """Make a ``holdfast`` of this tree, as programs do not hand on all of their environment."""
    folder = directory / "bin"
    folder.mkdir()
    script = folder / "holdfast"
    script.write_text(
        f'#!/bin/sh\nPYTHONPATH={ROOT / "src"} exec {sys.executable} -m holdfast "$@"\n'
    )
    script.chmod(0o755)
    return str(folder)


def set_up(program: RealProgram, folder: str, patch: pytest.MonkeyPatch) -> None:
    """Tell a program of the server, in the words of ``holdfast mcp --help``."""
    path = os.pathsep.join([folder, program.environment["PATH"]])
    known = program.variables()
    patch.setattr(program, "variables", lambda: {**known, "PATH": path})
    how = CONFIGURED[TITLES[program.name]]
    if program.name == "opencode":
        setting, _, file = how.partition(" in ")
        (program.project / file).write_text("{" + setting + "}")
        return
    words = shlex.split(how)
    assert words[0] == program.command
    done = subprocess.run(
        [program.program, *words[1:]],
        cwd=program.project,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert done.returncode == 0, done


def told_first_with(program: RealProgram, results: int) -> Request:
    """Return the first request that tells the model so many results of calls."""
    return next(
        each
        for each in program.requests
        if sum(said[0] == "result" for said in each.said) == results
    )


def results(program: RealProgram) -> list[str]:
    """Return what the tools answered, in their order, as the model was told it."""
    return [str(each[1]) for each in program.requests[-1].said if each[0] == "result"]


def test_an_agent_keeps_a_point_sees_what_it_did_and_goes_back(program: RealProgram) -> None:
    done = program.ask(PROMPT)

    assert done.code == 0, done
    first = json.dumps(program.requests[0].body)
    if program.name == "codex":  # which has the model search for the tools of a server
        assert f"holdfast: {ABOUT[:100]}" in first
    else:
        for tool in TOOLS:
            assert NAMED[program.name].format(tool["name"]) in first
    _, kept, _, log, diff, back, after = results(program)
    assert "it works" in kept or "checkpoint_id" in kept
    assert "it works" in log
    assert f"you: {PROMPT}" in log
    assert "page.txt" in diff
    assert "+bad" in diff
    assert "kept.txt" in back
    assert "read them again" in back
    assert "rolled back to it works" in after
    files = {name: data for name, data in program.files().items() if name != "opencode.json"}
    assert files == {"kept.txt": b"by the user\n", "page.txt": b"good\n"}


def test_own_calls_are_kept_once_and_in_the_session_that_the_hooks_record(
    program: RealProgram,
) -> None:
    assert program.ask(PROMPT).code == 0

    (session,) = program.holdfast("sessions")["sessions"]
    assert session["agent_id"] == program.name
    log = program.holdfast("log")["checkpoints"]
    names = [each["step_name"] for each in reversed(log)]
    assert names[0] == f"you: {PROMPT}"
    assert "page.txt" in names[1]
    assert names[2] == "it works"
    assert HARM[:20] in names[3]
    assert names[4:] == [
        "before rollback",
        "rolled back to it works",
        "agent: It is as it was.",
    ]


def test_a_point_that_the_agent_named_comes_back_with_its_conversation(
    program: RealProgram,
) -> None:
    assert program.ask(PROMPT).code == 0
    behind = told_first_with(program, 2)

    done = program.holdfast("rewind", "it works", "--yes")
    files = program.files()
    again = program.ask("And now?", resume=done["resume"])

    assert again.code == 0, again
    assert again.requests[0].said == [*behind.said, ("user", "And now?")]
    assert files == behind.files


def test_an_agent_prepares_its_own_rewind_and_the_user_goes_on_with_the_command(
    program: RealProgram,
) -> None:
    program.script = {
        PROMPT: [
            *program.script[PROMPT][:3],
            Reply("", [Tool(NAMED[program.name].format("rewind"), {"checkpoint": "it works"})]),
            Reply("Please run that."),
        ]
    }
    assert program.ask(PROMPT).code == 0
    behind = told_first_with(program, 2)
    command = re.search(rf"{program.command} [^\"\n]*", results(program)[-1])
    assert command is not None
    files = program.files()
    program.holdfast("undo", "--yes")  # the session has gone on since, to the end of its turn
    assert "kept.txt" not in program.files()
    program.holdfast("undo", "--yes")
    assert program.files() == files

    again = program.ask("And now?", resume=shlex.split(command[0]))

    assert again.code == 0, again
    assert again.requests[0].said == [*behind.said, ("user", "And now?")]
    assert files == behind.files
    assert program.holdfast("undo", "--yes")
    assert "kept.txt" not in program.files()


def test_the_settings_that_the_page_has_for_a_project_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = real_program("claude-code")(tmp_path, story("claude-code"))
    path = os.pathsep.join([with_holdfast(tmp_path), claude.environment["PATH"]])
    page = (ROOT / "docs" / "mcp.md").read_text()
    (settings,) = re.findall(r"```json\n(.*?)```", page, re.DOTALL)
    file = tmp_path / "mcp.json"
    file.write_text(settings)
    known = claude.arguments
    with_settings = ["--mcp-config", str(file)]
    monkeypatch.setattr(claude, "arguments", lambda *given: [*known(*given), *with_settings])

    done = claude.ask(PROMPT, PATH=path)
    claude.close()

    assert done.code == 0, done
    assert "mcp__holdfast__checkpoint" in json.dumps(done.requests[0].body)
    assert "it works" in results(claude)[3]


def test_codex_asks_before_what_destroys_and_lets_the_rest_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codex = real_program("codex")(tmp_path, story("codex"))
    (codex.project / "kept.txt").write_text("by the user\n")
    set_up(codex, with_holdfast(tmp_path), monkeypatch)
    given = codex.arguments(PROMPT, None)
    given.remove("--dangerously-bypass-approvals-and-sandbox")
    done = subprocess.run(
        [*given[:-1], "-s", "workspace-write", PROMPT],
        cwd=codex.project,
        env=codex.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    codex.close()

    assert done.returncode == 0, done
    items = [json.loads(line).get("item", {}) for line in done.stdout.splitlines()]
    calls = {
        each["tool"]: (each["status"], each["error"] is None)
        for each in items
        if each.get("type") == "mcp_tool_call"
    }
    assert calls["checkpoint"] == calls["log"] == calls["diff"] == ("completed", True)
    assert calls["rollback"] == ("failed", False)
    assert (codex.project / "page.txt").read_text() == "bad\n"
