"""``holdfast wrap``: keep the files that any program works on."""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import cache
from importlib.util import find_spec
from pathlib import PurePath
from typing import TYPE_CHECKING

from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.exits import Refused, UsageError
from holdfast.cli.output.escaping import json_text
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import many
from holdfast.cli.parsing import Parser
from holdfast.coding_agents.hook_project import is_everything, root_of
from holdfast.system import foreground, patience
from holdfast.system.terminal_text import clean

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.coding_agents.wrapping import Wrapping
    from holdfast.stores.discovery import StoreLocation
    from holdfast.workspace import Workspace

_REST = 1.0
_LONGEST_REST = 3600.0
_LOCK_SECONDS = 5.0
"""A program waits for its start, so a store that another has locked is not waited for longer."""


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Runs a program that has no hooks, as if Holdfast were not there: it has the terminal, "
        "Ctrl-C and\nCtrl-Z, and its exit code is the exit code. The files of the project are "
        "kept before it starts,\nwhenever they come to rest while it runs, and when it has ended, "
        "as the checkpoints of one session:\nholdfast log lists them, holdfast rewind puts files "
        "back. What goes wrong with the store is said in\none line at the end, on standard error.",
        "holdfast wrap -- aider --model sonnet",
        "holdfast wrap --rest 5 -- ./migrate.sh",
        "holdfast wrap --name nightly --session monday -- make all",
    )
    parser.add_argument("--name", metavar="NAME", help="the agent's name (default: the program's)")
    parser.add_argument(
        "--session", metavar="NAME", help="the session's name (default: a new one for every run)"
    )
    parser.add_argument(
        "--rest",
        type=_seconds,
        default=_REST,
        metavar="SECONDS",
        help="files rest when they have not changed for so long (%(default)g)",
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        metavar="-- COMMAND",
        help="the program and its arguments",
    )
    parser.set_defaults(run=run)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 < seconds <= _LONGEST_REST:
        raise argparse.ArgumentTypeError(
            f"{text[:40]!r} is no time: more than 0 seconds, and 3600 at most"
        )
    return seconds


def run(options: Namespace, terminal: Terminal) -> int:
    """Run a program, and keep its files."""
    from holdfast.coding_agents.wrapping import Wrapping

    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        raise UsageError("say what to run: holdfast wrap -- COMMAND")
    if shutil.which(command[0]) is None and not os.path.exists(command[0]):
        return _not_started(command[0], foreground.NOT_FOUND, "there is no such program", terminal)
    agent = options.name or PurePath(command[0]).name
    session = options.session or _new_session(agent)
    # Asked for once: where it was taken away, the one that is made anew is in its place.
    locate = cache(lambda: location_of(options, create=True))
    wrapping = Wrapping(
        lambda: _opened(locate()),
        command,
        agent_id=agent,
        session_id=session,
        rest=options.rest,
        progress=terminal.progress("files"),
    )
    wrapping.begin()
    try:
        code = foreground.run(command)
    except foreground.ProgramError as error:
        code = _not_started(command[0], error.code, str(error), terminal)
    try:
        wrapping.end(code, foreground.name_of(code))
    except KeyboardInterrupt:
        terminal.hint("interrupted: the files were not kept as they are at the end")
    with suppress(OSError):  # the terminal may have gone with the program
        _tell(wrapping, code, terminal)
    return code


def _not_started(program: str, code: int, reason: str, terminal: Terminal) -> int:
    if sys.stderr is not None:
        terminal.hint(f"{clean(program)} was not started: {reason}")
    return code


def _new_session(agent: str) -> str:
    """Return a name that tells runs apart, also those that begin in the same second."""
    return f"{agent}-{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


@contextmanager
def _opened(location: StoreLocation) -> Iterator[tuple[SyncClient, Workspace]]:
    """Open the store that is meant, and the project; the files of a home are nobody's project."""
    from holdfast.workspace import Workspace

    patience.limit(_LOCK_SECONDS)
    above = None if location.folder is None else os.path.realpath(location.folder)
    root = root_of(above, os.path.realpath("."))
    if is_everything(root):
        raise Refused(f"{root} is no project: go to the directory that the program works in")
    watch = sys.platform == "linux" and find_spec("inotify_simple") is not None
    with (
        open_location(location, create=True) as client,
        Workspace(root, store=client, watch=watch) as workspace,
    ):
        yield client, workspace


def _tell(wrapping: Wrapping, code: int, terminal: Terminal) -> None:
    """Say in one line what became of it, on standard error: the output is the program's."""
    if sys.stderr is None:  # closed by who started this; print would take standard output
        return
    kept = many(len(wrapping.kept), "checkpoint")
    if terminal.json:
        said = {
            "agent_id": wrapping.agent_id,
            "session_id": wrapping.session_id,
            "exit_code": code,
            "checkpoints": wrapping.kept,
            "problems": wrapping.problems,
            "warnings": wrapping.warnings,
        }
        print(json_text(said, None, unicode=False), file=sys.stderr)
    elif wrapping.problems:
        first, *others = wrapping.problems
        more = f" (and {many(len(others), 'problem')} more)" if others else ""
        what = f"only {kept} could be kept" if wrapping.kept else "nothing was kept"
        terminal.hint(f"{what}: {first}{more}")
    elif wrapping.warnings:
        terminal.hint(wrapping.warnings[0])
    elif sys.stderr.isatty():
        terminal.hint(
            f"{kept} in session {clean(wrapping.session_id)}; `holdfast rewind` goes back"
        )
