"""What hooks of coding agents noted for people: which events came, and what went wrong.

Nobody sees what a hook prints, so it is written down, in ``.holdfast/hook/`` of the project or in
the user's state directory. A line is added in one go, which needs no lock and survives a kill;
when there are many they are summed up.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast.coding_agents.hook_project import store_folder_above
from holdfast.coding_agents.masking import masked_text
from holdfast.errors import HoldfastError
from holdfast.system import private_files
from holdfast.system.atomic_files import write_file

_LARGEST = 64 * 1024
_LONGEST = 500
_KINDS = 50
"""So many different problems are kept, those that came last."""
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_ADD = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Arrived:
    """The events of a program that have come."""

    program: str
    event: str
    """The last one."""
    at: datetime
    """When it came."""
    count: int


@dataclass(frozen=True)
class HookProblem:
    """Something that went wrong, once or often."""

    program: str
    text: str
    first: datetime
    last: datetime
    count: int


@dataclass(frozen=True)
class HookReport:
    """What a log says, what came last first."""

    arrived: tuple[Arrived, ...]
    problems: tuple[HookProblem, ...]


class HookLog:
    """The log of a project's hooks. Writing to it never raises: it is about what went wrong."""

    def __init__(self, file: str, folder: str, users: str | None = None) -> None:
        self.file = file
        self.folder = folder
        self._users = users
        """The user's own log, if it is another: it has what was noted while no store was there."""

    @classmethod
    def of(cls, folder: Path | str) -> HookLog:
        """Return the log of a project: where its store is, else the user's own."""
        try:
            place = os.path.realpath(folder)
        except OSError:  # the current directory was removed
            place = "/"
        home = os.environ.get("XDG_STATE_HOME") or os.path.expanduser("~/.local/state")
        users = os.path.join(home, "holdfast", "hook", "log")
        above = store_folder_above(place)
        if above is not None and os.access(os.path.join(above, ".holdfast"), os.W_OK):
            return cls(os.path.join(above, ".holdfast", "hook", "log"), above, users)
        return cls(users, place)

    def arrived(self, program: str, event: str) -> None:
        """Note that an event has come."""
        self._add({"program": program[:_LONGEST], "event": event[:_LONGEST]})

    def problem(self, program: str, text: str) -> None:
        """Note what went wrong; the same again is counted."""
        self._add({"program": program[:_LONGEST], "problem": masked_text(text)[: 2 * _LONGEST]})

    def report(self) -> HookReport:
        """Return what was noted of this project."""
        found = self._lines(self.file)
        if self._users is not None:
            found = sorted([*self._lines(self._users), *found], key=lambda line: line["at"])
        lines = _summed(line for line in found if line["folder"] == self.folder)
        arrived = tuple(
            Arrived(line["program"], line["event"], _moment(line["at"]), line["count"])
            for line in reversed(lines)
            if "event" in line
        )
        problems = tuple(
            HookProblem(
                line["program"],
                line["problem"],
                _moment(line["first"]),
                _moment(line["at"]),
                line["count"],
            )
            for line in reversed(lines)
            if "problem" in line
        )
        return HookReport(arrived, problems)

    def _add(self, said: dict[str, Any]) -> None:
        line = _packed({"at": int(time.time()), "folder": self.folder, **said})
        with suppress(OSError):  # there is nobody left to tell
            private_files.make_beside_store(os.path.dirname(self.file))
            file = os.open(self.file, _ADD, private_files.FILE_MODE)
            try:
                is_large = os.fstat(file).st_size > _LARGEST
                os.write(file, line)
            finally:
                os.close(file)
            if is_large:
                self._sum_up()

    def _sum_up(self) -> None:
        """Write it anew with one line for each thing; what another adds meanwhile may be lost."""
        data = b"".join(map(_packed, _summed(self._lines(self.file))))
        write_file(self.file, data, durable=False)

    def _lines(self, path: str) -> list[dict[str, Any]]:
        try:
            file = os.open(path, _READ)
        except OSError:
            return []
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return []
            text = os.read(file, 4 * _LARGEST).decode("utf-8", "replace")
        except OSError:
            return []
        finally:
            os.close(file)
        return [line for each in text.splitlines() if (line := _line(each)) is not None]


def is_fault(error: BaseException) -> bool:
    """Return whether something went wrong that nobody has thought of."""
    return not isinstance(error, HoldfastError | OSError | KeyboardInterrupt)


def words_of(error: BaseException) -> str:
    """Return what went wrong, in a line."""
    if isinstance(error, KeyboardInterrupt):
        return "it was interrupted"
    said = masked_text(" ".join(str(error).split()))[:_LONGEST]
    if said and not is_fault(error):
        return said
    text = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return (
        f"{text}. This is a fault of holdfast: please report it, with what the hook says with "
        "HOLDFAST_DEBUG=1 and HOLDFAST_HOOK_HELPER=off in its environment"
    )


def _packed(line: dict[str, Any]) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"


def _line(text: str) -> dict[str, Any] | None:
    """Return a line as it was written; None if it is not whole."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    line.setdefault("count", 1)
    line.setdefault("first", line.get("at"))
    numbers = all(isinstance(line.get(name), int) for name in ("at", "first", "count"))
    texts = all(isinstance(line.get(name), str) for name in ("folder", "program"))
    says = isinstance(line.get("event", line.get("problem")), str)
    return line if numbers and texts and says else None


def _summed(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return one line for all events of a program and one for each problem, the last at the end."""
    known: dict[tuple[str, str, str | None], dict[str, Any]] = {}
    for line in lines:
        key = (line["folder"], line["program"], line.get("problem"))
        before = known.pop(key, None)
        if before is not None:
            line = {**line, "first": before["first"], "count": before["count"] + line["count"]}
        known[key] = line
    problems = [key for key, line in known.items() if "problem" in line]
    for key in problems[:-_KINDS]:
        del known[key]
    for key in list(known)[: -4 * _KINDS]:
        del known[key]
    return list(known.values())


def _moment(seconds: int) -> datetime:
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)
