"""Tasks: the plan of a run, step by step, and how far it has come."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from holdfast.errors import InvalidArgumentError, TaskError
from holdfast.verbs import stored_values

Status = Literal["pending", "in_progress", "completed", "failed", "skipped"]
DONE: tuple[Status, ...] = ("completed", "skipped")
_GIVEN = ("id", "name", "needs", "data", "retries")


@dataclass(frozen=True)
class TaskRecord:
    """One step of the plan, as it is kept in every checkpoint."""

    id: str
    name: str
    status: Status = "pending"
    needs: list[str] = field(default_factory=list)
    data: Any = None
    retries: int = 0
    attempts: int = 0
    parent: str | None = None
    reason: str | None = None
    """Why it was skipped, or what went wrong."""
    started_at: datetime | None = None
    ended_at: datetime | None = None

    @classmethod
    def from_dict(cls, data: Any) -> TaskRecord:
        """Return the task of what ``as_dict`` gave."""
        found = stored_values.fields_of("a recorded task", data, _KINDS, ("id", "name"))
        stored_values.texts_in("a recorded task", found.get("needs", []))
        return cls(**found)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as it is kept; what says nothing is left out."""
        data = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: value for name, value in data.items() if not _says_nothing(name, value)}

    def begun(self) -> TaskRecord:
        """Return the same, begun now."""
        return replace(
            self,
            status="in_progress",
            attempts=self.attempts + 1,
            reason=None,
            started_at=datetime.now(UTC),
            ended_at=None,
        )

    def ended(self, status: Status, reason: str | None = None) -> TaskRecord:
        """Return the same, ended now."""
        return replace(self, status=status, reason=reason, ended_at=datetime.now(UTC))


_KINDS: dict[str, stored_values.Kind] = {
    "id": stored_values.TEXT,
    "name": stored_values.TEXT,
    "status": get_args(Status),
    "needs": stored_values.LIST,
    "data": stored_values.ANYTHING,
    "retries": stored_values.NUMBER,
    "attempts": stored_values.NUMBER,
    "parent": stored_values.MAYBE_TEXT,
    "reason": stored_values.MAYBE_TEXT,
    "started_at": stored_values.MAYBE_MOMENT,
    "ended_at": stored_values.MAYBE_MOMENT,
}
"""What each field is when it is read back."""

_DEFAULTS = {
    each.name: each.default if each.default_factory is MISSING else each.default_factory()
    for each in fields(TaskRecord)
}


def _says_nothing(name: str, value: Any) -> bool:
    """Return whether a field has its default; by type first, as data may be an array, or False."""
    default = _DEFAULTS[name]
    return type(value) is type(default) and bool(value == default)


class TaskList:
    """All tasks of a session; pure data, which the session keeps."""

    def __init__(self, records: Sequence[Mapping[str, Any]] = ()) -> None:
        self.records = [
            TaskRecord.from_dict(record)
            for record in stored_values.items("a recorded plan", records)
        ]

    def as_list(self) -> list[dict[str, Any]]:
        """Return plain data, as it is kept."""
        return [record.as_dict() for record in self.records]

    def known(self, task_id: str) -> TaskRecord | None:
        """Return the task of that id, if there is one."""
        return next((record for record in self.records if record.id == task_id), None)

    def get(self, task_id: str) -> TaskRecord:
        """Return the task of that id or, if no other has it, of that name."""
        record = self.known(task_id)
        named = [record for record in self.records if record.name == task_id]
        if record is None and len(named) == 1:
            return named[0]
        if record is None:
            listed = ", ".join(each.id for each in self.records) or "it is empty"
            raise TaskError(f"no task {task_id!r} in the plan: {listed}")
        return record

    def put(self, record: TaskRecord) -> None:
        """Replace a task by what became of it, or add it."""
        for place, known in enumerate(self.records):
            if known.id == record.id:
                self.records[place] = record
                return
        self.records.append(record)

    def again(self, task: TaskRecord) -> TaskRecord:
        """Return a task as it stands; one that a rollback led back before is planned anew."""
        if self.known(task.id) is None:
            self.put(replace(task, status="pending", attempts=0, reason=None))
        return self.get(task.id)

    def merge(self, items: Iterable[str | Mapping[str, Any]], parent: str | None) -> None:
        """Take over the plan of the program as it is now.

        Tasks that are known keep how far they came; new ones are added behind; those that are no
        longer planned are skipped, and say so.
        """
        planned = {}
        for record in [_record(item, parent) for item in items]:
            if record.id in planned:
                raise TaskError(f"two tasks of the plan are called {record.id!r}: give them ids")
            planned[record.id] = record
        merged = [
            _merged(known, planned.pop(known.id, None)) if known.parent == parent else known
            for known in self.records
        ]
        merged += planned.values()
        _check_needs(merged)
        self.records = merged

    def is_open(self, block: tuple[str | None, int]) -> bool:
        """Return whether a resumed program comes to calls of a block again: it is still in that."""
        task, attempt = block
        if task is None:
            return True
        record = self.known(task)
        return record is not None and (record.status, record.attempts) == ("in_progress", attempt)

    def next(self, parent: str | None, given_out: set[str]) -> TaskRecord | None:
        """Return the first task that is not done and whose needs are; none given out before."""
        status = {record.id: record.status for record in self.records}
        blocked: tuple[TaskRecord, str] | None = None
        for record in self.records:
            if record.parent != parent or record.status in DONE or record.id in given_out:
                continue
            missing = [need for need in record.needs if status[need] not in DONE]
            if not missing:
                return record
            blocked = blocked or (record, missing[0])
        if blocked is not None:
            record, need = blocked
            raise TaskError(
                f"task {record.id!r} cannot begin: {need!r}, which it needs, is {status[need]}"
            )
        return None

    def count(self) -> tuple[int, int]:
        """Return how many tasks are done, and of how many; one with parts counts by its parts."""
        parents = {record.parent for record in self.records}
        leaves = [record for record in self.records if record.id not in parents]
        return sum(record.status in DONE for record in leaves), len(leaves)

    @property
    def progress(self) -> float:
        """How much is done, from 0 to 1."""
        done, total = self.count()
        return done / total if total else 0.0

    @property
    def current(self) -> str:
        """The name of the task that is worked on, if any is."""
        return next((each.name for each in self.records if each.status == "in_progress"), "")


_UNPLANNED = "no longer in the plan"


def _merged(known: TaskRecord, planned: TaskRecord | None) -> TaskRecord:
    """Return a task that is known, as the program plans it now."""
    if planned is None:
        return known if known.status in DONE else known.ended("skipped", _UNPLANNED)
    merged = replace(
        known, name=planned.name, needs=planned.needs, data=planned.data, retries=planned.retries
    )
    if (known.status, known.reason) == ("skipped", _UNPLANNED):
        return replace(merged, status="pending", reason=None, ended_at=None)
    return merged


def _check_needs(records: list[TaskRecord]) -> None:
    """Refuse tasks that need what is not planned, or each other."""
    waiting = {record.id: set(record.needs) for record in records}
    for task, needs in waiting.items():
        missing = sorted(needs - waiting.keys())
        if missing:
            raise TaskError(f"task {task!r} needs {missing[0]!r}, which is not in the plan")
    while ready := [task for task, needs in waiting.items() if not needs & waiting.keys()]:
        for task in ready:
            del waiting[task]
    if waiting:
        raise TaskError(f"tasks need each other in a circle: {', '.join(sorted(waiting))}")


def _record(item: str | Mapping[str, Any], parent: str | None) -> TaskRecord:
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, Mapping):
        raise InvalidArgumentError(f"a task is a name or a dict, not {item!r}")
    unknown = sorted(set(item) - set(_GIVEN))
    if unknown:
        raise InvalidArgumentError(f"a task has no {unknown[0]!r}; it may have {', '.join(_GIVEN)}")
    name = item.get("name") or item.get("id")
    if not isinstance(name, str) or not name.strip():
        raise InvalidArgumentError(f"a task needs a name: {item!r}")
    needs, retries = item.get("needs") or [], item.get("retries") or 0
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InvalidArgumentError(f"retries is a number from 0, not {retries!r}")
    prefix = f"{parent}/" if parent is not None else ""
    return TaskRecord(
        id=prefix + str(item.get("id") or name),
        name=name,
        needs=[prefix + need for need in ([needs] if isinstance(needs, str) else needs)],
        data=item.get("data"),
        retries=retries,
        parent=parent,
    )
