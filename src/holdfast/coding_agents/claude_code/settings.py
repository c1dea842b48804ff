"""The hook in the settings of Claude Code."""

from __future__ import annotations

from pathlib import Path

from holdfast.coding_agents.claude_code.places import of_user
from holdfast.coding_agents.json_settings import JsonHooks
from holdfast.coding_agents.settings import Scope
from holdfast.errors import CodingAgentError

EVENTS = {
    "SessionStart": None,
    "UserPromptSubmit": None,
    "PostToolUse": "*",
    "PostToolUseFailure": "*",
    "Stop": None,
    "StopFailure": None,
    "SubagentStop": None,
}
"""Before anything is done, after everything that was or went wrong, and at the end."""


class ClaudeCodeSettings(JsonHooks):
    """The settings of a project, of a project for oneself, and of a user for all projects."""

    scopes: tuple[Scope, ...] = ("project", "local", "user")

    def __init__(self) -> None:
        super().__init__("claude-code", "Claude Code", EVENTS)

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the file that says which hooks there are."""
        if scope == "user":
            return of_user() / "settings.json"
        name = "settings.json" if scope == "project" else "settings.local.json"
        return folder / ".claude" / name

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do."""
        return [
            f"{name} says disableAllHooks: Claude Code runs no hook until that is false"
            for name in self._files_that_disable(file, folder)
        ]

    def _files_that_disable(self, file: Path, folder: Path) -> list[Path]:
        places = {file, *(self.file(scope, folder) for scope in self.scopes)}
        return [place for place in sorted(places) if self._disables(place)]

    def _disables(self, file: Path) -> bool:
        try:
            return self._read(file)[0].get("disableAllHooks") is True
        except CodingAgentError:  # which is said where the hook is looked for
            return False


SETTINGS = ClaudeCodeSettings()
