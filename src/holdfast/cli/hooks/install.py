"""``holdfast hook install`` and ``uninstall``: the hook in the settings of Claude Code.

The settings are edited as text: what others wrote there keeps every byte, and what was added is
known by its command and removed exactly.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

from holdfast.cli.access.opening import open_location
from holdfast.cli.exits import OK, CommandError, UsageError
from holdfast.cli.hooks import json_edit
from holdfast.cli.output.terminal import Terminal
from holdfast.stores.discovery import in_folder
from holdfast.system.atomic_files import write_file
from holdfast.system.terminal_text import clean

EVENTS = ("UserPromptSubmit", "PostToolUse", "Stop")
"""Before anything is done, after everything that was, and at the end."""
_WITH_MATCHER = ("PostToolUse",)
COMMAND = "holdfast hook --from claude-code"


def change(options: Namespace, terminal: Terminal) -> int:
    """Install the hook in a project, or remove it."""
    folder = Path(options.directory or Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is no directory")
    name = "settings.local.json" if options.local else "settings.json"
    file = folder / ".claude" / name
    before = _read(file)
    if options.action == "install":
        with open_location(in_folder(folder), create=True):
            pass  # so that the first event finds its store
        after: str | None = installed(before or "", _command(options))
    else:
        after = None if before is None else uninstalled(before)
    changed = after != before
    if changed:
        _write(file, after)
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


def _read(file: Path) -> str | None:
    try:
        text = file.read_bytes().decode()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file} cannot be read: {error}") from error
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise CommandError(f"{file} is not JSON ({error}): mend it first") from error
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    if not isinstance(hooks, dict) or not all(isinstance(each, list) for each in hooks.values()):
        raise CommandError(f"{file} is not as Claude Code has it: nothing was changed")
    return text


def _write(file: Path, text: str | None) -> None:
    """Replace the settings as a whole, or remove them where nothing else was in them."""
    if text is None:
        file.unlink()
        return
    file.parent.mkdir(exist_ok=True)
    write_file(os.fspath(file), text.encode(), is_users=True)


def installed(text: str, command: str = COMMAND) -> str:
    """Settings with the hook; as they are if it is there."""
    if not text.strip():
        return json.dumps({"hooks": {e: [_entry(e, command)] for e in EVENTS}}, indent=2) + "\n"
    for event in EVENTS:
        root = json_edit.parse(text)
        hooks = root.get("hooks")
        if hooks is None:
            all_ = {each: [_entry(each, command)] for each in EVENTS}
            return json_edit.append(text, root, all_, "hooks")
        entries = hooks.get(event)
        if entries is None:
            text = json_edit.append(text, hooks, [_entry(event, command)], event)
        elif not any(_is_ours(text, each.value) for each in entries.members):
            text = json_edit.append(text, entries, _entry(event, command))
    return text


def uninstalled(text: str) -> str | None:
    """Settings without the hook; None if there was nothing else, so that the file can go."""
    commands = set(_commands(text))
    if len(commands) == 1 and text == installed("", *commands):
        return None
    while (found := _first_of_ours(text)) is not None:
        text = json_edit.remove_at(text, found)
    return text


def _first_of_ours(text: str) -> tuple[str, str, int] | None:
    hooks = json_edit.parse(text).get("hooks") if text.strip() else None
    for event in EVENTS:
        entries = None if hooks is None else hooks.get(event)
        for index, each in enumerate([] if entries is None else entries.members):
            if _is_ours(text, each.value):
                return "hooks", event, index
    return None


def _entry(event: str, command: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"hooks": [{"type": "command", "command": command}]}
    return {"matcher": "*", **entry} if event in _WITH_MATCHER else entry


def _commands(text: str) -> list[str]:
    hooks = json.loads(text).get("hooks", {}) if text.strip() else {}
    entries = [each for entries in hooks.values() for each in entries if isinstance(each, dict)]
    called = [each for entry in entries for each in entry.get("hooks", [])]
    commands = [str(each.get("command", "")) for each in called if isinstance(each, dict)]
    return [command for command in commands if command.startswith(COMMAND)]


def _is_ours(text: str, node: json_edit.Node) -> bool:
    entry = json.loads(text[node.start : node.end])
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return isinstance(hooks, list) and [
        str(each.get("command", "")).startswith(COMMAND) for each in hooks if isinstance(each, dict)
    ] == [True]
