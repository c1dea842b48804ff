"""What both runs share, sync and async: all but the last line, which carries out a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Generic, Self, TypeVar

from holdfast.errors import RunError
from holdfast.runtime.steps import Plan
from holdfast.session import calls
from holdfast.session.effects import Effect, takes
from holdfast.session.files import Files
from holdfast.session.lease import CRASHED
from holdfast.session.open_session import OpenSession
from holdfast.session.options import SessionOptions
from holdfast.session.recovery import Recovered
from holdfast.session.tasks import TaskList, TaskRecord


class RunBase:
    """What can be seen of a run, sync or async."""

    def __init__(self, runtime: Any, options: SessionOptions, files: Files | None) -> None:
        self._runtime = runtime
        self._session = OpenSession(runtime.engine, options, files, self._wrap)
        self._is_open = False

    @staticmethod
    def _wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        """Return what is called where the program's own function is to be."""
        return function

    @property
    def _opened(self) -> OpenSession:
        """Where the run stands, or stood at its end; an error before it was opened."""
        _ = self._session.head_id
        return self._session

    @property
    def _task_list(self) -> TaskList:
        return self._session.state.tasks

    @property
    def state(self) -> Any:
        """The program's own state, kept with every checkpoint; a dict unless you set another."""
        return self._opened.state.program

    @state.setter
    def state(self, value: Any) -> None:
        self._opened.state.program = value

    @property
    def context(self) -> dict[str, Any]:
        """The developer's own dict, kept apart from the state."""
        return self._opened.state.context

    @property
    def agent_id(self) -> str:
        return self._session.options.agent_id

    @property
    def session_id(self) -> str:
        return self._session.options.session_id

    @property
    def head(self) -> str:
        """The id of the newest checkpoint."""
        return self._session.head_id

    @property
    def resumed(self) -> bool:
        """Whether the session was there before this run."""
        return self._opened.opening is not None

    @property
    def follows_crash(self) -> bool:
        """Whether who worked on the session before was cut off, and did not let go of it."""
        return self._opened.checkpointer.lease.before == CRASHED

    @property
    def recovered(self) -> Recovered | None:
        """What was done to the files when the run was opened; None if nothing had to be.

        After a crash they are put back to what was recorded last; its ``undo_tree`` leads back.
        """
        return self._opened.recovered

    @property
    def workspace(self) -> Any:
        """The workspace that is captured with the run, if one was given."""
        files = self._session.files
        return None if files is None else files.shown

    @property
    def progress(self) -> float:
        """How much of the plan is done, from 0 to 1."""
        return self._opened.state.tasks.progress

    def __repr__(self) -> str:
        stands = "open" if self._is_open else "closed"
        return f"{type(self).__name__}({self.agent_id!r}, {self.session_id!r}, {stands})"

    def _show_progress(self) -> None:
        """Tell how many tasks are done, if the program asked for that."""
        if self._session.options.progress is not None:
            self._session.options.progress(*self._task_list.count(), self._task_list.current)


def split_tool_arguments(
    function: Callable[..., Any], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return a tool with its own named arguments, and those that are of ``run.call``."""
    ours: dict[str, Any] = {each: kwargs.pop(each) for each in ("key", "again") if each in kwargs}
    own = {each: ours.pop(each) for each in list(ours) if takes(function, each)}
    return partial(function, **kwargs, **own), ours


class UnknownEffectBase:
    """A call of unknown end, and the three things that can be decided of it, as plans."""

    def __init__(self, run: RunBase, effect: Effect) -> None:
        self._run = run
        self.effect = effect

    def __getattr__(self, name: str) -> Any:
        return getattr(self.effect, name)

    def __repr__(self) -> str:
        return f"<unknown: {self.effect}>"

    def _retry(self) -> Plan[None]:
        return calls.retry(self._run._session, self.effect)

    def _mark_done(self, output: Any) -> Plan[None]:
        return calls.decide(self._run._session, self.effect, status="done", output=output)

    def _mark_failed(self, error: Exception | str) -> Plan[None]:
        raised = error if isinstance(error, Exception) else RunError(error)
        return calls.decide(self._run._session, self.effect, status="failed", error=raised)


class TaskBase:
    """What can be seen of a task, sync or async."""

    def __init__(self, run: RunBase, record: TaskRecord, is_retried: bool = False) -> None:
        self._run = run
        self._planned = record
        self._is_retried = is_retried
        """Whether a loop over ``remaining()`` gives it out again when it fails."""

    @property
    def _record(self) -> TaskRecord:
        """How it stands now; a rollback may have led back before it was planned."""
        return self._run._task_list.known(self._planned.id) or self._planned

    @property
    def id(self) -> str:
        return self._record.id

    @property
    def name(self) -> str:
        return self._record.name

    @property
    def status(self) -> str:
        """pending, in_progress, completed, failed or skipped."""
        return self._record.status

    @property
    def data(self) -> Any:
        """What the plan said of it."""
        return self._record.data

    @property
    def attempts(self) -> int:
        """How often it was begun."""
        return self._record.attempts

    @property
    def reason(self) -> str | None:
        """Why it was skipped, or what went wrong."""
        return self._record.reason

    def __repr__(self) -> str:
        return f"<task {self.id}: {self.status}>"


TaskT = TypeVar("TaskT", bound=TaskBase)


class TasksBase(Generic[TaskT]):
    """The tasks of a run, or the parts of one task."""

    _task: ClassVar[type[Any]]

    def __init__(self, run: RunBase, parent: str | None) -> None:
        self._run = run
        self._parent = parent

    def plan(self, *tasks: str | Mapping[str, Any]) -> Self:
        """Say what is to be done: names, or dicts with name, id, needs, data and retries.

        A resumed run keeps what was done. New tasks are added, those that are no longer planned are
        skipped and say so.
        """
        self._run._task_list.merge(tasks, self._parent)
        return self

    def remaining(self) -> Iterator[TaskT]:
        """Give out tasks that are not done, each once, when all it needs is.

        One that fails and has retries left is given out again, and its error goes no further then;
        so is what a rollback led back before.
        """
        state = self._run._session.state
        given_out, jumps = set[str](), state.jumps
        while (record := state.tasks.next(self._parent, given_out)) is not None:
            given_out.add(record.id)
            yield self._task(self._run, record, is_retried=True)
            now = state.tasks.known(record.id)
            if now is not None and now.status == "failed" and now.attempts <= now.retries:
                given_out.discard(record.id)
            if state.jumps != jumps:
                given_out, jumps = set(), state.jumps

    def __iter__(self) -> Iterator[TaskT]:
        records = self._run._task_list.records
        return iter([self._task(self._run, r) for r in records if r.parent == self._parent])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, task_id: str) -> TaskT:
        return self._task(self._run, self._run._task_list.get(task_id))  # type: ignore[no-any-return]

    @property
    def progress(self) -> float:
        """How much is done, from 0 to 1."""
        return self._run.progress
