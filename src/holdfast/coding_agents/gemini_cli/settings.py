"""The hook in the settings of Gemini CLI."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.coding_agents import hook_entries, json_file
from holdfast.coding_agents.gemini_cli.projects import home
from holdfast.coding_agents.json_file import JsonStyle
from holdfast.coding_agents.json_settings import JsonHooks
from holdfast.coding_agents.settings import Scope
from holdfast.errors import CodingAgentError

EVENTS = {"SessionStart": None, "BeforeAgent": None, "AfterTool": "*", "AfterAgent": None}
"""Before anything is done, after everything that was, and at the end."""
_TIMEOUT = 60_000
"""Milliseconds, as all times in these settings."""


class GeminiCliSettings(JsonHooks):
    """The settings of a project, and of a user for all projects."""

    scopes: tuple[Scope, ...] = ("project", "user")

    def __init__(self) -> None:
        super().__init__("gemini-cli", "Gemini CLI", EVENTS, name="holdfast", timeout=_TIMEOUT)

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the file that says which hooks there are."""
        return (home() if scope == "user" else folder / ".gemini") / "settings.json"

    def found(self, file: Path) -> dict[str, list[str]]:
        """Return the commands of the hook that are there, by event, beside comments too."""
        settings = json_file.read_commented(file)
        if not hook_entries.is_as_known(settings):
            return super().found(file)
        return hook_entries.found(settings, "gemini-cli")

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do so that the program runs the hook."""
        places = {file, *(self.file(scope, folder) for scope in self.scopes)}
        said = [
            f"{place} says hooksConfig.{what}: Gemini CLI does not run the hook until that is gone"
            for place in sorted(places)
            for what in _disabled(json_file.read_commented(place))
        ]
        if not self._is_trusted(folder):
            said.append(
                f"Gemini CLI runs hooks in trusted folders only: start gemini in {folder} and "
                "choose to trust it, or start it with --skip-trust"
            )
        return said

    def _is_trusted(self, folder: Path) -> bool:
        if os.environ.get("GEMINI_CLI_TRUST_WORKSPACE") == "true":
            return True
        users = json_file.read_commented(self.file("user", folder))
        if _at(users, "security", "folderTrust", "enabled") is False:
            return True
        given = os.environ.get("GEMINI_CLI_TRUSTED_FOLDERS_PATH")
        return is_trusted(Path(given) if given else home() / "trustedFolders.json", folder)

    def _read(self, file: Path) -> tuple[dict[str, Any], JsonStyle]:
        try:
            return super()._read(file)
        except CodingAgentError as error:
            if not json_file.has_comments(file):
                raise
            raise CodingAgentError(
                f"{file} has comments, which would be lost: nothing was changed. Take them out, or "
                "install the hook for yourself in all projects (--user)"
            ) from error


def _at(settings: Any, *names: str) -> Any:
    for name in names:
        settings = settings.get(name) if isinstance(settings, Mapping) else None
    return settings


def _disabled(settings: Any) -> list[str]:
    named = _at(settings, "hooksConfig", "disabled")
    is_named = isinstance(named, list) and "holdfast" in named
    is_off = _at(settings, "hooksConfig", "enabled") is False
    return ["enabled = false"] * is_off + ["disabled"] * is_named


def is_trusted(file: Path, folder: Path) -> bool:
    """Return whether a list says that a folder is trusted: of what fits, the longest path does."""
    rules = json_file.read_commented(file)
    real = Path(os.path.realpath(folder))
    fitting = [
        (len(os.path.normpath(path)), level)
        for path, level in (rules.items() if isinstance(rules, dict) else ())
        if isinstance(level, str) and os.path.isabs(path) and "\0" not in path
        if real.is_relative_to(
            os.path.realpath(os.path.dirname(path) if level == "TRUST_PARENT" else path)
        )
    ]
    return max(fitting, default=(0, ""))[1] in ("TRUST_FOLDER", "TRUST_PARENT")


SETTINGS = GeminiCliSettings()
