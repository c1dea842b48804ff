"""holdfast hook: what a coding agent does, recorded through its hooks."""

import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.cli.hooks.install import COMMAND, EVENTS, installed, uninstalled
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


SETTINGS = [
    '{"model": "opus"}',
    '{"model":"opus","permissions":{"allow":["Read"]}}\n',
    '{\n    "permissions": {\n        "allow": [\n            "Bash(ls:*)"\n        ]\n    }\n}\n',
    '{\n  "hooks": {\n    "Stop": [\n      {\n        "matcher": "Edit"\n      }\n    ]\n  }\n}',
    '{\r\n\t"z": 1,\r\n\t"é": "ü",\r\n\t"a": [\r\n\t\t1.5,\r\n\t\tnull\r\n\t]\r\n}\r\n',
    '{\n "broken": "\\ud800"\n}\n',
]


@pytest.fixture
def settings(holdfast: Holdfast) -> Path:
    """Where the settings of a project are; nothing is there yet."""
    file = holdfast.directory / ".claude" / "settings.json"
    file.parent.mkdir()
    return file


@pytest.mark.parametrize("before", SETTINGS)
def test_settings_keep_their_order_and_style(
    holdfast: Holdfast, settings: Path, before: str
) -> None:
    settings.write_bytes(before.encode())

    holdfast.ok("hook", "install", "claude-code")
    after = settings.read_bytes().decode()
    assert not holdfast.json("hook", "install", "claude-code")["changed"]
    assert settings.read_bytes().decode() == after
    holdfast.ok("hook", "uninstall", "claude-code")

    hooks = json.loads(after)["hooks"]
    assert all(hooks[each][-1]["hooks"][0]["command"] == COMMAND for each in EVENTS)
    assert list(json.loads(after)) == list(dict.fromkeys([*json.loads(before), "hooks"]))
    assert settings.read_bytes().decode() == before


@pytest.mark.parametrize("before", ["", "{}", '{"hooks": {}}', '{"hooks": {"Stop": []}}'])
def test_settings_that_say_nothing_say_nothing_again(before: str) -> None:
    said = json.loads(before or "{}")

    assert not uninstalled(installed(said)).get("hooks")


def test_the_mode_of_settings_stays_and_so_does_a_link_to_them(
    holdfast: Holdfast, settings: Path
) -> None:
    real = holdfast.directory / "dotfiles.json"
    real.write_text('{"model": "opus"}')
    real.chmod(0o640)
    settings.symlink_to(real)

    holdfast.ok("hook", "install", "claude-code")

    assert settings.is_symlink()
    assert "hooks" in json.loads(real.read_text())
    assert real.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(settings.parent)) == ["settings.json"]


def test_what_others_add_later_stays(holdfast: Holdfast) -> None:
    holdfast.ok("hook", "install", "claude-code")
    file = holdfast.directory / ".claude" / "settings.json"
    settings = json.loads(file.read_text())
    settings["model"] = "opus"
    settings["hooks"]["Stop"].append({"hooks": [{"type": "command", "command": "say done"}]})
    file.write_text(json.dumps(settings, indent=4))

    holdfast.ok("hook", "uninstall", "claude-code")

    assert json.loads(file.read_text()) == {
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]},
        "model": "opus",
    }


def test_settings_that_were_made_are_removed(holdfast: Holdfast) -> None:
    first = holdfast.json("hook", "install", "claude-code", "--local")
    again = holdfast.json("hook", "install", "claude-code", "--local")
    removed = holdfast.json("hook", "uninstall", "claude-code", "--local")

    assert [each["changed"] for each in (first, again, removed)] == [True, False, True]
    assert not Path(first["path"]).exists()
    assert "is not there" in holdfast.ok("hook", "uninstall", "claude-code", "--local")


@pytest.mark.parametrize(
    "text",
    [
        *("{broken", "[]", '{"hooks": []}', '{"hooks": {"Stop": 1}}'),
        *('{"a": 1} // mine', '{"a": 1, "a": 2}', '{"n": 1e999}', '{"n": NaN}', "[" * 100_000),
    ],
)
def test_settings_that_are_not_as_expected_are_left_alone(
    holdfast: Holdfast, settings: Path, text: str
) -> None:
    settings.write_text(text)

    done = holdfast("hook", "install", "claude-code")

    assert done.code == 1
    assert str(settings) in done.err
    assert "nothing was changed" in done.err
    assert settings.read_text() == text
