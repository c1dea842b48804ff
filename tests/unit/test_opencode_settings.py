"""The plugin for opencode: a file of ours that comes, is replaced and goes; others' stay."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.opencode import settings as module
from holdfast.coding_agents.opencode.settings import SETTINGS, plugin
from holdfast.errors import CodingAgentError

COMMAND = ["/opt/a b/hold'fast", "hook", "--from", "opencode"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the plugin of a project is."""
    return SETTINGS.file("project", tmp_path)


def test_it_is_where_opencode_looks_for_plugins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert SETTINGS.scopes == ("project", "user")
    assert SETTINGS.file("project", tmp_path) == tmp_path / ".opencode/plugins/holdfast.js"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    assert SETTINGS.file("user", tmp_path) == tmp_path / ".config/opencode/plugins/holdfast.js"
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    assert SETTINGS.file("user", tmp_path) == tmp_path / "c/opencode/plugins/holdfast.js"


def test_it_comes_once_and_goes(file: Path) -> None:
    assert SETTINGS.installed(file) is None
    assert SETTINGS.install(file, COMMAND)
    assert SETTINGS.installed(file) == COMMAND
    assert not SETTINGS.install(file, COMMAND)

    assert SETTINGS.uninstall(file)

    assert not file.parent.exists()
    assert not SETTINGS.uninstall(file)


def test_other_plugins_stay(file: Path) -> None:
    file.parent.mkdir(parents=True)
    other = file.with_name("other.js")
    other.write_text("export const Other = async () => ({})\n")

    SETTINGS.install(file, COMMAND)
    SETTINGS.uninstall(file)

    assert [each.name for each in file.parent.iterdir()] == ["other.js"]


def test_another_command_takes_the_place_of_the_one_before(file: Path) -> None:
    SETTINGS.install(file, COMMAND)

    assert SETTINGS.install(file, ["/new/holdfast"])

    assert SETTINGS.installed(file) == ["/new/holdfast"]


def test_one_of_another_version_is_replaced(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = plugin(COMMAND).partition("\n")[2] + "// as an older version had it\n"
    file.parent.mkdir(parents=True)
    file.write_text(f"// Holdfast's plugin for opencode, {module._digest(text)}\n{text}")
    assert SETTINGS.installed(file) == COMMAND

    assert SETTINGS.install(file, COMMAND)

    assert file.read_text() == plugin(COMMAND)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "export const Mine = async () => ({})\n",
        plugin(COMMAND) + "\n// mine\n",
        plugin(COMMAND).replace("PATIENCE = 10_000", "PATIENCE = 1"),
        plugin(COMMAND).partition("\n")[2],
        plugin(COMMAND).replace('["/opt', '[1, "/opt'),
        plugin(COMMAND).replace("const COMMAND = [", "const COMMAND = [[["),
        plugin([]),
        "// Holdfast's plugin for opencode, " + "0" * 64 + "\n",
    ],
)
def test_a_file_that_was_edited_or_is_another_s_is_refused_and_left(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True)
    file.write_text(text)

    assert SETTINGS.installed(file) is None
    for change in (lambda: SETTINGS.install(file, COMMAND), lambda: SETTINGS.uninstall(file)):
        with pytest.raises(CodingAgentError, match="nothing was changed"):
            change()
    assert file.read_text() == text


def test_what_is_no_text_or_no_file_is_refused(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(CodingAgentError, match="cannot be read"):
        SETTINGS.install(file, COMMAND)

    file.unlink()
    os.mkfifo(file)
    with pytest.raises(CodingAgentError, match="is no file"):
        SETTINGS.install(file, COMMAND)


@given(st.lists(st.text(), min_size=1, max_size=5))
def test_any_command_is_filled_in_as_it_is(command: list[str]) -> None:
    text = plugin(command)

    assert module._is_ours(text)
    assert module._command(text) == command
    line = next(each for each in text.split("\n") if each.startswith("const COMMAND = "))
    assert line.isascii()
    assert json.loads(line.removeprefix("const COMMAND = ")) == command


def test_it_is_one_file_that_needs_no_package_and_has_one_export() -> None:
    lines = plugin(COMMAND).split("\n")

    imports = [each for each in lines if each.startswith("import ")]
    assert imports
    assert all('from "node:' in each for each in imports)
    assert not [each for each in lines if "require(" in each or "import(" in each]
    assert sum(each.startswith("export ") for each in lines) == 1
    assert not [each for each in lines if "console." in each]


def test_advice_tells_of_the_package_that_opencode_fetches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: Path
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "c"))
    assert len(SETTINGS.advice(file, tmp_path)) == 2

    for folder in (tmp_path / "c" / "opencode", tmp_path / ".opencode"):
        (folder / "node_modules/@opencode-ai/plugin").mkdir(parents=True)

    assert len(SETTINGS.advice(file, tmp_path)) == 1
