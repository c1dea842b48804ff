"""``holdfast hook``: a checkpoint of the workspace for everything a coding agent does.

It never ends with 2: to Claude Code that would forbid the tool call.
"""

from __future__ import annotations

import json
import os
import sys
from argparse import Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.cli.exits import CommandError
from holdfast.cli.output.escaping import json_text, printable
from holdfast.cli.output.terminal import Terminal, report
from holdfast.cli.parsing import Parser
from holdfast.coding_agents import programs
from holdfast.coding_agents.installing import INSTALLABLE

if TYPE_CHECKING:
    from holdfast.coding_agents.entry import Outcome

_ACTIONS = ("record", "install", "uninstall", "status")


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "install puts the hook into a program's settings, so that every step is recorded; status "
        "says\nwhether events really arrive, and what to do where they do not; uninstall removes "
        "it\nfrom the project, or with --user or --local from there alone. Nothing else in the "
        "settings changes.\n\nWithout arguments it reads one event as JSON from its standard "
        "input, as Claude Code tells its\nhooks, and keeps the files of the project with the "
        "tool, its arguments and the conversation as a\ncheckpoint of the session. It prints "
        "nothing, and never stands in the agent's way.\n\nThe project is "
        "CLAUDE_PROJECT_DIR, else the directory that the event names; its store is "
        "--store,\nHOLDFAST_URL, the nearest .holdfast/ upwards from there, or a new one.",
        "holdfast hook install claude-code",
        "holdfast hook install codex --user --trust",
        "holdfast hook status",
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
        help="record (the default), install, uninstall or status",
    )
    parser.add_argument(
        "program",
        nargs="?",
        choices=INSTALLABLE,
        metavar="PROGRAM",
        help=f"of which program: {', '.join(INSTALLABLE)}",
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
    parser.add_argument("--user", action="store_true", help="in your own settings: all projects")
    parser.add_argument(
        "--local", action="store_true", help="in the project, for yourself alone (claude-code)"
    )
    parser.add_argument(
        "--trust", action="store_true", help="also approve the hook in the program (codex)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Install the hook, remove it, or tell how it stands.

    What records an event is ``holdfast.coding_agents.entry``.
    """
    if options.action == "status":
        from holdfast.cli.hooks.status import status

        return status(options, terminal)
    from holdfast.cli.hooks.install import install, uninstall

    return (install if options.action == "install" else uninstall)(options, terminal)


def tell(outcome: Outcome, as_json: bool) -> None:
    """Say what became of an event, to who asked for it or looks on."""
    try:
        if outcome.problem:
            report(CommandError(outcome.problem), as_json)
        elif as_json:
            print(json_text(json.loads(outcome.recorded), 2))
        else:
            said = json.loads(outcome.recorded)
            if said["checkpoint_id"] is not None:
                print(printable(f"recorded {said['step_name']} as {said['checkpoint_id']}"))
        sys.stdout.flush()
    except OSError:  # nobody listens; what is left in the buffers must not raise at the end
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                os.dup2(nowhere, stream.fileno())
