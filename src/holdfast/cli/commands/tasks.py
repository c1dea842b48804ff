"""``holdfast tasks``: the plan of a session, and how far it has come."""

from __future__ import annotations

from argparse import Namespace

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.parts import tasks_of
from holdfast.cli.exits import OK
from holdfast.cli.output.tasks import progress_of, task_line, tasks_json
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.system import progress_bar
from holdfast.system.terminal_text import clean


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain("", "holdfast tasks", "holdfast tasks fix-42@~3 --json")
    add_checkpoint(parser)
    add_session(parser)
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show the plan of a checkpoint."""
    with open_client(options) as client:
        info = Names(client).checkpoint(options.checkpoint, options.session)
        tasks = tasks_of(client, info)
    progress = progress_of(tasks)
    if terminal.json:
        terminal.emit(
            {
                "checkpoint_id": info.checkpoint_id,
                "progress": None if progress is None else progress.as_dict(),
                "tasks": tasks_json(tasks),
            }
        )
        return OK
    if progress is None:
        terminal.line(f"session {clean(info.session_id)} has no plan")
        return OK
    terminal.line(progress_bar.line(progress.done, progress.total, clean(info.session_id)))
    for task in tasks:
        terminal.line(task_line(task, terminal))
    return OK
