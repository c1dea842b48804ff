"""``holdfast hook install`` and ``uninstall``: the hook in the settings of Claude Code.

What others wrote there stays, in its order and style; what was added is known by its command.
"""

from __future__ import annotations

import shlex
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from holdfast.cli.access.opening import open_location
from holdfast.cli.exits import OK, CommandError, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.coding_agents import json_file
from holdfast.coding_agents.json_file import JsonStyle
from holdfast.stores.discovery import in_folder
from holdfast.system.terminal_text import clean

EVENTS = ("UserPromptSubmit", "PostToolUse", "Stop")
"""Before anything is done, after everything that was, and at the end."""
_WITH_MATCHER = ("PostToolUse",)
COMMAND = "holdfast hook --from claude-code"

Settings = dict[str, Any]


def change(options: Namespace, terminal: Terminal) -> int:
    """Install the hook in a project, or remove it."""
    folder = Path(options.directory or Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is no directory")
    name = "settings.local.json" if options.local else "settings.json"
    file = folder / ".claude" / name
    before, style = _read(file)
    if options.action == "install":
        with open_location(in_folder(folder), create=True):
            pass  # so that the first event finds its store
        after = installed(before or {}, _command(options))
    else:
        after = uninstalled(before or {})
    changed = after != (before or {})
    if changed and not after and style == JsonStyle() and not file.is_symlink():
        file.unlink()  # it was made for the hook
    elif changed:
        json_file.write(file, after, style)
    if terminal.json:
        terminal.emit({"action": options.action, "path": str(file), "changed": changed})
    elif not changed:
        there = "is there already" if options.action == "install" else "is not there"
        terminal.line(f"the hook {there}: {clean(str(file))}")
    elif options.action == "install":
        terminal.line(
            f"added to {clean(str(file))}: every step of Claude Code is recorded from now"
        )
        terminal.line(
            "holdfast log shows them; holdfast hook uninstall claude-code removes the hook"
        )
        if shutil.which("holdfast") is None:
            terminal.hint("holdfast is not on the PATH, where Claude Code looks for it")
    else:
        terminal.line(f"removed from {clean(str(file))}")
    return OK


def _command(options: Namespace) -> str:
    command = COMMAND
    if options.store:
        command += f" --store {shlex.quote(options.store)}"
    if options.agent:
        command += f" --agent {shlex.quote(options.agent)}"
    return command


def _read(file: Path) -> tuple[Settings | None, JsonStyle]:
    """Return the settings in a file, if it is there, and how it is written."""
    read = json_file.read(file)
    if read is None:
        return None, JsonStyle()
    settings, style = read
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise CommandError(f"{file} is not as Claude Code has it: nothing was changed")
    return settings, style


def installed(settings: Settings, command: str = COMMAND) -> Settings:
    """Return settings with the hook; as they are where it is there."""
    hooks = dict(settings.get("hooks", {}))
    for event in EVENTS:
        entries = hooks.get(event, [])
        if not any(map(_is_ours, entries)):
            hooks[event] = [*entries, _entry(event, command)]
    return {**settings, "hooks": hooks}


def uninstalled(settings: Settings) -> Settings:
    """Return settings without the hook, and without lists and objects that held nothing else."""
    hooks: Settings = {}
    for event, entries in settings.get("hooks", {}).items():
        kept = [each for each in entries if not _is_ours(each)]
        if kept or not entries:
            hooks[event] = kept
    if hooks == settings.get("hooks"):
        return settings
    rest = {name: value for name, value in settings.items() if name != "hooks" or hooks}
    return {**rest, "hooks": hooks} if hooks else rest


def _entry(event: str, command: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"hooks": [{"type": "command", "command": command}]}
    return {"matcher": "*", **entry} if event in _WITH_MATCHER else entry


def _is_ours(entry: Any) -> bool:
    """Return whether an entry of an event calls this hook, and nothing else."""
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return isinstance(hooks, list) and [
        str(each.get("command", "")).startswith(COMMAND) for each in hooks if isinstance(each, dict)
    ] == [True]
