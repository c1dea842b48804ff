"""``holdfast hook install`` and ``uninstall``: the hook in the settings of a program."""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Sequence
from contextlib import chdir
from pathlib import Path

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import OK, USAGE, Refused, UsageError
from holdfast.cli.output.terminal import Terminal
from holdfast.coding_agents import programs
from holdfast.coding_agents.hook_standing import flag
from holdfast.coding_agents.installing import (
    INSTALLABLE,
    Place,
    hook_command,
    in_use,
    is_temporary,
    places,
    settings_of,
)
from holdfast.coding_agents.settings import Approving, Scope, Settings
from holdfast.errors import CodingAgentError
from holdfast.stores.discovery import VARIABLE
from holdfast.stores.shared.secrets import secrets_in
from holdfast.system.terminal_text import clean


def install(options: Namespace, terminal: Terminal) -> int:
    """Put the hook into the settings of a program, or bring it up to date."""
    folder = folder_of(options)
    if options.program is None:
        return _offer(folder, terminal)
    name, settings = options.program, settings_of(options.program)
    scope = _scope(options) or settings.scopes[0]
    _check_scope(name, scope, folder)
    if options.trust:
        _check_trust(name)
    there = places(name, folder)
    place = next(each for each in there if each.scope == scope)
    if place.problem is not None:
        raise CodingAgentError(place.problem)
    command = hook_command(name, options.store, options.agent, place.command or ())
    if scope == "project":
        _refuse_secrets(name, options.store, place.file)
    if scope != "user" and (options.store or place.command is None):
        with chdir(folder), open_location(location_of(options, create=True), create=True):
            pass  # so that the first event finds its store
    changed = settings.install(place.file, command)
    trusted = _approved(settings, place, folder) if options.trust else None
    advice = _advice(settings, place, folder) + _hints(name, place, command, folder)
    advice += _others(name, place, there)
    if terminal.json:
        terminal.emit(
            {
                "action": "install",
                "program": name,
                "scope": scope,
                "path": str(place.file),
                "changed": changed,
                "command": command,
                "trusted": trusted,
                "advice": advice,
            }
        )
        return OK
    _tell(name, place, changed, trusted, advice, terminal)
    return OK


def _tell(
    name: str,
    place: Place,
    changed: bool,
    trusted: list[str] | None,
    advice: Sequence[str],
    terminal: Terminal,
) -> None:
    title, file = programs.program(name).title, clean(str(place.file))
    if not changed:
        terminal.line(f"the hook is there already: {file}")
    elif place.command is not None:
        terminal.line(f"brought up to date: {file}")
    else:
        terminal.line(f"added to {file}: every step of {title} is recorded from now")
    if changed:
        remove = f"holdfast hook uninstall {name}{flag(place)}"
        terminal.line(f"holdfast rewind takes steps back; {remove} removes the hook")
    if trusted:
        terminal.line(f"approved in {title}: {', '.join(trusted)}")
    for each in advice:
        terminal.line(f"- {clean(each)}")


def uninstall(options: Namespace, terminal: Terminal) -> int:
    """Take the hook out of the settings of a program: those named, else all of this project."""
    folder = folder_of(options)
    if options.program is None:
        named = [name for name in INSTALLABLE if _is_installed(name, folder)]
        listed = "".join(f"\n  holdfast hook uninstall {name}" for name in named or INSTALLABLE)
        raise UsageError(f"say of which program:{listed}")
    name, settings = options.program, settings_of(options.program)
    wanted = _scope(options)
    if wanted is not None:
        _check_scope(name, wanted, folder)
    there = places(name, folder)
    meant = [each for each in there if each.scope == wanted]
    if wanted is None:
        meant = [each for each in there if each.scope != "user"] or there
    unread = [each.problem for each in meant if each.problem is not None]
    if unread:
        raise CodingAgentError(unread[0])
    removed = [each for each in meant if settings.uninstall(each.file)]
    left = [each for each in there if each.command and each not in meant]
    if terminal.json:
        terminal.emit(
            {
                "action": "uninstall",
                "program": name,
                "path": str((removed or meant)[0].file),
                "changed": bool(removed),
                "removed": [str(each.file) for each in removed],
                "left": [str(each.file) for each in left],
            }
        )
        return OK
    for each in removed:
        terminal.line(f"removed from {clean(str(each.file))}; what was recorded stays")
    if not removed:
        files = " or ".join(clean(str(each.file)) for each in meant)
        terminal.line(f"the hook is not there: {files}")
    for each in left:
        terminal.line(
            f"it is still in {clean(str(each.file))}: holdfast hook uninstall {name}{flag(each)}"
        )
    return OK


def folder_of(options: Namespace) -> Path:
    """Return the project that is meant."""
    folder = Path(options.directory or Path.cwd())
    if not folder.is_dir():
        raise UsageError(f"{folder} is no directory")
    return folder.absolute()


def _offer(folder: Path, terminal: Terminal) -> int:
    """Say for which programs the hook could be installed here."""
    used = list(in_use(folder))
    if terminal.json:
        terminal.emit({"action": "offer", "programs": used})
        return USAGE
    lines = ["used here, it seems:" if used else "say for which program:"]
    for name in used or INSTALLABLE:
        command = f"holdfast hook install {name}"
        lines.append(f"  {command:<36} {programs.program(name).title}")
    raise UsageError("\n".join(lines))


def _scope(options: Namespace) -> Scope | None:
    if options.user and options.local:
        raise UsageError("give --user or --local, not both")
    return "user" if options.user else "local" if options.local else None


def _check_scope(name: str, scope: Scope, folder: Path) -> None:
    scopes = settings_of(name).scopes
    title = programs.program(name).title
    if scope not in scopes:
        raise UsageError(f"{title} has no settings for --{scope}; it has: {', '.join(scopes)}")
    if scope != "user" and "user" in scopes and folder.resolve() == Path.home().resolve():
        raise UsageError(
            f"{folder} is your home directory: give --user, for all projects, or go to one"
        )


def _refuse_secrets(name: str, store: str | None, file: Path) -> None:
    """Refuse to write a password where it would be shared with everybody who has the project."""
    if store is None or not secrets_in(store):
        return
    alone = next(each for each in ("local", "user") if each in settings_of(name).scopes)
    raise Refused(
        f"the store's URL has a password, and {file} is a file of the project: nothing was "
        f"changed. Set {VARIABLE} where the program is started, or install with --{alone}"
    )


def _check_trust(name: str) -> None:
    if not isinstance(settings_of(name), Approving):
        title = programs.program(name).title
        raise UsageError(f"{title} has no way to approve a hook from outside: leave --trust")


def _approved(settings: Settings, place: Place, folder: Path) -> list[str]:
    assert isinstance(settings, Approving)
    try:
        return settings.trust(place.file, folder)
    except CodingAgentError as error:
        raise CodingAgentError(f"the hook is in {place.file}, but not approved: {error}") from error


def _advice(settings: Settings, place: Place, folder: Path) -> list[str]:
    """Return what is still to be done; the hook is in, whatever else cannot be read."""
    try:
        return settings.advice(place.file, folder)
    except CodingAgentError as error:
        return [f"what else has to be done is not known: {error}"]


def _hints(name: str, place: Place, command: Sequence[str], folder: Path) -> list[str]:
    said = []
    if place.scope == "project" and _is_shared(folder):
        alone = "--local" if "local" in settings_of(name).scopes else "--user"
        said.append(
            f"{place.file.name} may be shared with others, and {shlex.quote(command[0])} is on "
            f"this machine: {alone} installs the hook for yourself alone"
        )
    if is_temporary(command):
        said.append(
            f"{command[0]} is in a temporary environment, which will be cleaned up: install "
            "holdfast for good (pipx, uv tool install), and the hook anew"
        )
    return said


def _is_shared(folder: Path) -> bool:
    return any((each / ".git").exists() for each in (folder, *folder.parents))


def _others(name: str, place: Place, there: Sequence[Place]) -> list[str]:
    return [
        f"the hook is in {each.file} too, which costs twice the time: "
        f"`holdfast hook uninstall {name}{flag(each)}` removes it there"
        for each in there
        if each.command is not None and each.file != place.file
    ]


def _is_installed(name: str, folder: Path) -> bool:
    if programs.settings(name) is None:
        return False
    return any(place.command is not None for place in places(name, folder))
