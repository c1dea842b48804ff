"""``holdfast hook``: a checkpoint of the workspace for everything a coding agent does.

It never ends with 2: to Claude Code that would forbid the tool call.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import FAILED, OK, Fault, UsageError
from holdfast.cli.output.terminal import Terminal, report
from holdfast.cli.output.units import size
from holdfast.cli.parsing import Parser
from holdfast.coding_agents import programs
from holdfast.coding_agents.events import read
from holdfast.coding_agents.told import Told
from holdfast.core.short_repr import brief
from holdfast.errors import HoldfastError
from holdfast.system.terminal_text import clean

_ACTIONS = ("record", "install", "uninstall")
_INSTALLABLE = ("claude-code",)
_LARGEST = 64 * 10**6
"""Bytes of an event: a tool's output may be long, but not endless."""


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Without arguments it reads one event as JSON from its standard input, as Claude Code "
        "tells its\nhooks, and keeps the files of the project with the tool, its arguments and "
        "the position in the\ntranscript as a checkpoint of the session. It prints nothing, and "
        "never stands in the agent's way.\n\nThe project is CLAUDE_PROJECT_DIR, else the "
        "directory that the event names; its store is --store,\nHOLDFAST_URL, the nearest "
        ".holdfast/ upwards from there, or a new one.",
        "holdfast hook install claude-code",
        "holdfast hook uninstall claude-code",
        'echo \'{"session_id": "s1", "hook_event_name": "Stop"}\' | holdfast hook',
        "holdfast hook --from generic --map session=run.id --map tool=call.name < event.json",
    )
    parser.add_argument(
        "action",
        nargs="?",
        choices=_ACTIONS,
        default="record",
        metavar="ACTION",
        help="record (the default), install or uninstall",
    )
    parser.add_argument(
        "program",
        nargs="?",
        choices=_INSTALLABLE,
        metavar="PROGRAM",
        help="where to install it: claude-code",
    )
    parser.add_argument(
        "--from",
        dest="shape",
        choices=programs.NAMES,
        default="claude-code",
        help="whose events are read (%(default)s)",
    )
    parser.add_argument(
        "--map",
        action="append",
        default=[],
        metavar="NAME=PATH",
        help="where the event says what, such as session=run.id",
    )
    parser.add_argument("--agent", metavar="NAME", help="the agent's name (default: as --from)")
    parser.add_argument(
        "--directory", type=Path, metavar="DIR", help="the project (default: as the event says)"
    )
    parser.add_argument(
        "--local", action="store_true", help="install into settings.local.json, for yourself only"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Record an event, or install the hook."""
    if options.action != "record":
        from holdfast.cli.hooks.install import change

        if options.program is None:
            raise UsageError(f"say where: holdfast hook {options.action} claude-code")
        return change(options, terminal)
    try:
        return _record(options, terminal)
    except (HoldfastError, OSError) as error:
        report(error, terminal.json)
    except Exception as error:
        if os.environ.get("HOLDFAST_DEBUG"):
            raise
        report(Fault(error), terminal.json)
    return FAILED


def _record(options: Namespace, terminal: Terminal) -> int:
    from holdfast.coding_agents.recorder import Recorder
    from holdfast.workspace import Workspace

    text = sys.stdin.buffer.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise UsageError(f"the hook was told more than {size(_LARGEST)}: that is no event")
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"a hook is told JSON on its standard input ({error})") from error
    told = read(data, programs.program(options.shape), options.map)
    folder = _project(options, told)
    os.chdir(folder)  # the store is looked for from there
    location = location_of(options, create=True)
    with (
        open_location(location, create=True) as client,
        Workspace(_root(location.folder, folder), store=client) as workspace,
    ):
        done = Recorder(client, workspace).record(told, options.agent)
    if terminal.json:
        terminal.emit(
            {
                "action": "record",
                "checkpoint_id": done.checkpoint_id,
                "session_id": done.session_id,
                "step_name": done.name,
                "files": done.files,
                "tree_id": done.tree_id,
            }
        )
    elif sys.stdin.isatty() and done.checkpoint_id is not None:
        terminal.line(f"recorded {clean(done.name)} as {done.checkpoint_id}")
    return OK


def _project(options: Namespace, told: Told) -> Path:
    folder = options.directory or Path(os.environ.get("CLAUDE_PROJECT_DIR") or told.cwd or ".")
    try:
        is_there = folder.is_dir()
    except (OSError, ValueError):  # too long, or it holds a NUL
        is_there = False
    if not is_there:
        raise UsageError(f"{brief(str(folder), 200)} is no directory")
    return Path(folder).resolve()


def _root(above: Path | None, folder: Path) -> Path:
    """Return what is captured: the project that has the store, never a home directory or a disk.

    An agent may have gone into a directory below, and the session is about all of the project.
    """
    if above is None or above == Path.home().resolve() or above == Path(above.anchor):
        return folder
    return above
