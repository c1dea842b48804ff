"""``holdfast tasks`` and ``holdfast effects``: the plan, and the calls that were made."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import progress_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.values import short
from holdfast.cli.parsing import Parser, add_checkpoint, add_session
from holdfast.core.json_form import to_json
from holdfast.errors import CheckpointIntegrityError
from holdfast.system import progress_bar
from holdfast.system.terminal_text import clean

_MARKS = {
    "completed": ("[x]", "good"),
    "skipped": ("[-]", "dim"),
    "failed": ("[!]", "bad"),
    "in_progress": ("[>]", "warn"),
    "pending": ("[ ]", "dim"),
}
_DEEPEST = 20


def tasks(parser: Parser) -> None:
    """Set up the command."""
    parser.explain("", "holdfast tasks", "holdfast tasks fix-42@~3 --json")
    add_checkpoint(parser)
    add_session(parser)
    parser.set_defaults(run=_tasks)


def _tasks(options: Namespace, terminal: Terminal) -> int:
    with open_client(options) as client:
        info = Names(client).checkpoint(options.checkpoint, options.session)
        kept = client.restore(info.checkpoint_id, on_unknown="raw")
    progress = progress_of(kept.tasks)
    if terminal.json:
        terminal.emit(
            {
                "checkpoint_id": info.checkpoint_id,
                "progress": None if progress is None else progress.as_dict(),
                "tasks": tasks_json(kept.tasks),
            }
        )
        return OK
    if progress is None:
        terminal.line(f"session {clean(info.session_id)} has no plan")
        return OK
    terminal.line(progress_bar.line(progress.done, progress.total, clean(info.session_id)))
    for task in kept.tasks:
        terminal.line(task_line(task, terminal))
    return OK


def tasks_json(tasks: Any) -> list[Any]:
    """The plan that a checkpoint holds; nothing if what it holds is none."""
    return [to_json(task) for task in tasks] if isinstance(tasks, (list, tuple)) else []


def task_line(task: Any, terminal: Terminal) -> str:
    """A task: its mark, its name, and what is to be said of it."""
    from holdfast.session.tasks import TaskRecord

    try:
        named = {"id": task["name"], **task} if isinstance(task, dict) and "name" in task else task
        record = TaskRecord.from_dict(named)
    except CheckpointIntegrityError as error:
        return f"{terminal.paint('[?]', 'warn')} {clean(error.reason)}"
    mark, style = _MARKS[record.status]
    depth = record.id.count("/") if record.parent else 0
    line = "  " * min(depth, _DEEPEST) + f"{terminal.paint(mark, style)} {clean(record.name)}"
    said = []
    if record.attempts > 1:
        said.append(f"{record.attempts} attempts")
    if record.needs:
        said.append(f"needs {', '.join(record.needs)}")
    if record.reason:
        said.append(record.reason)
    return line + (terminal.paint(f"  {clean('; '.join(said))}", "dim") if said else "")


def effects(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "A call that was begun and of whose end nothing is known is `unknown`: the program that "
        "resumes the\nsession decides of it (run.unknown_effects()), or you do: holdfast resolve.",
        "holdfast effects",
        "holdfast effects fix-42 --unknown",
    )
    add_session(parser, positional=True)
    parser.add_argument("--unknown", action="store_true", help="only calls of unknown end")
    parser.add_argument(
        "--standing", action="store_true", help="only what is done and no rollback undoes by itself"
    )
    parser.set_defaults(run=_effects)


def _effects(options: Namespace, terminal: Terminal) -> int:
    from holdfast.cli.access.calls import calls_after, calls_of

    with open_client(options) as client:
        session = Names(client).session(options.session)
        found = [*calls_of(client, session.head), *calls_after(client, session.head)]
    if options.unknown:
        found = [call for call in found if call.status == "started"]
    if options.standing:
        found = [call for call in found if call.stands()]
    if terminal.json:
        shown = [{**to_json(each.as_dict()), "standing": each.stands()} for each in found]
        terminal.emit({"session_id": session.session_id, "effects": shown})
        return OK
    for call in found:
        ended = {"started": "unknown"}.get(call.status, call.status)
        style = {"done": "good", "failed": "bad", "denied": "bad"}.get(call.status, "warn")
        result = "" if call.output is None else f" -> {short(call.output, 40)}"
        undone = " (undone)" if call.compensated else ""
        terminal.line(
            f"{terminal.paint(call.id[:8], 'id')}  {terminal.paint(f'{ended:<7}', style)}  "
            f"{call.kind:<12}  {clean(str(call))}{result}{undone}"
        )
    if not found:
        terminal.line("no such calls")
    return OK
