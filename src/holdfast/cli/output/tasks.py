"""The plan of a checkpoint: how far it has come, and each task on a line."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from holdfast.cli.output.terminal import Terminal
from holdfast.core.json_form import to_json
from holdfast.errors import CheckpointIntegrityError
from holdfast.system.terminal_text import clean

DONE = ("completed", "skipped")
_MARKS = {
    "completed": ("[x]", "good"),
    "skipped": ("[-]", "dim"),
    "failed": ("[!]", "bad"),
    "in_progress": ("[>]", "warn"),
    "pending": ("[ ]", "dim"),
}
_DEEPEST = 20


@dataclass(frozen=True)
class TaskProgress:
    """How far a plan has come."""

    done: int
    total: int

    def __str__(self) -> str:
        return f"{self.done}/{self.total}"

    def as_dict(self) -> dict[str, int]:
        return {"done": self.done, "total": self.total}


def progress_of(tasks: Any) -> TaskProgress | None:
    """Return how far a plan has come, if there is one; tasks with parts count by their parts."""
    if not isinstance(tasks, (list, tuple)) or not tasks:
        return None
    records = [task for task in tasks if isinstance(task, dict)]
    parents = [task.get("parent") for task in records]
    named = {parent for parent in parents if isinstance(parent, str)}
    leaves = [task for task in records if not _is_among(task.get("id"), named)]
    return TaskProgress(sum(_is_among(task.get("status"), DONE) for task in leaves), len(leaves))


def _is_among(value: Any, words: Container[str]) -> bool:
    return isinstance(value, str) and value in words


def tasks_json(tasks: Any) -> list[Any]:
    """Return the plan that a checkpoint holds; nothing if what it holds is none."""
    return [to_json(_whole(task)) for task in tasks] if isinstance(tasks, (list, tuple)) else []


def _whole(task: Any) -> Any:
    """Return a task with what is left out where it is kept: one that is pending does not say so."""
    if not isinstance(task, dict) or "name" not in task:
        return task
    return {"id": task["name"], "status": "pending", **task}


def task_line(task: Any, terminal: Terminal) -> str:
    """Return a task: its mark, its name, and what is to be said of it."""
    from holdfast.session.tasks import TaskRecord

    try:
        record = TaskRecord.from_dict(_whole(task))
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
