"""The hook in a JSON file of a program's settings; for programs whose entries are as Claude's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.coding_agents import hook_entries, json_file
from holdfast.coding_agents.hook_entries import Events
from holdfast.coding_agents.json_file import JsonStyle
from holdfast.errors import CodingAgentError


class JsonHooks:
    """Takes the hook of a program into files, and lets it go; ``more`` stands beside a command."""

    def __init__(self, program: str, title: str, events: Events, **more: Any) -> None:
        self._program, self._title = program, title
        self._events, self._more = events, more

    def install(self, file: Path, command: Sequence[str]) -> bool:
        """Put the hook in, or bring it up to date; return whether that changed anything."""
        before, style = self._read(file)
        after = hook_entries.installed(before, self._events, command, self._program, **self._more)
        if after == before:
            return False
        file.parent.mkdir(parents=True, exist_ok=True)
        json_file.write(file, after, style)
        return True

    def uninstall(self, file: Path) -> bool:
        """Take the hook out; a file that was made for it goes."""
        before, style = self._read(file)
        after = hook_entries.uninstalled(before, self._program)
        if after == before:
            return False
        if not after and style == JsonStyle() and not file.is_symlink():
            file.unlink()
        else:
            json_file.write(file, after, style)
        return True

    def installed(self, file: Path) -> list[str] | None:
        """Return the command of the hook that is there; None if there is none."""
        return next(iter(self.found(file).values()), None)

    def found(self, file: Path) -> dict[str, list[str]]:
        """Return the commands of the hook that are there, by event."""
        return hook_entries.found(self._read(file)[0], self._program)

    def missing(self, file: Path) -> list[str]:
        """Return the events at which the hook is not run, although it is there."""
        there = self.found(file)
        return [event for event in self._events if event not in there] if there else []

    def _read(self, file: Path) -> tuple[dict[str, Any], JsonStyle]:
        """Return the settings in a file, and how it is written; none if it is not there."""
        read = json_file.read(file)
        if read is None:
            return {}, JsonStyle()
        settings, style = read
        if not hook_entries.is_as_known(settings):
            raise CodingAgentError(f"{file} is not as {self._title} has it: nothing was changed")
        return settings, style
