"""Tasks: the plan of a run, step by step, and how far it has come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from holdfast.errors import InvalidArgumentError, TaskError

Status = Literal["pending", "in_progress", "completed", "failed", "skipped"]
DONE: tuple[Status, ...] = ("completed", "skipped")
_GIVEN = ("id", "name", "needs", "data", "retries")


@dataclass
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

    def as_dict(self) -> dict[str, Any]:
        return {
            name: value
            for name in self.__dataclass_fields__
            if (value := getattr(self, name)) not in (None, [], 0)
        }


class Plan:
    """All tasks of a run; pure data, which the run keeps."""

    def __init__(self, records: Iterable[Mapping[str, Any]] = ()) -> None:
        self.records = [TaskRecord(**record) for record in records]

    def as_list(self) -> list[dict[str, Any]]:
        return [record.as_dict() for record in self.records]

    def get(self, task_id: str) -> TaskRecord:
        """The task of that id or, if no other has it, of that name."""
        for record in self.records:
            if record.id == task_id:
                return record
        named = [record for record in self.records if record.name == task_id]
        if len(named) == 1:
            return named[0]
        raise TaskError(f"no task {task_id!r} in the plan: {', '.join(r.id for r in self.records)}")

    def merge(self, items: Iterable[str | Mapping[str, Any]], parent: str | None) -> None:
        """Take over the plan of the program as it is now.

        Tasks that are known keep how far they came; new ones are added behind; those that are no
        longer planned are skipped, and say so.
        """
        planned = [_record(item, parent) for item in items]
        ids = [record.id for record in planned]
        if len(set(ids)) != len(ids):
            twice = next(each for each in ids if ids.count(each) > 1)
            raise TaskError(f"two tasks of the plan are called {twice!r}: give them ids")
        known = {record.id: record for record in self.records if record.parent == parent}
        for record in planned:
            if record.id in known:
                known[record.id].name = record.name
                known[record.id].needs = record.needs
                known[record.id].data = record.data
                known[record.id].retries = record.retries
                if known[record.id].reason == _UNPLANNED:
                    known[record.id].status, known[record.id].reason = "pending", None
            else:
                self.records.append(record)
        for record in known.values():
            if record.id not in ids and record.status not in DONE:
                record.status, record.reason = "skipped", _UNPLANNED
        self._check_needs(planned)

    def _check_needs(self, planned: list[TaskRecord]) -> None:
        ids = {record.id for record in self.records}
        for record in planned:
            missing = [need for need in record.needs if need not in ids]
            if missing:
                raise TaskError(
                    f"task {record.id!r} needs {missing[0]!r}, which is not in the plan"
                )
        waiting = {record.id: set(record.needs) for record in self.records}
        while ready := [task for task, needs in waiting.items() if not needs & waiting.keys()]:
            for task in ready:
                del waiting[task]
        if waiting:
            raise TaskError(f"tasks need each other in a circle: {', '.join(sorted(waiting))}")

    def next(self, parent: str | None, passed: set[str]) -> TaskRecord | None:
        """The first task that is not done and whose needs are; none that was given out before."""
        status = {record.id: record.status for record in self.records}
        blocked: list[TaskRecord] = []
        for record in self.records:
            if record.parent != parent or record.status in DONE or record.id in passed:
                continue
            if all(status[need] in DONE for need in record.needs):
                return record
            blocked.append(record)
        if blocked and not passed & {record.id for record in blocked}:
            waits = blocked[0]
            needs = [need for need in waits.needs if status[need] not in DONE]
            raise TaskError(
                f"task {waits.id!r} cannot begin: {needs[0]!r}, which it needs, is "
                f"{status[needs[0]]}"
            )
        return None

    @property
    def progress(self) -> float:
        """How much is done, from 0 to 1; tasks with parts count by their parts."""
        parents = {record.parent for record in self.records}
        leaves = [record for record in self.records if record.id not in parents]
        if not leaves:
            return 0.0
        return sum(record.status in DONE for record in leaves) / len(leaves)

    def begin(self, record: TaskRecord) -> bool:
        """Begin a task; False if it was begun before and is gone on with."""
        if record.status == "in_progress":
            return False
        record.status = "in_progress"
        record.attempts += 1
        record.reason = None
        record.started_at, record.ended_at = datetime.now(UTC), None
        return True

    def end(self, record: TaskRecord, status: Status, reason: str | None = None) -> None:
        """Say how a task ended."""
        record.status = status
        record.reason = reason
        record.ended_at = datetime.now(UTC)


_UNPLANNED = "no longer in the plan"


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
    own = str(item.get("id") or name)
    needs = item.get("needs") or []
    prefix = f"{parent}/" if parent is not None else ""
    return TaskRecord(
        id=prefix + own,
        name=name,
        needs=[prefix + need for need in ([needs] if isinstance(needs, str) else needs)],
        data=item.get("data"),
        retries=int(item.get("retries") or 0),
        parent=parent,
    )


Drawn = Callable[[str], None]


def bar(plan: Plan, width: int = 24) -> str:
    """One line that shows how far a plan has come."""
    leaves = [r for r in plan.records if r.id not in {each.parent for each in plan.records}]
    done = sum(record.status in DONE for record in leaves)
    filled = round(plan.progress * width)
    current = next((r.name for r in plan.records if r.status == "in_progress"), "")
    return f"[{'#' * filled}{'.' * (width - filled)}] {done}/{len(leaves)} {current}".rstrip()


def each_remaining(plan: Plan, parent: str | None) -> Iterator[TaskRecord]:
    """Tasks that are not done, in the order in which they can be; each is given out once."""
    passed: set[str] = set()
    while (record := plan.next(parent, passed)) is not None:
        passed.add(record.id)
        yield record
