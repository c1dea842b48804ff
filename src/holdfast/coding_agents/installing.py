"""Puts the hook into a program's settings, and takes it out; the same for every program."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.coding_agents import programs
from holdfast.coding_agents.hook_entries import option
from holdfast.coding_agents.settings import Scope, Settings
from holdfast.errors import CodingAgentError

INSTALLABLE = tuple(name for name in programs.NAMES if name != "generic")
_TEMPORARY = ("archive-v0", "environments-v2", "builds-v0")
"""How the directories are called in which ``uvx`` keeps an environment until it is cleaned up."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A file of a program's settings, and the hook in it, if it is there."""

    scope: Scope
    file: Path
    command: list[str] | None = None
    problem: str | None = None
    """Why the file cannot be read."""


def settings_of(name: str) -> Settings:
    """Return the settings of a program."""
    found = programs.settings(name)
    if found is None:
        raise CodingAgentError(
            f"the hook cannot be installed into {name}: its settings are unknown"
        )
    return found


def places(name: str, folder: Path) -> list[Place]:
    """Return the files where the hook of a program can be, for a project, each with what is there.

    >>> from pathlib import Path
    >>> from holdfast.coding_agents.installing import places
    >>> [place.scope for place in places("claude-code", Path("site"))]
    ['project', 'local', 'user']
    """
    settings = settings_of(name)
    return [_place(settings, scope, folder) for scope in settings.scopes]


def _place(settings: Settings, scope: Scope, folder: Path) -> Place:
    file = settings.file(scope, folder)
    try:
        return Place(scope=scope, file=file, command=settings.installed(file))
    except CodingAgentError as error:
        return Place(scope=scope, file=file, problem=str(error))


def hook_command(
    name: str, store: str | None = None, agent: str | None = None, before: Sequence[str] = ()
) -> list[str]:
    """Return the command that a program runs: found from anywhere, with any PATH.

    What the hook ``before`` was installed with stays, where nothing else is given.
    """
    store = store or option(before, "--store")
    agent = agent or option(before, "--agent")
    return [
        *_holdfast(),
        *("hook", "--from", name),
        *(("--store", store) if store else ()),
        *(("--agent", agent) if agent else ()),
    ]


def _holdfast() -> list[str]:
    script = Path(sys.executable).with_name("holdfast")
    if script.is_file() and os.access(script, os.X_OK):
        return [str(script)]
    # A directory that an agent works in may hold modules of the same names: -P leaves it out.
    return [sys.executable, "-P", "-m", "holdfast"]


def is_temporary(command: Sequence[str]) -> bool:
    """Return whether a command is in an environment that somebody will clean up."""
    return any(part in _TEMPORARY for part in Path(command[0]).parts)


def fault_of(command: Sequence[str]) -> str | None:
    """Return why the command of a hook cannot be run; None if it can.

    It is only looked at: what stands in the settings of a project may be anybody's.
    """
    found = shutil.which(command[0])
    if found is None:
        is_there = os.path.exists(command[0])
        return f"{command[0]} {'may not be run' if is_there else 'is not there'}"
    interpreter = _interpreter(found)
    if interpreter is not None and not os.path.exists(interpreter):
        return f"{command[0]} is run by {interpreter}, which is not there any more"
    return None


def _interpreter(file: str) -> str | None:
    """Return the program that runs a script, as its first line says."""
    try:
        with open(file, "rb") as script:
            first = script.readline(500)
    except OSError:
        return None
    words = first[2:].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else None


def in_use(folder: Path) -> Iterator[str]:
    """Yield the programs that seem to be used here: by their settings, or as commands."""
    for name in INSTALLABLE:
        settings = programs.settings(name)
        if settings is None:
            continue
        if shutil.which(programs.program(name).command) or any(
            _is_begun(settings.file(scope, folder), scope, folder) for scope in settings.scopes
        ):
            yield name


def _is_begun(file: Path, scope: Scope, folder: Path) -> bool:
    """Return whether the program has a directory of its own there."""
    if scope == "user":
        return file.parent.is_dir()
    try:
        first = file.relative_to(folder).parts[0]
    except ValueError:  # it lies elsewhere
        return file.exists()
    return (folder / first).exists()
