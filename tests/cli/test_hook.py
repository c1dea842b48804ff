"""holdfast hook: what a coding agent does, recorded through its hooks."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from tests.cli.kit import Holdfast, environment


def event(holdfast: Holdfast, name: str, **more: Any) -> str:
    """An event as Claude Code tells it."""
    told = {
        "session_id": "c0ffee",
        "transcript_path": str(holdfast.directory / "transcript.jsonl"),
        "cwd": str(holdfast.directory),
        "hook_event_name": name,
        **more,
    }
    return json.dumps(told)


class Agent:
    """Stands in for Claude Code: does something, and runs the hooks of the project's settings."""

    def __init__(self, directory: Path) -> None:
        self.holdfast = Holdfast(directory)
        self.settings = directory / ".claude" / "settings.json"

    def does(self, name: str, tool: str | None = None, **more: Any) -> None:
        """Run every hook of an event as the settings say, in a shell, as Claude Code does."""
        told = {**more, **({"tool_name": tool} if tool else {})}
        for entry in json.loads(self.settings.read_text())["hooks"].get(name, []):
            for hook in entry["hooks"]:
                done = subprocess.run(
                    hook["command"],
                    shell=True,
                    cwd=self.holdfast.directory,
                    env=environment(
                        CLAUDE_PROJECT_DIR=str(self.holdfast.directory),
                        PATH=f"{Path(__import__('sys').executable).parent}:{os.environ['PATH']}",
                    ),
                    input=event(self.holdfast, name, **told),
                    capture_output=True,
                    text=True,
                )
                assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_session_of_a_coding_agent_is_recorded_and_rolled_back(tmp_path: Path) -> None:
    holdfast = Holdfast(tmp_path)
    page, transcript = tmp_path / "page.html", tmp_path / "transcript.jsonl"
    page.write_text("good\n")
    transcript.write_text('{"type": "user"}\n')
    (tmp_path / ".gitignore").write_text("transcript.jsonl\n")
    holdfast.ok("hook", "install", "claude-code")
    agent = Agent(tmp_path)

    agent.does("UserPromptSubmit", prompt="Make the page better")
    page.write_text("bad\n")
    transcript.write_text('{"type": "user"}\n{"type": "assistant"}\n')
    arguments = {"file_path": str(page), "old_string": "good", "new_string": "bad"}
    agent.does("PostToolUse", "Edit", tool_input=arguments, tool_response={"success": True})
    (tmp_path / "junk").write_text("x")
    agent.does("PostToolUse", "Bash", tool_input={"command": "touch junk"})
    agent.does("Stop")

    shown = holdfast.json("log")["checkpoints"]
    assert [each["step_name"] for each in shown] == [
        "agent: done",
        "Bash touch junk",
        "Edit page.html",
        "you: Make the page better",
    ]
    edit = holdfast.json("show", "Edit page.html")["state"]
    assert edit["input"] == arguments
    assert edit["transcript"] == {"path": str(transcript), "bytes": 39, "lines": 2}
    assert "-good\n+bad\n" in holdfast.ok("diff", "Edit page.html", "--text")

    holdfast.ok("rollback", "you: Make the page better", "--yes")

    assert page.read_text() == "good\n"
    assert not (tmp_path / "junk").exists()


def test_hooks_of_tools_that_run_side_by_side_make_one_line(holdfast: Holdfast) -> None:
    holdfast.ok("init")
    with ThreadPoolExecutor(6) as pool:
        told = [event(holdfast, "PostToolUse", tool_name=f"tool-{n}") for n in range(6)]
        done = list(pool.map(lambda given: holdfast("hook", given=given), told))

    assert [each.code for each in done] == [0] * 6
    infos = holdfast.json("log")["checkpoints"]
    assert [each["parent_id"] for each in infos[:-1]] == [
        each["checkpoint_id"] for each in infos[1:]
    ]


def test_a_hook_never_captures_a_home_directory(tmp_path: Path) -> None:
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    project.mkdir(parents=True)
    (home / "private").write_text("x")
    (project / "code").write_text("x")
    holdfast = Holdfast(project)
    Holdfast(home).ok("init")

    done = holdfast("hook", "--json", given=event(holdfast, "Stop"), HOME=str(home))

    assert (done.code, done.json["files"]) == (0, 1)


@pytest.mark.parametrize(
    "given",
    ["", "nonsense", "[]", "{}", '{"session_id": "s", "cwd": "/no/such/directory"}'],
)
def test_a_hook_never_stands_in_the_way(holdfast: Holdfast, given: str) -> None:
    """2 would forbid the tool call, and standard output would be read by the model."""
    done = holdfast("hook", given=given)

    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("holdfast: ")


def test_a_hook_makes_a_store_where_there_is_none(holdfast: Holdfast) -> None:
    done = holdfast("hook", "--json", given=event(holdfast, "Stop"))

    assert (done.code, done.json["step_name"]) == (0, "agent: done")
    with SyncClient.sqlite(holdfast.directory / ".holdfast" / "holdfast.db") as client:
        assert client.sessions()[0].agent_id == "claude-code"


@pytest.mark.parametrize(
    ("arguments", "told", "name"),
    [
        (
            ["--from", "cursor"],
            {"conversation_id": "s", "hook_event_name": "afterFileEdit", "workspace_roots": ["."]},
            "afterFileEdit",
        ),
        (
            ["--from", "gemini-cli"],
            {
                "session_id": "s",
                "hook_event_name": "BeforeTool",
                "tool_name": "write_file",
                "tool_input": {"file_path": "a.py"},
            },
            "before WriteFile a.py",
        ),
        (
            ["--from", "generic", "--map", "session=run.id", "--map", "tool=calls.0.name"],
            {"run": {"id": "s"}, "calls": [{"name": "shell"}]},
            "shell",
        ),
    ],
    ids=["cursor", "gemini", "generic"],
)
def test_other_agents_are_understood(
    holdfast: Holdfast, arguments: list[str], told: dict[str, Any], name: str
) -> None:
    done = holdfast("hook", *arguments, "--json", given=json.dumps(told))

    assert done.code == 0, done.err
    assert (done.json["session_id"], done.json["step_name"]) == ("s", name)
