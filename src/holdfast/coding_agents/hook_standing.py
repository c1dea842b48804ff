"""How the hook of a program stands: where it is, whether events come, and what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.coding_agents import programs
from holdfast.coding_agents.hook_log import HookProblem, HookReport
from holdfast.coding_agents.installing import Place, fault_of, is_temporary, places, settings_of
from holdfast.coding_agents.json_settings import JsonHooks
from holdfast.errors import CodingAgentError

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo

HELPER = "helper"
"""Under which name the helper notes what goes wrong with it."""


@dataclass(frozen=True)
class Event:
    """The event that came last."""

    name: str
    at: datetime
    count: int | None = None
    """How many came; None where that is known of the last alone."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How the hook of one program stands."""

    program: str
    title: str
    places: list[Place]
    """Where it is installed, or where that cannot be told."""
    event: Event | None = None
    faults: list[str] = field(default_factory=list)
    """Why steps are not recorded; each says what helps."""
    advice: list[str] = field(default_factory=list)
    problems: list[HookProblem] = field(default_factory=list)
    """What went wrong with events, what came last first."""

    @property
    def is_installed(self) -> bool:
        return any(place.command is not None for place in self.places)

    @property
    def works(self) -> bool:
        """Whether events come and nothing is wrong with them."""
        return self.is_installed and self.event is not None and not self.faults


def standing(
    name: str, folder: Path, report: HookReport, newest: CheckpointInfo | None = None
) -> Standing:
    """Look how the hook of a program stands; ``newest`` is the checkpoint its agent made last."""
    program = programs.program(name)
    found = [each for each in places(name, folder) if each.command or each.problem]
    event = _event(name, report, newest)
    problems = [each for each in report.problems if each.program in (name, HELPER)]
    faults = [fault for place in found if place.command for fault in _faults(name, place)]
    last = problems[0] if problems else None
    if last is not None and last.program == name and (event is None or last.last > event.at):
        faults.append(f"the last event was not recorded: {last.text}")
    return Standing(
        program=name,
        title=program.title,
        places=found,
        event=event,
        faults=faults,
        advice=list(dict.fromkeys(_advice(name, folder, found))),
        problems=problems,
    )


def _event(name: str, report: HookReport, newest: CheckpointInfo | None) -> Event | None:
    for each in report.arrived:
        if each.program == name:
            return Event(each.event, each.at, each.count)
    if newest is None:
        return None
    return Event(str(newest.metadata.get("event") or newest.step_name), newest.created_at)


def _faults(name: str, place: Place) -> list[str]:
    command = place.command or []
    again = f"`holdfast hook install {name}{flag(place)}` brings it up to date"
    settings = settings_of(name)
    missing = settings.missing(place.file) if isinstance(settings, JsonHooks) else []
    found = (fault_of(command), missing and f"{place.file} lacks {', '.join(missing)}")
    return [f"{fault}: {again}" for fault in found if fault]


def _advice(name: str, folder: Path, found: list[Place]) -> list[str]:
    said = [f"is the hook there? {place.problem}" for place in found if place.problem is not None]
    there = [place for place in found if place.command is not None]
    for place in there:
        try:
            said += settings_of(name).advice(place.file, folder)
        except CodingAgentError as error:
            said.append(str(error))
        if place.command is not None and is_temporary(place.command):
            said.append(
                f"{place.command[0]} is in a temporary environment, which will be cleaned up: "
                "install holdfast for good (pipx, uv tool install), and the hook anew"
            )
    if len(there) > 1:
        files = " and ".join(str(place.file) for place in there)
        remove = " or ".join(f"`holdfast hook uninstall {name}{flag(each)}`" for each in there)
        said.append(f"the hook is in {files}, which costs twice the time: {remove}")
    return said


def flag(place: Place) -> str:
    """Return the option that names a place, with a blank before it."""
    return "" if place.scope == "project" else f" --{place.scope}"
