"""The hook in the settings of Gemini CLI."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from holdfast.coding_agents.gemini_cli.settings import EVENTS, SETTINGS, is_trusted
from holdfast.errors import CodingAgentError

OURS = ["/opt/my tools/holdfast", "hook", "--from", "gemini-cli"]
USERS: dict[str, Any] = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "hooks": {
        "AfterTool": [{"matcher": "write_.*", "hooks": [{"type": "command", "command": "x"}]}]
    },
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
    for name in ("GEMINI_CLI_TRUST_WORKSPACE", "GEMINI_CLI_TRUSTED_FOLDERS_PATH"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "home" / ".gemini").mkdir(parents=True)
    return tmp_path / "home" / ".gemini"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def test_a_project_and_a_user_have_their_own_settings(folder: Path, home: Path) -> None:
    assert SETTINGS.scopes == ("project", "user")
    assert SETTINGS.file("project", folder) == folder / ".gemini" / "settings.json"
    assert SETTINGS.file("user", folder) == home / "settings.json"


def test_the_hook_is_run_at_prompts_after_calls_and_at_the_end(folder: Path) -> None:
    file = SETTINGS.file("project", folder)

    assert SETTINGS.install(file, OURS)

    hooks = json.loads(file.read_text())["hooks"]
    assert set(hooks) == set(EVENTS) >= {"BeforeAgent", "AfterTool", "AfterAgent"}
    assert hooks["AfterTool"] == [
        {
            "matcher": "*",
            "hooks": [
                {
                    "type": "command",
                    "command": shlex.join(OURS),
                    "name": "holdfast",
                    "timeout": 60_000,  # milliseconds
                }
            ],
        }
    ]
    assert SETTINGS.installed(file) == OURS
    assert not SETTINGS.install(file, OURS)


@pytest.mark.parametrize("style", [{"indent": 4}, {"separators": (",", ":")}])
def test_what_is_the_users_comes_back_byte_for_byte(folder: Path, style: dict[str, Any]) -> None:
    file = SETTINGS.file("project", folder)
    file.parent.mkdir()
    file.write_text(json.dumps(USERS, **style))
    before = file.read_bytes()

    SETTINGS.install(file, OURS)
    there = json.loads(file.read_text())
    assert there["security"] == USERS["security"]
    assert there["hooks"]["AfterTool"][0] == USERS["hooks"]["AfterTool"][0]
    SETTINGS.uninstall(file)

    assert file.read_bytes() == before


def test_comments_are_never_lost(folder: Path) -> None:
    file = SETTINGS.file("project", folder)
    file.parent.mkdir()
    file.write_text('{\n  // mine\n  "theme": "http://x", /* and\n  this */ "a": "\\"//"\n}\n')
    before = file.read_bytes()

    with pytest.raises(CodingAgentError, match="has comments, which would be lost"):
        SETTINGS.install(file, OURS)

    assert file.read_bytes() == before


def test_a_hook_that_was_put_in_by_hand_is_seen_beside_comments(folder: Path, home: Path) -> None:
    file = SETTINGS.file("project", folder)
    SETTINGS.install(file, OURS)
    file.write_text("// mine\n" + file.read_text())
    (home / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}} // me')

    assert SETTINGS.installed(file) == OURS
    assert SETTINGS.advice(file, folder) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"hooks": []}', '{"hooks": {"AfterTool": {}}}'])
def test_what_is_not_understood_is_refused(folder: Path, text: str) -> None:
    file = SETTINGS.file("project", folder)
    file.parent.mkdir()
    file.write_text(text)

    with pytest.raises(CodingAgentError, match="nothing was changed"):
        SETTINGS.install(file, OURS)

    assert file.read_text() == text


def test_a_file_that_was_made_for_the_hook_goes_with_it(folder: Path) -> None:
    file = SETTINGS.file("project", folder)
    SETTINGS.install(file, OURS)
    SETTINGS.uninstall(file)
    assert not file.exists()


class TestAdvice:
    def advice(self, folder: Path) -> str:
        return " ".join(SETTINGS.advice(SETTINGS.file("project", folder), folder))

    def test_a_folder_that_is_not_trusted_yet_has_to_be(self, folder: Path) -> None:
        assert "trusted folders only" in self.advice(folder)
        assert "--skip-trust" in self.advice(folder)

    @pytest.mark.parametrize(
        ("rules", "says"),
        [
            ({"HERE": "TRUST_FOLDER"}, True),
            ({"HERE/..": "TRUST_FOLDER"}, True),
            ({"HERE": "TRUST_PARENT"}, True),
            ({"HERE/below": "TRUST_PARENT"}, True),
            ({"HERE/..": "TRUST_FOLDER", "HERE": "DO_NOT_TRUST"}, False),
            ({"/elsewhere": "TRUST_FOLDER"}, False),
            ({"HERE-beside": "TRUST_FOLDER"}, False),
            ({"HERE": 5, "\0": "TRUST_FOLDER", "": "TRUST_FOLDER"}, False),
            ([], False),
        ],
    )
    def test_the_longest_path_that_fits_says_whether_a_folder_is_trusted(
        self, folder: Path, home: Path, rules: Any, says: bool
    ) -> None:
        file = home / "trustedFolders.json"
        file.write_text(json.dumps(rules).replace("HERE", str(folder)))

        assert is_trusted(file, folder) is says
        assert (self.advice(folder) == "") is says

    def test_nothing_is_to_be_done_where_trust_is_given_or_off(
        self, folder: Path, home: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        (home / "settings.json").write_text('{"security": {"folderTrust": {"enabled": false}}}')
        assert self.advice(folder) == ""
        (home / "settings.json").unlink()
        monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
        assert self.advice(folder) == ""

    @pytest.mark.parametrize(
        "given", [{"enabled": False}, {"disabled": ["other", "holdfast"]}], ids=["all", "ours"]
    )
    def test_hooks_that_are_switched_off_are_told(
        self, folder: Path, home: Path, given: dict[str, Any]
    ) -> None:
        (home / "settings.json").write_text(json.dumps({"hooksConfig": given}))
        assert f"{home / 'settings.json'} says hooksConfig." in self.advice(folder)
