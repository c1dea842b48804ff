"""Where an open run stands, as plans that both faces carry out: its head, state, tasks and log."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.codec import OnUnknown
from holdfast.core.state_migrations import advanced
from holdfast.errors import (
    FencedError,
    NotTheHeadError,
    RunError,
    SchemaMigrationError,
    UnknownEffectError,
)
from holdfast.ids import new_id
from holdfast.model import (
    Checkpoint,
    CheckpointInfo,
    Framework,
    encode_payload,
    make_payload,
    new_info,
)
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import approval as approvals
from holdfast.session import heads
from holdfast.session import journal as journals
from holdfast.session import lease as leases
from holdfast.session.effects import LASTING, Block, Effect
from holdfast.session.files import Files
from holdfast.session.functions import Functions
from holdfast.session.journal import RETRY, STARTED, Journal, divergence, key_of
from holdfast.session.lease import SessionLease
from holdfast.session.log import Entry, Log, passed, turned
from holdfast.session.shared_lock import Gate
from holdfast.session.tasks import Plan as TaskPlan
from holdfast.session.tasks import TaskRecord
from holdfast.stores.base import Query
from holdfast.system.crash_points import reach
from holdfast.verbs import notes
from holdfast.verbs.leases import renew
from holdfast.verbs.read import restore

if TYPE_CHECKING:
    from holdfast.session.recovery import Recovered

ROLLBACK = "rollback"
"""The note on a checkpoint from which a rollback was begun."""
ROLLED_BACK_FROM = "rolled_back_from"
"""The tag of a checkpoint that ended a rollback: where that was begun."""
VERSION_TAG = "program_version"
SESSION: Block = (None, 0)
"""The block of the session itself."""
OnDivergence = Literal["raise", "live"]

_inside: ContextVar[tuple[tuple[Core, str], ...]] = ContextVar("holdfast_tasks", default=())
"""The tasks that the running thread or asyncio task is in, and of which run each is."""


@dataclass(frozen=True)
class Options:
    """How a session is opened."""

    agent_id: str
    session_id: str
    state: Any = None
    context: dict[str, Any] = field(default_factory=dict)
    version: int | str | None = None
    lease_seconds: float = leases.DEFAULT_LEASE
    takeover: bool = False
    on_divergence: OnDivergence = "raise"
    on_unknown: OnUnknown = "raise"
    """With "raw" a session is worked on without its classes, which stay what they are."""
    approval: approvals.Approval | None = None
    tools: Sequence[tuple[str, Callable[..., Any]]] = ()
    """Functions that may undo effects, each with the name by which stored data names it."""
    metadata: dict[str, Any] = field(default_factory=dict)


class Core:
    """The state of an open run: where it stands, and what was done since."""

    def __init__(self, engine: Engine, options: Options, files: Files | None) -> None:
        self.engine = engine
        self.options = options
        self.files = files
        self.state: Any = None
        self.context: dict[str, Any] = {}
        self.tasks = TaskPlan()
        self.log = Log()
        self.journal = Journal()
        self.head: CheckpointInfo | None = None
        self.lease: SessionLease | None = None
        self.resumed = False
        self.inherited = 0
        """How many calls were made on this way before the run was opened."""
        self.pending_rollback: dict[str, Any] | None = None
        self.functions = Functions(options.tools)
        """What undoes effects: functions that the program gave, and no others."""
        self.entered: list[str] = []
        """The tasks that the program is in."""
        self.turns = 0
        """How often the run went on from another checkpoint."""
        self.gate = Gate()
        self.lock = threading.Lock()
        self.next_index = 0
        self.made: Counter[Any] = Counter()
        """How often each call was made in its block, so that equal ones are told apart."""
        self.has_called = False
        """Whether the program has made a call."""
        self.under_way: dict[str, str] = {}
        """Calls that are being made, each with the head at which it was begun."""
        self.wrap: Callable[[Callable[..., Any]], Callable[..., Any]] = lambda tool: tool
        """How the user's own functions are called."""
        self._opened_at: CheckpointInfo | None = None
        self.files_at: dict[str, Any] | None = None
        """The files as they were recorded last, or as they were found when the run was opened."""
        self.recovered: Recovered | None = None
        self.is_fork_root = False
        """Whether the session was forked and nothing followed yet."""
        self._below: CheckpointInfo | None = None
        self._missed: list[Effect] = []
        """Where a run stood last, and calls noted since, if others wrote on the session."""
        self._unsure: tuple[CheckpointInfo, list[Entry]] | None = None
        """A checkpoint whose writing was cut off: it may be there or not."""
        self._version: int | str | None = options.version

    def anew(self) -> Core:
        """The same, to be opened; what the program gave to undo effects with stays given."""
        core = Core(self.engine, self.options, self.files)
        core.functions = self.functions
        return core

    @property
    def session(self) -> tuple[str, str]:
        return self.options.agent_id, self.options.session_id

    @property
    def at(self) -> CheckpointInfo:
        """The head of an open run."""
        if self.head is None:
            raise RunError(
                "this run was not opened: use `with client.session(...) as run:` (async with, for "
                "an async client)"
            )
        return self.head

    def check_opened(self) -> None:
        """An error if the run was never opened: it has no state, no tasks and no calls yet."""
        _ = self.at

    def held(self) -> SessionLease:
        """The lease of an open run."""
        if self.lease is None:
            self.check_opened()
        if self.lease is None:
            raise RunError("this run is over: open the session again")
        return self.lease

    # Opening and closing

    def open(self) -> Plan[None]:
        """Take the lease, and go to the head of the session, or make its first checkpoint."""
        options = self.options
        if self.files is not None:
            yield from self.files.open()
        self.lease = yield from leases.acquire(
            self.engine, *self.session, options.lease_seconds, options.takeover
        )
        head = yield from heads.find(self.engine, self.session, options.on_unknown)
        if head is not None:
            self._below, self._missed = head.below, head.missed
            yield from self._resume(head.info, head.noted)
        else:
            self.state = {} if options.state is None else options.state
            self.context = dict(options.context)
            yield from self.checkpoint("start")

    def note(self, written: notes.NoteBatch) -> Plan[None]:
        """Write notes of this run; SessionLostError if another process took the session over."""
        lease = self.held()
        try:
            yield from written.write(lease.fence)
        except FencedError:
            raise lease.lost() from None

    def _resume(self, head: CheckpointInfo, noted: list[tuple[str, Any]]) -> Plan[None]:
        kept = yield from restore(self.engine, head.checkpoint_id, True, self.options.on_unknown)
        self.take(kept)
        self.head, self.resumed, self._opened_at = head, True, head
        if self.options.context:
            self.context.update(self.options.context)
        self.pending_rollback = next((value for key, value in noted if key == ROLLBACK), None)
        yield from self._inherit(head)
        calls, self.journal.retried = journals.read(noted, self.open_calls())
        self.begin_journal(calls)
        every = [*self.log.effects, *calls]
        self.inherited = sum(not effect.abandoned for effect in every)
        ended = [call.workspace for call in calls if call.workspace is not None]
        self.files_at = ended[-1] if ended else kept.workspace

    def take(self, kept: Checkpoint) -> None:
        """Stand where a checkpoint stands, brought to the version of this program."""
        self.state = self._at_this_version(kept)
        self.context = kept.agent_context
        self.tasks = TaskPlan(kept.tasks)
        self.log = Log(kept.effects)

    def _at_this_version(self, kept: Checkpoint) -> Any:
        """Its state; what a program without a version saved counts as of version 0."""
        wanted, saved = self.options.version, kept.metadata.get(VERSION_TAG)
        if wanted is None or saved == wanted:
            self._version = saved
            return kept.execution_state
        if not isinstance(kept.execution_state, dict):
            raise SchemaMigrationError(
                f"the state of session {self.session[1]!r} was saved by version {saved!r} of the "
                f"program, and {type(kept.execution_state).__name__} is not a dict, which could "
                "be migrated: open it with that version"
            )
        return advanced(
            self.session[0], kept.execution_state, 0 if saved is None else saved, wanted
        )

    def _inherit(self, head: CheckpointInfo) -> Plan[None]:
        """At the root of a fork: what was done since on the way forked from and stays done."""
        if self._below is not None:
            yield from self._inherit_own(self._below)
        if head.parent_id is None or "adopted" in head.metadata:
            return
        for parent in (yield from steps.query(Query(ids=[head.parent_id]))):
            if (parent.agent_id, parent.session_id) == self.session:
                return
            self.is_fork_root = True
            self.log.extend(
                {"left": call.id}
                for call in self.log.effects
                if (call.kind, call.status) == ("irreversible", "done") and not call.left
            )
            self.log.extend([passed()])
            self._know_of((yield from self._calls_of(parent)))

    def _inherit_own(self, below: CheckpointInfo) -> Plan[None]:
        """What this session did and its head does not tell, as others than runs wrote it."""
        kept = yield from restore(self.engine, below.checkpoint_id, True, "raw")
        self._know_of([*Log(kept.effects).effects, *self._missed])

    def _know_of(self, calls: Iterable[Effect]) -> None:
        """What was done elsewhere and cannot be undone is not done again."""
        self.log.extend(
            replace(effect, abandoned=True).as_dict()
            for effect in calls
            if effect.kind == "irreversible" and self.log.get(effect.id) is None
        )

    def _calls_of(self, info: CheckpointInfo) -> Plan[list[Effect]]:
        """All calls of the session of a checkpoint, also those in no checkpoint yet."""
        head = yield from heads.find(self.engine, (info.agent_id, info.session_id), "raw")
        if head is None:  # removed meanwhile
            return []
        every: list[Effect] = []
        for each in (head.below, head.info):
            if each is not None:
                kept = yield from restore(self.engine, each.checkpoint_id, True, "raw")
                every += Log(kept.effects).effects
        calls, _ = journals.read(head.noted)
        return [*every, *head.missed, *calls]

    def recapture(self, name: str, workspace: Any, tags: Mapping[str, Any]) -> Plan[None]:
        """Keep the files as a checkpoint of their own, at which the program is where it was.

        The journal goes over to it as it is, but for the files: those are these now.
        """
        calls = [replace(call, workspace=None) for call in self.journal.calls]
        beside: dict[str, Any] = {}
        for call in calls:
            value = call.as_dict()
            beside[key_of(call.index, STARTED)] = value
            if call.id in self.journal.retried:
                beside[key_of(call.index, f"{RETRY}/{new_id()}")] = value
        info = self._next_info(name, None, None, tags)
        info = yield from self._write(info, [], workspace, beside)
        for call in calls:
            self.journal.put(call)
        self.head, self._unsure = info, None
        self._opened_at, self.files_at = info, workspace

    def finish(self, error: BaseException | None) -> Plan[None]:
        """Save where the run stands at its end, if it can be gone on with from there."""
        if error is None and (yield from self._only_looked()):
            return
        if error is None:
            yield from self.checkpoint("end", block=SESSION, marks=[passed(None)])
        elif self.is_failure(error):
            marks = [*self._left_by(SESSION), passed(None)]
            yield from self.checkpoint("failed", failed=error, marks=marks)

    def release(self) -> Plan[None]:
        """Let go of the session."""
        if self.lease is not None:
            lease, self.lease = self.lease, None
            yield from leases.release(self.engine, lease, self._left(lease), self._waits())

    def let_go(self) -> Plan[None]:
        """Let others open the session; what is tried in this run after that fails."""
        if self.lease is not None:
            left = self._left(self.lease)
            yield from leases.release(self.engine, self.lease, left, self._waits())

    def _waits(self) -> int:
        """How many calls wait for somebody to say how they ended."""
        return sum(call.is_unknown for call in self.journal.unknown())

    def _left(self, lease: SessionLease) -> str:
        """How the files are left: as they were found, where this run did nothing to them."""
        if self.files is not None and self.files.agree is not None:
            return leases.CLEAN if self.files.agree else leases.BEHIND
        was_clean = lease.was_clean(bool(self.journal.unknown()))
        return leases.CLEAN if was_clean else leases.BEHIND

    def _only_looked(self) -> Plan[bool]:
        """Whether calls wait to be made again, and the program came only to look or to decide.

        Then the session stays as it is, for the program that goes on with it.
        """
        waits = self.journal.all_waiting or self.journal.unknown()
        if self.has_called or not waits or self.head is not self._opened_at:
            return False
        kept = yield from restore(self.engine, self.at.checkpoint_id, True, self.options.on_unknown)
        context = {**kept.agent_context, **self.options.context}
        before = make_payload(self._at_this_version(kept), context, TaskPlan(kept.tasks).as_list())
        now = make_payload(self.state, self.context, self.tasks.as_list())
        pickles = self.engine.allow_pickle
        first, second = (encode_payload(each, allow_pickle=pickles) for each in (before, now))
        return first.root == second.root and not (yield from self._has_other_files())

    def _has_other_files(self) -> Plan[bool]:
        """Whether somebody changed files since the run was opened."""
        if self.files is None or self.files_at is None:
            return False
        now = yield from self.files.capture()
        return bool((yield from self.files.changed(self.files_at, now)))

    def is_failure(self, error: BaseException) -> bool:
        """Whether an error ends an attempt, so that the next one begins anew.

        After others (an interrupt, a call of unknown end, one that still waits for approval) the
        program is gone on with where it was, as after a crash.
        """
        cut_off = isinstance(error, approvals.NOT_A_FAILURE) or not isinstance(error, Exception)
        return not cut_off and not any(call.is_unknown for call in self._cut_off())

    def keep_lease(self) -> Plan[None]:
        """Renew the lease if it is time."""
        if self.lease is not None and self.lease.is_half_over:
            renewed = yield from renew(self.engine, self.lease)
            self.lease = renewed if self.lease is not None else None

    # Checkpoints

    def checkpoint(
        self,
        name: str | None = None,
        *,
        parent_id: str | None = None,
        block: Block | None = None,
        failed: BaseException | None = None,
        marks: Iterable[Entry] = (),
        beside: Mapping[str, Any] | None = None,
        workspace: Any = None,
        tags: Mapping[str, Any] | None = None,
    ) -> Plan[str]:
        """Keep all of the run as its next checkpoint, and go on from there.

        All recorded calls of ``block`` have to be made again before. ``marks`` are added to the
        log, ``beside`` are notes on the new checkpoint.
        """
        yield from self.gate.close()
        try:
            if self.held().is_half_over:
                yield from self.keep_lease()
            if block is not None:
                self._check_made(block)
            if self.files is not None and workspace is None:
                workspace = yield from self.files.capture()
            info = self._next_info(name, parent_id, failed, tags)
            log = self._news(marks, block)
            info = yield from self._write(info, log, workspace, beside or {})
            self._follow(info, log)
            return info.checkpoint_id
        finally:
            self.gate.open()

    def _news(self, marks: Iterable[Entry], block: Block | None) -> list[Entry]:
        """What the next checkpoint adds to the log; calls under way come last, past all marks."""
        calls = self.journal.calls
        cut_off = {call.id for call in self._cut_off() if call.block == block}
        ended = [call for call in calls if call.id not in self.under_way]
        return [
            *(replace(call, abandoned=call.id in cut_off).as_dict() for call in ended),
            *marks,
            *(call.as_dict() for call in calls if call.id in self.under_way),
        ]

    def _follow(self, info: CheckpointInfo, log: list[Entry]) -> None:
        """Go on from a checkpoint that was written."""
        with self.lock:  # no call is claimed meanwhile
            self.head, self._unsure = info, None
            self.log.extend(log)
            under_way = [call for call in self.journal.calls if call.id in self.under_way]
            still = [*self.journal.earlier, *self.journal.all_waiting]
            self._go_on(under_way, {call.id for call in still})

    def _next_info(
        self,
        name: str | None,
        parent_id: str | None,
        failed: BaseException | None,
        tags: Mapping[str, Any] | None,
    ) -> CheckpointInfo:
        metadata = {**self.options.metadata, **(tags or {})}
        if failed is not None:
            metadata |= {"failed": True, "error": f"{type(failed).__name__}: {failed}"[:500]}
        if self._version is not None:
            metadata[VERSION_TAG] = self._version
        head = self.head
        return new_info(
            agent_id=self.options.agent_id,
            framework=Framework.CUSTOM,
            session_id=self.options.session_id,
            parent_id=parent_id or (None if head is None else head.checkpoint_id),
            step_index=0 if head is None else head.step_index + 1,
            step_name=name,
            metadata=metadata,
        )

    def _write(
        self, info: CheckpointInfo, log: list[Entry], workspace: Any, beside: Mapping[str, Any]
    ) -> Plan[CheckpointInfo]:
        entries = [*self.log.entries, *log]
        payload = make_payload(self.state, self.context, self.tasks.as_list(), entries, workspace)
        written, lease = notes.NoteBatch(), self.held()
        written.add(self.engine, info.checkpoint_id, heads.RUN, lease.number)
        for key, value in beside.items():
            written.add(self.engine, info.checkpoint_id, key, value)
        reach("run:before_checkpoint")
        unsure, self._unsure = self._unsure, (info, log)
        try:
            yield from heads.write(self.engine, self.head, info, payload, written, lease.fence)
        except FencedError:
            raise lease.lost() from None
        except NotTheHeadError:
            if unsure is None or not (yield from self._is_there(unsure[0])):
                last = yield from heads.last(self.session)
                raise lease.overtaken(last.checkpoint_id if last else "?") from None
            return (yield from self._write_past(unsure, info, log, workspace, beside))
        reach("run:after_checkpoint")
        return info

    def _write_past(
        self,
        unsure: tuple[CheckpointInfo, list[Entry]],
        info: CheckpointInfo,
        log: list[Entry],
        workspace: Any,
        beside: Mapping[str, Any],
    ) -> Plan[CheckpointInfo]:
        """Write a checkpoint behind one that was cut off and is there all the same."""
        if info.parent_id == self.at.checkpoint_id:
            info = info.with_(parent_id=unsure[0].checkpoint_id)
        self._follow(*unsure)
        known = {entry.get("id") for entry in unsure[1]} - {None}
        log[:] = [entry for entry in log if entry.get("id") not in known]
        return (yield from self._write(info, log, workspace, beside))

    def _is_there(self, info: CheckpointInfo) -> Plan[bool]:
        return bool((yield from steps.query(Query(ids=[info.checkpoint_id]))))

    def _check_made(self, block: Block) -> None:
        """A resumed program must not go on to a checkpoint past calls it has not made again."""
        cut_off = self._cut_off()
        for call in cut_off:
            self.check_known(call)
        again = [call for call in cut_off if call.is_unknown and call.block == block]
        if again:
            raise divergence("comes to a checkpoint", again[0])
        missing = [call for call in self.journal.waiting(block) if call.status != "started"]
        if missing and not self.may_leave(block):
            raise divergence("comes to a checkpoint", missing[0])
        if missing:
            self.leave(block)

    def _cut_off(self) -> list[Effect]:
        """Calls whose end is unknown, and which nobody is making now."""
        return [call for call in self.journal.unknown() if call.id not in self.under_way]

    def check_known(self, found: Effect) -> None:
        """An error if nobody knows whether a call took place, and it matters."""
        if found.kind not in LASTING or found.id in self.journal.retried:
            return
        why = f" ({found.reason})" if found.reason else ""
        raise UnknownEffectError(
            f"{found} was begun at {found.started_at:%H:%M:%S} UTC and its end is not recorded"
            f"{why}: it may have taken place or not. Look, then decide for each of "
            "run.unknown_effects(): .retry(), .mark_done(output) or .mark_failed(error); or on "
            f"the command line: holdfast resolve {found.id[:8]} --done VALUE, --failed or --retry"
        )

    def may_leave(self, block: Block) -> bool:
        """Whether a resumed program may go another way than the one recorded."""
        return self.options.on_divergence == "live" or block in self.log.turned_in()

    def leave(self, block: Block) -> None:
        """Go on live: what was recorded and not made again belongs to a way that is left."""
        for call in self.journal.waiting(block):
            if call.status == "started":
                self.check_known(call)
        left = self.journal.leave(block)
        self.log.extend(replace(call, abandoned=True).as_dict() for call in left)
        self.log.extend([turned([])])

    def _left_by(self, block: Block) -> list[Entry]:
        """Marks for what a failed attempt did that cannot be undone: it is not done twice."""
        every = [*self.open_calls(), *self.journal.calls]
        return [
            {"left": call.id}
            for call in every
            if (call.kind, call.status, call.block) == ("irreversible", "done", block)
        ]

    # The journal

    def open_calls(self) -> list[Effect]:
        """Calls before the head that a resumed program makes again."""
        return self.log.open_calls(self.tasks.is_open)

    def new_index(self) -> int:
        """The number of the next call since the head."""
        with self.lock:
            index, self.next_index = self.next_index, self.next_index + 1
        return index

    def begin_journal(self, calls: list[Effect]) -> None:
        """A program begins: these calls since the head, and open ones before, wait for it."""
        known = {call.id for call in calls}
        opened = [call for call in self.open_calls() if call.id not in known]
        self.made = Counter(self.place_of(call) for call in (*opened, *calls))
        self._journal_of(calls, opened, waits=True)

    def _go_on(self, under_way: list[Effect], still: Collection[str]) -> None:
        """A program goes on past a checkpoint: what it is making, and what still waits for it."""
        opened = [call for call in self.open_calls() if call.id in still] if still else []
        moved = [replace(call, index=index) for index, call in enumerate(under_way)]
        self._journal_of(moved, opened, waits=False)

    def _journal_of(self, calls: list[Effect], earlier: list[Effect], waits: bool) -> None:
        retried = self.journal.retried
        self.journal = Journal(calls, earlier, self.log.turned_in(), waits)
        self.journal.retried = retried
        self.next_index = 1 + max((call.index for call in calls), default=-1)

    def place_of(self, call: Effect) -> tuple[Any, ...]:
        """What equal calls share, as long as neither their block nor the run is elsewhere."""
        return self.log.token(call.task), call.block, call.tool, call.digest

    # Tasks

    @property
    def block(self) -> Block:
        """Where the program is now: in a task, or in the session itself.

        A thread that entered no task itself counts as in the one that was entered last.
        """
        mine = [task for core, task in _inside.get() if core is self]
        task = mine[-1] if mine else (self.entered[-1] if self.entered else None)
        return SESSION if task is None else self.block_of(task)

    def block_of(self, task: str) -> Block:
        record = self.tasks.known(task)
        return task, 0 if record is None else record.attempts

    def begin_task(self, task: TaskRecord) -> Plan[None]:
        """Begin a task with a checkpoint of its own; one that was begun before goes on."""
        outside = self.block
        record = self.tasks.again(task)
        if record.status != "in_progress":
            yield from self._to(record, record.begun(), f"{record.id}: started", block=outside)
        self.entered.append(record.id)
        _inside.set((*_inside.get(), (self, record.id)))

    def end_task(self, task: TaskRecord, error: BaseException | None) -> Plan[bool]:
        """End a task, with a checkpoint of its own; True if it is to be tried again."""
        reach("run:task_exit")
        record = self.tasks.again(task)
        block = self.block_of(record.id)
        try:
            if error is None:
                ended = record.ended("completed")
                yield from self._to(record, ended, f"{record.id}: completed", block=block)
            elif self.is_failure(error):
                ended = record.ended("failed", f"{type(error).__name__}: {error}"[:500])
                marks = self._left_by(block)
                name = f"{record.id}: failed"
                yield from self._to(record, ended, name, failed=error, marks=marks)
                return ended.attempts <= ended.retries
            return False
        finally:
            self.entered = [each for each in self.entered if each != record.id]
            _inside.set(tuple(each for each in _inside.get() if each != (self, record.id)))

    def skip_task(self, task: TaskRecord, reason: str) -> Plan[None]:
        """Leave a task out."""
        record = self.tasks.again(task)
        skipped = record.ended("skipped", reason)
        yield from self._to(record, skipped, f"{record.id}: skipped", block=self.block)

    def _to(self, before: TaskRecord, after: TaskRecord, name: str, **how: Any) -> Plan[None]:
        """Change a task, with a checkpoint; without one it stays what it was."""
        self.tasks.put(after)
        try:
            yield from self.checkpoint(name, **how)
        except BaseException:
            self.tasks.put(before)
            raise
