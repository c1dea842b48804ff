"""An open session: its state, the history of its calls, and what keeps both, held together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.model import CheckpointInfo
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Call, Plan
from holdfast.session.approval import NOT_A_FAILURE
from holdfast.session.checkpointer import Checkpointer
from holdfast.session.effects import SESSION
from holdfast.session.files import Files
from holdfast.session.functions import Functions
from holdfast.session.history import CallHistory
from holdfast.session.options import SessionOptions
from holdfast.session.session_state import SessionState
from holdfast.session.tasks import TaskRecord
from holdfast.session.volumes import Shelf
from holdfast.system.crash_points import reach
from holdfast.verbs.read import restore

if TYPE_CHECKING:
    from holdfast.model import Checkpoint
    from holdfast.session.recovery import Recovered

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes of a function of the program one that can be called where the session is worked on."""


@dataclass(frozen=True)
class Opening:
    """How a session was found that was there before."""

    head: CheckpointInfo
    files: Any
    """The files as they were recorded last."""
    is_fork_root: bool
    """Whether the session was forked and nothing followed yet."""
    rollback: dict[str, Any] | None
    """A rollback that was begun and not ended."""


class OpenSession:
    """A session that is worked on; nothing in it is shared with another one."""

    def __init__(
        self,
        engine: Engine,
        options: SessionOptions,
        files: Files | None,
        wrap: Wrap = lambda function: function,
    ) -> None:
        self.engine = engine
        self.options = options
        self.files = files
        self.state = SessionState(options)
        may_diverge = options.on_divergence == "live"
        shelf = Shelf(engine, options.on_unknown)
        self.history = CallHistory(options.session, self.state.is_open, may_diverge, shelf)
        self.checkpointer = Checkpointer(engine, options, self.state, self.history, files)
        self.functions = Functions(options.tools)
        """What undoes effects: functions that the program gave, and no others."""
        self._wrap = wrap
        self.opening: Opening | None = None
        """How it was found; None if it is new."""
        self.recovered: Recovered | None = None
        """What was done to the files when it was opened."""

    def anew(self) -> OpenSession:
        """Return the same, to be opened; what the program gave to undo effects stays given."""
        session = OpenSession(self.engine, self.options, self.files, self._wrap)
        session.functions = self.functions
        return session

    @property
    def head_id(self) -> str:
        """The id of its newest checkpoint; an error if it was never opened."""
        return self.checkpointer.head.checkpoint_id

    def restored(self, checkpoint_id: str) -> Plan[Checkpoint]:
        """Return a checkpoint, with the classes of the program or without, as was asked for."""
        return (yield from restore(self.engine, checkpoint_id, True, self.options.on_unknown))

    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Plan[Any]:
        """Call a function of the program's own."""
        return (yield Call(self._wrap(function), args, kwargs))

    def checkpoint(self, name: str | None, tags: Mapping[str, Any]) -> Plan[str]:
        """Keep all as the next checkpoint, from which a resumed program goes on."""
        block = self.state.block
        marks = [self.history.resume_point(block)]
        return (yield from self.checkpointer.checkpoint(name, block=block, marks=marks, tags=tags))

    def recapture(self, name: str, workspace: Any, tags: Mapping[str, Any]) -> Plan[None]:
        """Keep the files as a checkpoint of their own, at which the program is where it was."""
        info = yield from self.checkpointer.recapture(name, workspace, tags)
        if self.opening is not None:
            self.opening = replace(self.opening, head=info, files=workspace)

    # Its end

    def finish(self, error: BaseException | None) -> Plan[None]:
        """Save where it stands at its end, if it can be gone on with from there."""
        if error is None and (yield from self._was_only_looked_at()):
            return
        resume_point = self.history.resume_point(SESSION)
        if error is None:
            yield from self.checkpointer.checkpoint("end", block=SESSION, marks=[resume_point])
        elif self._is_failure(error):
            marks = [*self.history.left_by(SESSION), resume_point]
            yield from self.checkpointer.checkpoint("failed", failed=error, marks=marks)

    def _was_only_looked_at(self) -> Plan[bool]:
        """Return whether the program came only to look, or to decide of calls that wait.

        Then the session stays as it is, for the program that goes on with it.
        """
        opening, head = self.opening, self.checkpointer.head
        if opening is None or head is not opening.head or not self.history.is_only_looked_at():
            return False
        kept = yield from self.restored(head.checkpoint_id)
        if not self.state.is_that_of(kept, self.engine.allow_pickle):
            return False
        if self.files is None or opening.files is None:
            return True
        now = yield from self.files.capture()
        return not (yield from self.files.changed(opening.files, now))

    def _is_failure(self, error: BaseException) -> bool:
        """Return whether an error ends an attempt, so that the next one begins anew.

        After others (an interrupt, a call of unknown end, one that still waits for approval) the
        program is gone on with where it was, as after a crash.
        """
        was_stopped = isinstance(error, NOT_A_FAILURE) or not isinstance(error, Exception)
        return not was_stopped and not self.history.is_cut_off()

    # Tasks

    def begin_task(self, task: TaskRecord) -> Plan[None]:
        """Begin a task with a checkpoint of its own; one that was begun before goes on."""
        outside = self.state.block
        record = self.state.tasks.again(task)
        if record.status != "in_progress":
            yield from self._change(record, record.begun(), "started", block=outside)
        self.state.enter(record.id)

    def end_task(self, task: TaskRecord, error: BaseException | None) -> Plan[bool]:
        """End a task, with a checkpoint of its own; True if it is to be tried again."""
        reach("run:task_exit")
        record = self.state.tasks.again(task)
        block = self.state.block_of(record.id)
        try:
            if error is None:
                yield from self._change(record, record.ended("completed"), "completed", block=block)
            elif self._is_failure(error):
                ended = record.ended("failed", f"{type(error).__name__}: {error}"[:500])
                marks = self.history.left_by(block)
                yield from self._change(record, ended, "failed", failed=error, marks=marks)
                return ended.attempts <= ended.retries
            return False
        finally:
            self.state.leave(record.id)

    def skip_task(self, task: TaskRecord, reason: str) -> Plan[None]:
        """Leave a task out."""
        record = self.state.tasks.again(task)
        skipped = record.ended("skipped", reason)
        yield from self._change(record, skipped, "skipped", block=self.state.block)

    def _change(self, before: TaskRecord, after: TaskRecord, what: str, **how: Any) -> Plan[None]:
        """Change a task, with a checkpoint; without one it stays what it was."""
        self.state.tasks.put(after)
        try:
            yield from self.checkpointer.checkpoint(f"{before.id}: {what}", **how)
        except BaseException:
            self.state.tasks.put(before)
            raise
