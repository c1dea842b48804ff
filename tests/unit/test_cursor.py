"""Cursor, from its documentation: what its events say, and the hook in its settings."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents import events, programs
from holdfast.coding_agents.cursor.program import PROGRAM
from holdfast.coding_agents.cursor.settings import EVENTS, SETTINGS, installed, uninstalled
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.told import Moment
from holdfast.errors import CodingAgentError

OURS = ["/opt/my tools/holdfast", "hook", "--from", "cursor"]
COMMON = {
    "conversation_id": "conv-1",
    "generation_id": "gen-1",
    "workspace_roots": ["/project"],
    "transcript_path": "/home/user/.cursor/x.jsonl",
}


def told(event: str, **fields: Any) -> Any:
    return events.read({**COMMON, "hook_event_name": event, **fields}, PROGRAM)


@pytest.mark.parametrize(
    ("event", "fields", "moment", "name"),
    [
        ("sessionStart", {}, Moment.START, "sessionStart"),
        ("beforeSubmitPrompt", {"prompt": "Make it"}, Moment.PROMPT, "you: Make it"),
        (
            "postToolUse",
            {"tool_name": "Write", "tool_input": {"file_path": "/project/a.py"}},
            Moment.CALL,
            "Write a.py",
        ),
        (
            "postToolUse",
            {
                "tool_name": "Shell",
                "tool_input": {"command": "npm test"},
                "tool_output": '{"output": "ok", "exitCode": 0}',
            },
            Moment.CALL,
            "Shell npm test",
        ),
        (
            "postToolUse",
            {
                "tool_name": "Shell",
                "tool_input": {"command": "npm test"},
                "tool_output": '{"output": "no", "exitCode": 3}',
            },
            Moment.CALL,
            "Shell npm test (failed, 3)",
        ),
        (
            "postToolUseFailure",
            {
                "tool_name": "Shell",
                "tool_input": {"command": "npm test"},
                "error_message": "Command failed with exit code 2",
                "failure_type": "error",
            },
            Moment.CALL,
            "Shell npm test (failed, 2)",
        ),
        (
            "postToolUseFailure",
            {"tool_name": "Write", "tool_input": {}, "error_message": "denied"},
            Moment.CALL,
            "Write (failed)",
        ),
        ("stop", {"status": "completed", "loop_count": 0}, Moment.END, "agent: done"),
        ("afterFileEdit", {"file_path": "/project/a.py"}, Moment.OTHER, "afterFileEdit"),
    ],
)
def test_events_are_understood(
    event: str, fields: dict[str, Any], moment: Moment, name: str
) -> None:
    found = told(event, **fields)

    assert (found.session, found.turn_id, found.cwd) == ("conv-1", "gen-1", "/project")
    assert (found.moment, step_name(found, PROGRAM)) == (moment, name)


def test_a_start_that_names_only_the_session_is_understood() -> None:
    given = {"hook_event_name": "sessionStart", "session_id": "s1", "cwd": "/project"}
    found = events.read(given, PROGRAM)
    assert (found.session, found.cwd, found.moment) == ("s1", "/project", Moment.START)


def test_a_call_is_known_by_its_id() -> None:
    assert told("postToolUse", tool_name="Shell", tool_use_id="abc").call_id == "abc"


@pytest.mark.parametrize("output", ["{", "[]", "5", '{"exitCode": true}', "[" * 10**5, None, 5])
def test_an_output_that_says_nothing_is_no_failure(output: Any) -> None:
    assert PROGRAM.failure_of(told("postToolUse", tool_name="Shell", tool_output=output)) is None


def test_its_conversations_are_not_known() -> None:
    assert programs.transcript("cursor") is None


ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"command": st.sampled_from(["./format.sh", "holdfast gc", "x 'y"])},
        optional={"timeout": st.just(5), "matcher": st.just("Shell")},
    ),
    min_size=1,
    max_size=3,
)
USERS = st.fixed_dictionaries(
    {"version": st.just(1)},
    optional={
        "$schema": st.just("x"),
        "hooks": st.dictionaries(
            st.sampled_from([*EVENTS, "afterFileEdit", "preCompact"]), ENTRIES, min_size=1
        ),
    },
)


@given(USERS)
def test_what_is_put_in_comes_out_and_leaves_all_else_as_it_was(settings: dict[str, Any]) -> None:
    before = copy.deepcopy(settings)

    with_hook = installed(settings, OURS)

    assert settings == before
    assert installed(with_hook, OURS) == with_hook
    assert uninstalled(with_hook) == before
    for event, entries in settings.get("hooks", {}).items():
        assert with_hook["hooks"][event][: len(entries)] == entries


def test_an_older_hook_gets_the_new_command_and_is_there_once() -> None:
    old = {"command": "/gone/holdfast hook --from cursor --agent me", "timeout": 9}
    before = {"version": 1, "hooks": {"stop": [old, {"command": "mine"}, old], "preCompact": [old]}}

    hooks = installed(before, OURS)["hooks"]

    command = "'/opt/my tools/holdfast' hook --from cursor"
    assert hooks["stop"] == [{"command": command, "timeout": 9}, {"command": "mine"}]
    assert "preCompact" not in hooks
    assert set(hooks) == set(EVENTS)


@pytest.mark.parametrize("scope", SETTINGS.scopes)
def test_a_file_is_made_and_goes_with_the_hook(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: Any
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    file = SETTINGS.file(scope, tmp_path / "project")
    where = tmp_path / ("home" if scope == "user" else "project")
    assert file == where / ".cursor" / "hooks.json"

    assert SETTINGS.install(file, OURS)
    assert not SETTINGS.install(file, OURS)
    assert json.loads(file.read_text())["version"] == 1
    assert SETTINGS.installed(file) == OURS
    assert bool(SETTINGS.advice(file, tmp_path / "project")) is (scope == "project")
    assert SETTINGS.uninstall(file)
    assert not SETTINGS.uninstall(file)
    assert not file.exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"version": 2, "hooks": {}}', '{"hooks": {"stop": {}}}', "{} // mine"]
)
def test_what_is_not_understood_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "hooks.json"
    file.write_text(text)

    with pytest.raises(CodingAgentError, match="nothing was changed"):
        SETTINGS.install(file, OURS)

    assert file.read_text() == text
