"""The hook in the settings of Claude Code: pure parts, and its files."""

import copy
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.claude_code.settings import EVENTS, SETTINGS
from holdfast.coding_agents.hook_entries import command_of_ours, found, installed, uninstalled
from holdfast.errors import CodingAgentError

OURS = ["/opt/my tools/holdfast", "hook", "--from", "claude-code"]


def put(settings: dict[str, Any], command: list[str] = OURS) -> dict[str, Any]:
    return installed(settings, EVENTS, command, "claude-code")


def take(settings: dict[str, Any]) -> dict[str, Any]:
    return uninstalled(settings, "claude-code")


def hook(command: str, **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


HOOKS = st.fixed_dictionaries(
    {"type": st.just("command"), "command": st.sampled_from(["say done", "holdfast gc", "x 'y"])}
)
ENTRIES = st.lists(
    st.fixed_dictionaries(
        {"hooks": st.lists(HOOKS, min_size=1, max_size=3)},
        optional={"matcher": st.sampled_from(["*", "Edit|Write", ""])},
    ),
    min_size=1,
    max_size=3,
)
USERS = st.fixed_dictionaries(
    {},
    optional={
        "model": st.just("opus"),
        "hooks": st.dictionaries(
            st.sampled_from([*EVENTS, "PreToolUse", "Notification"]), ENTRIES, min_size=1
        ),
    },
)


@given(USERS)
def test_what_is_put_in_comes_out_and_leaves_all_else_as_it_was(settings: dict[str, Any]) -> None:
    before = copy.deepcopy(settings)

    with_hook = put(settings)

    assert settings == before
    assert set(found(with_hook, "claude-code")) == set(EVENTS)
    assert put(with_hook) == with_hook
    assert take(with_hook) == before


@given(USERS)
def test_hooks_of_others_are_where_they_were_among_ours(settings: dict[str, Any]) -> None:
    hooks = put(settings)["hooks"]

    for event, entries in settings.get("hooks", {}).items():
        assert hooks[event][: len(entries)] == entries


@pytest.mark.parametrize(
    "old",
    [
        "holdfast hook",
        "holdfast hook --from claude-code",
        "/gone/bin/holdfast hook --from=claude-code --local",
        "'/my env/bin/python3.11' -P -m holdfast hook --from claude-code",
        "python -m holdfast hook --from claude-code",
    ],
)
def test_an_older_hook_is_brought_up_to_date_in_its_place(old: str) -> None:
    mine = {"hooks": [hook("say before"), hook(old, timeout=5), hook("say after")]}
    settings = {"hooks": {"Stop": [mine, {"hooks": [hook(old)]}], "PreToolUse": [mine]}}

    hooks = put(settings)["hooks"]

    ours = shlex.join(OURS)
    assert hooks["Stop"] == [
        {"hooks": [hook("say before"), hook(ours, timeout=5), hook("say after")]}
    ]
    assert hooks["PreToolUse"] == [{"hooks": [hook("say before"), hook("say after")]}]
    assert hooks["PostToolUseFailure"] == [{"matcher": "*", "hooks": [hook(ours)]}]


@pytest.mark.parametrize(
    "other",
    [
        *("holdfast", "holdfast snapshot", "holdfast hook install claude-code", "", "holdfast 'x"),
        *(
            "holdfast hook --from codex",
            "my-holdfast hook",
            "echo holdfast hook",
            "python -m",
            None,
        ),
        *("python -m http.server", "python hook.py -m holdfast hook", 5, ["holdfast", "hook"]),
    ],
)
def test_commands_that_are_not_ours_are_known_as_such(other: Any) -> None:
    assert command_of_ours(other, "claude-code") is None


@pytest.mark.parametrize(
    "entries",
    [
        [None, 1, "x", [], {}, {"hooks": None}, {"hooks": {}}, {"hooks": [None, 1, []]}],
        [{"hooks": [{"command": None}, {"command": ["holdfast", "hook"]}]}],
    ],
)
def test_entries_that_nobody_knows_stay(entries: list[Any]) -> None:
    assert put({"hooks": {"Stop": entries}})["hooks"]["Stop"][: len(entries)] == entries
    assert take(put({"hooks": {"Stop": entries}})) == {"hooks": {"Stop": entries}}


def test_files_are_where_claude_code_looks_for_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    site = tmp_path / "site"

    assert [SETTINGS.file(scope, site) for scope in SETTINGS.scopes] == [
        site / ".claude" / "settings.json",
        site / ".claude" / "settings.local.json",
        tmp_path / ".claude" / "settings.json",
    ]
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "mine"))
    assert SETTINGS.file("user", site) == tmp_path / "mine" / "settings.json"


def test_a_hook_that_lacks_events_says_which(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [hook("holdfast hook")]}]}}))

    assert SETTINGS.installed(file) == ["holdfast", "hook"]
    assert SETTINGS.missing(file) == [event for event in EVENTS if event != "Stop"]
    assert SETTINGS.install(file, OURS)
    assert SETTINGS.missing(file) == []


def test_settings_that_run_no_hooks_are_told_of(tmp_path: Path) -> None:
    file = tmp_path / ".claude" / "settings.json"
    SETTINGS.install(file, OURS)
    assert SETTINGS.advice(file, tmp_path) == []

    local = file.with_name("settings.local.json")
    local.write_text('{"disableAllHooks": true}')

    assert str(local) in SETTINGS.advice(file, tmp_path)[0]


def test_settings_that_are_not_as_known_are_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text('{"hooks": {"Stop": {}}}')

    with pytest.raises(CodingAgentError, match="nothing was changed"):
        SETTINGS.install(file, OURS)
    assert file.read_text() == '{"hooks": {"Stop": {}}}'
