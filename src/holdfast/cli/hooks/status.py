"""``holdfast hook status``: is the hook there, do events come, and what is wrong?"""

from __future__ import annotations

import shlex
from argparse import Namespace
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import FAILED, OK, NotFound
from holdfast.cli.hooks.install import folder_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many
from holdfast.coding_agents import programs
from holdfast.coding_agents.hook_log import HookLog, HookReport
from holdfast.coding_agents.hook_standing import Standing, standing
from holdfast.coding_agents.installing import INSTALLABLE, in_use
from holdfast.errors import HoldfastError
from holdfast.model import CheckpointInfo
from holdfast.system.terminal_text import clean

_SHOWN = 5


def status(options: Namespace, terminal: Terminal) -> int:
    """Tell how the hooks of this project stand; 0 if events come and nothing is wrong."""
    folder = folder_of(options)
    report = HookLog.of(folder).report()
    known = [name for name in INSTALLABLE if programs.settings(name) is not None]
    names = [options.program] if options.program else known
    newest, trouble = _newest(options, folder, names, report)
    found = [standing(name, folder, report, newest.get(name)) for name in names]
    installed = [each for each in found if each.is_installed]
    works = bool(installed) and all(each.works for each in installed) and trouble is None
    used = set(in_use(folder))
    if terminal.json:
        terminal.emit(
            {
                "action": "status",
                "ok": works,
                "store_problem": trouble,
                "programs": [_as_json(each, each.program in used) for each in found],
            }
        )
        return OK if works else FAILED
    for each in installed:
        for line in _told(each, terminal):
            terminal.line(line)
    if trouble is not None:
        terminal.line(f"{terminal.paint('the store cannot be opened', 'bad')}: {clean(trouble)}")
    for each in found:
        if each not in installed and (options.program or each.program in used):
            terminal.line(f"{each.title}: not installed; holdfast hook install {each.program}")
            for said in each.advice:
                terminal.line(f"  - {clean(said)}")
    if not installed and not used:
        terminal.line("no hook is installed here; holdfast hook install PROGRAM does that")
    return OK if works else FAILED


def _newest(
    options: Namespace, folder: Path, names: list[str], report: HookReport
) -> tuple[dict[str, CheckpointInfo], str | None]:
    """Return the newest checkpoint of programs whose events no log tells of, if there is a store.

    And why the store cannot be opened, if it is there and cannot.
    """
    try:
        with chdir(folder):
            location = location_of(options)
            with open_location(location) as client:
                found = {name: client.find(agent_id=name, limit=1) for name in names}
    except NotFound:
        return {}, None
    except (HoldfastError, OSError) as error:
        return {}, str(error)
    return {name: infos[0] for name, infos in found.items() if infos}, None


def _told(each: Standing, terminal: Terminal) -> Iterator[str]:
    title = terminal.paint(each.title, "name")
    if each.faults:
        yield f"{title}: {terminal.paint('something is wrong', 'bad')}{_came(each)}"
    elif each.event is None:
        yield f"{title}: {terminal.paint('installed, but no event has come yet', 'warn')}"
    else:
        yield f"{title}: {terminal.paint('events arrive', 'good')}{_came(each)}"
    for place in each.places:
        if place.command is not None:
            yield f"  {place.scope}: {clean(str(place.file))}"
            yield f"  runs {clean(shlex.join(place.command))}"
    for fault in each.faults:
        yield f"  {terminal.paint('!', 'bad')} {clean(fault)}"
    if each.event is None and not each.faults:
        command = programs.program(each.program).command
        yield f"  - start {command} here and say something (what runs already may not know it)"
    for advice in each.advice:
        yield f"  - {clean(advice)}"
    for problem in each.problems[:_SHOWN]:
        often = f"{many(problem.count, 'time')}, the last {age(problem.last)}"
        yield f"  went wrong ({often}): {clean(problem.text)}"


def _came(each: Standing) -> str:
    if each.event is None:
        return ""
    number = "" if each.event.count is None else f", {each.event.count:,} so far"
    return f"{number}, the last {age(each.event.at)} ({clean(each.event.name)})"


def _as_json(each: Standing, is_used: bool) -> dict[str, Any]:
    return {
        "program": each.program,
        "installed": each.is_installed,
        "works": each.works,
        "in_use": is_used,
        "places": [
            {"scope": place.scope, "path": str(place.file), "command": place.command}
            for place in each.places
        ],
        "last_event": None
        if each.event is None
        else {
            "name": each.event.name,
            "at": each.event.at.isoformat(),
            "count": each.event.count,
        },
        "faults": each.faults,
        "advice": each.advice,
        "problems": [
            {
                "text": problem.text,
                "first": problem.first.isoformat(),
                "last": problem.last.isoformat(),
                "count": problem.count,
            }
            for problem in each.problems
        ],
    }
