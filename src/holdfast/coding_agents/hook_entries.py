"""The hook among the entries of a program's settings, as Claude Code, Codex and Gemini have them:

    {"hooks": {EVENT: [{"matcher": "*", "hooks": [{"type": "command", "command": …}]}]}}

Pure: what others wrote stays, in its order. What is ours is known by its command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any

Settings = dict[str, Any]
Events = Mapping[str, str | None]
"""The events that are wanted, each with the matcher of its entry, if it has one."""


def is_as_known(settings: Any) -> bool:
    """Return whether settings have hooks of this shape, or none."""
    hooks = settings.get("hooks", {}) if isinstance(settings, dict) else None
    return isinstance(hooks, dict) and all(isinstance(each, list) for each in hooks.values())


def installed(
    settings: Settings, events: Events, command: Sequence[str], program: str, **more: Any
) -> Settings:
    """Return settings with the hook at these events; ``more`` stands beside a new command.

    A hook of ours that is there gets this command in its place; where it is more than once, or at
    an event that is not wanted any more, it goes.
    """
    hooks = dict(settings.get("hooks", {}))
    for event, entries in list(hooks.items()):
        if event not in events and any(_own(entries, program)):
            hooks[event] = _without(entries, program)
            if not hooks[event]:
                del hooks[event]
    for event, matcher in events.items():
        entries = _replaced(hooks.get(event, []), shlex.join(command), program)
        if not any(_own(entries, program)):
            entry: Settings = {
                "hooks": [{"type": "command", "command": shlex.join(command), **more}]
            }
            entries = [*entries, entry if matcher is None else {"matcher": matcher, **entry}]
        hooks[event] = entries
    return {**settings, "hooks": hooks}


def uninstalled(settings: Settings, program: str) -> Settings:
    """Return settings without the hook, and without lists and objects that held nothing else."""
    hooks: Settings = {}
    for event, entries in settings.get("hooks", {}).items():
        kept = _without(entries, program)
        if kept or not entries:
            hooks[event] = kept
    if hooks == settings.get("hooks", {}):
        return settings
    if hooks:
        return {**settings, "hooks": hooks}
    return {name: value for name, value in settings.items() if name != "hooks"}


def found(settings: Settings, program: str) -> dict[str, list[str]]:
    """Return the commands of ours that are there, by event."""
    by_event = {
        event: next(_own(entries, program), None)
        for event, entries in settings.get("hooks", {}).items()
    }
    return {event: command for event, command in by_event.items() if command is not None}


def command_of_ours(text: Any, program: str) -> list[str] | None:
    """Return the words of a command that is the hook of a program; None if it is another.

    >>> from holdfast.coding_agents.hook_entries import command_of_ours
    >>> command_of_ours("/opt/bin/holdfast hook --from codex", "codex")
    ['/opt/bin/holdfast', 'hook', '--from', 'codex']
    >>> command_of_ours("holdfast snapshot", "codex")
    """
    if not isinstance(text, str):
        return None
    try:
        words = shlex.split(text)
    except ValueError:  # a quotation that has no end
        return None
    rest = _after_holdfast(words)
    if rest[:1] != ["hook"] or (rest[1:2] and not rest[1].startswith("-")):
        return None
    # The first hooks did not say whose they are.
    return words if (option(rest, "--from") or "claude-code") == program else None


def option(words: Sequence[str], name: str) -> str | None:
    """Return the value of an option among the words of a command."""
    for at, word in enumerate(words):
        if word == name and at + 1 < len(words):
            return words[at + 1]
        if word.startswith(f"{name}="):
            return word.partition("=")[2]
    return None


def _after_holdfast(words: Sequence[str]) -> list[str]:
    if words and PurePath(words[0]).name == "holdfast":
        return list(words[1:])
    is_python = bool(words) and PurePath(words[0]).name.startswith("python")
    for start in (["-m", "holdfast"], ["-P", "-m", "holdfast"]):
        if is_python and list(words[1 : len(start) + 1]) == start:
            return list(words[len(start) + 1 :])
    return []


def _hooks_of(entry: Any) -> list[Any]:
    hooks = entry.get("hooks") if isinstance(entry, dict) else None
    return hooks if isinstance(hooks, list) else []


def _command(hook: Any, program: str) -> list[str] | None:
    return command_of_ours(hook.get("command"), program) if isinstance(hook, dict) else None


def _own(entries: Sequence[Any], program: str) -> Iterator[list[str]]:
    for entry in entries if isinstance(entries, list) else ():
        for hook in _hooks_of(entry):
            command = _command(hook, program)
            if command is not None:
                yield command


def _replaced(entries: list[Any], command: str, program: str) -> list[Any]:
    """Return entries in which the first hook of ours has this command, and there is no other."""
    is_there = False
    changed = []
    for entry in entries:
        hooks = []
        for hook in _hooks_of(entry):
            if _command(hook, program) is None:
                hooks.append(hook)
            elif not is_there:
                is_there = True
                hooks.append({**hook, "command": command})
        if hooks or not _hooks_of(entry):
            changed.append({**entry, "hooks": hooks} if hooks != _hooks_of(entry) else entry)
    return changed


def _without(entries: list[Any], program: str) -> list[Any]:
    kept = []
    for entry in entries:
        before = _hooks_of(entry)
        after = [hook for hook in before if _command(hook, program) is None]
        if after == before:
            kept.append(entry)
        elif after:
            kept.append({**entry, "hooks": after})
    return kept
