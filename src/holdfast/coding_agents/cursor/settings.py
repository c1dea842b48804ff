"""The hook in the settings of Cursor:

    {"version": 1, "hooks": {EVENT: [{"command": …}]}}

After a call Cursor tells the call itself, and, for a command, an edit or a call over MCP, once more
with less (``afterShellExecution``…): the hook is told the first, so that each call is kept once.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.coding_agents import json_file
from holdfast.coding_agents.hook_entries import command_of_ours, is_as_known
from holdfast.coding_agents.json_file import JsonStyle
from holdfast.coding_agents.settings import Scope
from holdfast.errors import CodingAgentError

EVENTS = ("sessionStart", "beforeSubmitPrompt", "postToolUse", "postToolUseFailure", "stop")
"""Before anything is done, after everything that was or went wrong, and at the end."""
_VERSION = 1

Settings = dict[str, Any]


class CursorSettings:
    """The hooks of a project, and of a user for all projects."""

    scopes: tuple[Scope, ...] = ("project", "user")

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the file that says which hooks there are."""
        return (Path.home() if scope == "user" else folder) / ".cursor" / "hooks.json"

    def install(self, file: Path, command: Sequence[str]) -> bool:
        """Put the hook in, or bring it up to date; return whether that changed anything."""
        before, style = _read(file)
        after = installed(before, command)
        if after == before:
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write(file, after, style)
        return True

    def uninstall(self, file: Path) -> bool:
        """Take the hook out; a file that was made for it goes."""
        before, style = _read(file)
        after = uninstalled(before)
        if after == before:
            return False
        if after in ({}, {"version": _VERSION}) and style == JsonStyle() and not file.is_symlink():
            file.unlink()
        else:
            json_file.write(file, after, style)
        return True

    def installed(self, file: Path) -> list[str] | None:
        """Return the command of the hook that is there; None if there is none."""
        hooks = _read(file)[0].get("hooks", {})
        commands = (_ours(each) for entries in hooks.values() for each in entries)
        return next((each for each in commands if each is not None), None)

    def advice(self, file: Path, folder: Path) -> list[str]:
        """Return what the user still has to do so that the program runs the hook."""
        if file != self.file("project", folder):
            return []
        return ["Cursor runs hooks of a project in trusted workspaces only: trust it when asked"]


def installed(settings: Settings, command: Sequence[str]) -> Settings:
    """Return settings with the hook, once at each event; what others wrote stays in its order."""
    kept = {
        event: _once(entries, shlex.join(command) if event in EVENTS else None)
        for event, entries in settings.get("hooks", {}).items()
    }
    hooks = {
        event: entries for event, entries in kept.items() if entries or not settings["hooks"][event]
    }
    for event in EVENTS:
        if not any(map(_ours, hooks.get(event, []))):
            hooks[event] = [*hooks.get(event, []), {"command": shlex.join(command)}]
    return {"version": _VERSION, **settings, "hooks": hooks}


def uninstalled(settings: Settings) -> Settings:
    """Return settings without the hook, and without lists and objects that held nothing else."""
    before = settings.get("hooks", {})
    kept = {event: _once(entries, None) for event, entries in before.items()}
    hooks = {event: entries for event, entries in kept.items() if entries or not before[event]}
    if hooks == before:
        return settings
    rest = {name: value for name, value in settings.items() if name != "hooks"}
    return {**settings, "hooks": hooks} if hooks else rest


def _once(entries: list[Any], command: str | None) -> list[Any]:
    """Return entries of which the first that is ours has this command, and others of ours go."""
    changed = []
    for entry in entries:
        if _ours(entry) is None:
            changed.append(entry)
        elif command is not None:
            changed.append({**entry, "command": command})
            command = None
    return changed


def _ours(entry: Any) -> list[str] | None:
    return command_of_ours(entry.get("command"), "cursor") if isinstance(entry, dict) else None


def _read(file: Path) -> tuple[Settings, JsonStyle]:
    read = json_file.read(file)
    if read is None:
        return {}, JsonStyle()
    settings, style = read
    if not is_as_known(settings) or settings.get("version", _VERSION) != _VERSION:
        raise CodingAgentError(f"{file} is not as Cursor has it: nothing was changed")
    return settings, style


SETTINGS = CursorSettings()
