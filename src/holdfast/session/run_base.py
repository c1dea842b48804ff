"""What both faces of a run share: what can be seen of it without asking the store."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

from holdfast.errors import InvalidArgumentError
from holdfast.ids import new_id
from holdfast.model import checked_name
from holdfast.runtime import Runtime
from holdfast.session.approval import Approval, checked_when
from holdfast.session.core import Core, Options
from holdfast.session.effects import Effect
from holdfast.session.files import Directory, Files
from holdfast.session.functions import named
from holdfast.session.lease import DEFAULT_LEASE
from holdfast.session.log import Log
from holdfast.session.recovery import Recovered
from holdfast.session.tasks import TaskRecord, bar
from holdfast.verbs.save import checked_context


def options_of(
    agent_id: str,
    session_id: str | None,
    *,
    state: Any = None,
    context: dict[str, Any] | None = None,
    version: int | str | None = None,
    lease_seconds: float = DEFAULT_LEASE,
    takeover: bool = False,
    on_divergence: str = "raise",
    approval: Any = None,
    approve_when: Any = None,
    approval_expires_seconds: float | None = None,
    approval_timeout: float | None = None,
    tools: Iterable[Callable[..., Any]] | Mapping[str, Callable[..., Any]] = (),
    metadata: Mapping[str, Any] = MappingProxyType({}),
) -> Options:
    """The options of a session, checked."""
    if on_divergence not in ("raise", "live"):
        raise InvalidArgumentError(f'on_divergence is "raise" or "live", not {on_divergence!r}')
    if not isinstance(lease_seconds, (int, float)) or not 0 < lease_seconds < 10**9:
        raise InvalidArgumentError(f"lease_seconds is a number above 0, not {lease_seconds!r}")
    deciding = None
    if approval is not None:
        deciding = Approval(
            approval, checked_when(approve_when), approval_expires_seconds, approval_timeout
        )
    return Options(
        agent_id=checked_name("agent_id", agent_id),
        session_id=new_id() if session_id is None else checked_name("session_id", session_id),
        state=state,
        context=checked_context(context),
        version=version,
        lease_seconds=float(lease_seconds),
        takeover=takeover,
        on_divergence=on_divergence,  # type: ignore[arg-type]
        approval=deciding,
        tools=named(tools),
        metadata=dict(metadata),
    )


def files_of(runtime: Runtime, workspace: Any) -> Files | None:
    """The files of a run, from a workspace or the path of a directory."""
    if workspace is None:
        return None
    from holdfast.workspace import AsyncWorkspace, Workspace

    def opening() -> Any:
        found = workspace
        if isinstance(found, (str, Path)):
            found = Workspace(Path(found), store=runtime)
        if isinstance(found, (Workspace, AsyncWorkspace)):
            return Directory(found, runtime.store)
        return found

    return Files(opening)


class RunFace:
    """What can be seen of a run, sync or async."""

    def __init__(self, runtime: Any, options: Options, files: Files | None) -> None:
        self._runtime = runtime
        self._core = Core(runtime.engine, options, files)
        self._is_open = False

    @property
    def _opened(self) -> Core:
        """Where the run stands, or stood at its end; an error before it was opened."""
        self._core.check_opened()
        return self._core

    @property
    def state(self) -> Any:
        """The program's own state, kept with every checkpoint; a dict unless you set another."""
        return self._opened.state

    @state.setter
    def state(self, value: Any) -> None:
        self._opened.state = value

    @property
    def context(self) -> dict[str, Any]:
        """The developer's own dict, kept apart from the state."""
        return self._opened.context

    @property
    def agent_id(self) -> str:
        return self._core.options.agent_id

    @property
    def session_id(self) -> str:
        return self._core.options.session_id

    @property
    def head(self) -> str:
        """The id of the newest checkpoint."""
        return self._core.at.checkpoint_id

    @property
    def resumed(self) -> bool:
        """Whether the session was there before this run."""
        return self._opened.resumed

    @property
    def recovered(self) -> Recovered | None:
        """What was done to the files when the run was opened; None if nothing had to be.

        After a crash they are put back to what was recorded last; its ``undo_tree`` leads back.
        """
        return self._opened.recovered

    @property
    def workspace(self) -> Any:
        """The workspace that is captured with the run, if one was given."""
        return None if self._core.files is None else self._core.files.shown

    @property
    def effects(self) -> list[Effect]:
        """All calls of this run so far, the oldest first."""
        core = self._opened
        return Log([*core.log.entries, *(call.as_dict() for call in core.journal.calls)]).effects

    @property
    def progress(self) -> float:
        """How much of the plan is done, from 0 to 1."""
        return self._opened.tasks.progress

    def __repr__(self) -> str:
        stands = "open" if self._is_open else "closed"
        return f"{type(self).__name__}({self.agent_id!r}, {self.session_id!r}, {stands})"


def _each_remaining(core: Core, parent: str | None) -> Iterator[TaskRecord]:
    """Tasks that are not done, in the order in which they can be.

    Each is given out once, and again when it failed and has retries left, or a rollback led back.
    """
    passed: set[str] = set()
    turns = core.turns
    while (record := core.tasks.next(parent, passed)) is not None:
        passed.add(record.id)
        yield record
        now = core.tasks.known(record.id)
        if now is not None and now.status == "failed" and now.attempts <= now.retries:
            passed.discard(record.id)
        if core.turns != turns:
            passed, turns = set(), core.turns


class TaskFace:
    """What can be seen of a task, sync or async."""

    def __init__(self, run: RunFace, record: TaskRecord, is_retried: bool = False) -> None:
        self._run = run
        self._planned = record
        self._is_retried = is_retried
        """Whether a loop over ``remaining()`` gives it out again when it fails."""

    @property
    def _record(self) -> TaskRecord:
        """How it stands now; a rollback may have led back before it was planned."""
        return self._run._core.tasks.known(self._planned.id) or self._planned

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

    def _show_progress(self) -> None:
        if sys.stderr.isatty():
            sys.stderr.write(f"\r\x1b[K{bar(self._run._core.tasks)}")
            if self._run.progress == 1:
                sys.stderr.write("\n")
            sys.stderr.flush()


TaskT = TypeVar("TaskT", bound=TaskFace)


class TasksFace(Generic[TaskT]):
    """The tasks of a run, or the parts of one task."""

    _task: ClassVar[type[Any]]

    def __init__(self, run: RunFace, parent: str | None) -> None:
        self._run = run
        self._parent = parent

    def plan(self, *tasks: str | Mapping[str, Any]) -> Self:
        """Say what is to be done: names, or dicts with name, id, needs, data and retries.

        A resumed run keeps what was done. New tasks are added, those that are no longer planned are
        skipped and say so.
        """
        self._run._core.tasks.merge(tasks, self._parent)
        return self

    def remaining(self) -> Iterator[TaskT]:
        """Tasks that are not done, each when all it needs is.

        One that fails and has retries left is given out again; its error goes no further then.
        """
        for record in _each_remaining(self._run._core, self._parent):
            yield self._task(self._run, record, is_retried=True)

    def __iter__(self) -> Iterator[TaskT]:
        records = self._run._core.tasks.records
        return iter([self._task(self._run, r) for r in records if r.parent == self._parent])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __getitem__(self, task_id: str) -> TaskT:
        return self._task(self._run, self._run._core.tasks.get(task_id))  # type: ignore[no-any-return]

    @property
    def progress(self) -> float:
        """How much is done, from 0 to 1."""
        return self._run.progress
