"""What a run does, as plans that both faces carry out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from holdfast.errors import (
    ApprovalDenied,
    CheckpointNotFoundError,
    DivergenceError,
    InvalidArgumentError,
    RunError,
    SchemaMigrationError,
    SerializationError,
    UnknownEffectError,
)
from holdfast.ids import new_id
from holdfast.model import (
    Checkpoint,
    CheckpointInfo,
    Framework,
    checked_name,
    make_payload,
    new_info,
)
from holdfast.session import approval as approvals
from holdfast.session import lease as leases
from holdfast.session.effects import Effect, Kind, describe, path_of, with_key
from holdfast.session.files import Files
from holdfast.session.journal import ENDED, RETRY, STARTED, Journal, key_of
from holdfast.session.lease import Lease
from holdfast.session.tasks import Plan as TaskPlan
from holdfast.session.tasks import TaskRecord
from holdfast.state.migrations import advanced
from holdfast.stores.base import NoteExists, Query
from holdfast.stores.crashpoints import reach
from holdfast.verbs import notes, plan, save
from holdfast.verbs.engine import Engine
from holdfast.verbs.plan import Plan
from holdfast.verbs.read import restore

NEXT = "next"
"""The note that a head has once: which checkpoint followed it."""
ROLLBACK = "rollback"
"""The note on a checkpoint from which a rollback was begun."""
VERSION_TAG = "program_version"
OnDivergence = Literal["raise", "live"]


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
    approval: approvals.Approval | None = None
    tools: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
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
        self.log: list[Any] = []
        """Effects up to the head, and what became of them later: never changed, only added to."""
        self.journal = Journal()
        self.head: CheckpointInfo | None = None
        self.lease: Lease | None = None
        self.task: TaskRecord | None = None
        self.resumed = False
        self.pending_rollback: dict[str, Any] | None = None
        self.functions: dict[str, Callable[..., Any]] = dict(options.tools)
        self._lock = threading.Lock()
        self._next_index = 0

    @property
    def session(self) -> tuple[str, str]:
        return self.options.agent_id, self.options.session_id

    # Opening and closing

    def open(self) -> Plan[None]:
        """Take the lease, and go to the head of the session, or make its first checkpoint."""
        options = self.options
        self.lease = yield from leases.acquire(
            self.engine, *self.session, options.lease_seconds, options.takeover
        )
        found = yield from plan.query(
            Query(agent_id=options.agent_id, session_id=options.session_id, limit=1)
        )
        if found:
            yield from self._resume(found[0])
        else:
            self.state = {} if options.state is None else options.state
            self.context = dict(options.context)
            yield from self.checkpoint("start")

    def _resume(self, head: CheckpointInfo) -> Plan[None]:
        kept = yield from restore(self.engine, head.checkpoint_id, True, "raise")
        self._check_version(kept)
        self.head, self.resumed = head, True
        self._take(kept)
        noted = yield from notes.read(self.engine, [head.checkpoint_id])
        self.journal = Journal.read([(note.key, value) for note, value in noted])
        self._next_index = 1 + max((call.index for call in self.journal.calls), default=-1)
        if self.options.context:
            self.context.update(self.options.context)
        self.pending_rollback = next((v for n, v in noted if n.key == ROLLBACK), None)
        yield from self._inherit(head)
        yield from self._put_files_back(kept.workspace)

    def _take(self, kept: Checkpoint) -> None:
        """Stand where a checkpoint stands."""
        self.state = kept.execution_state
        self.context = kept.agent_context
        self.tasks = TaskPlan(kept.tasks)
        self.log = list(kept.effects)

    def _check_version(self, kept: Checkpoint) -> None:
        wanted, saved = self.options.version, kept.metadata.get(VERSION_TAG)
        if wanted is None or saved == wanted:
            return
        if saved is None:
            raise SchemaMigrationError(
                f"session {self.options.session_id!r} was saved by a program without a version: "
                f"resume it without one, or register_migration({self.options.agent_id!r}, 0, fn) "
                "and save it under a version first"
            )
        if not isinstance(kept.execution_state, dict):
            raise SchemaMigrationError("only a state that is a dict can be migrated")
        state = advanced(self.options.agent_id, kept.execution_state, saved, wanted)
        kept.execution_state.clear()
        kept.execution_state.update(state)

    def _inherit(self, head: CheckpointInfo) -> Plan[None]:
        """At the root of a fork: what was done since on the way forked from and stays done."""
        if head.parent_id is None or head.step_name == "start":
            return
        for parent in (yield from plan.query(Query(ids=[head.parent_id]))):
            if (parent.agent_id, parent.session_id) == self.session:
                return
            query = Query(agent_id=parent.agent_id, session_id=parent.session_id, limit=1)
            (other,) = yield from plan.query(query)
            theirs = yield from restore(self.engine, other.checkpoint_id, True, "raw")
            known = {entry.get("id") for entry in self.log}
            self.log += [
                {**entry, "abandoned": True}
                for entry in theirs.effects
                if entry.get("kind") == "irreversible" and entry["id"] not in known
            ]

    def _put_files_back(self, at_head: Any) -> Plan[None]:
        """The files as they were after the last call that is recorded, or at the head."""
        if self.files is None:
            return
        ended = [call.workspace for call in self.journal.calls if call.workspace is not None]
        last = ended[-1] if ended else at_head
        if last is not None:
            yield from self.files.put_back(last)

    def close(self, error: BaseException | None) -> Plan[None]:
        """Save where the run stands, and let go of the session."""
        try:
            if error is None:
                yield from self.checkpoint("end")
            elif isinstance(error, Exception) and not isinstance(error, RunError):
                yield from self.checkpoint("failed", failed=error)
        finally:
            if self.lease is not None:
                lease, self.lease = self.lease, None
                yield from leases.release(self.engine, lease)

    def keep_lease(self) -> Plan[None]:
        """Renew the lease if it is time."""
        if self.lease is not None and self.lease.is_half_over:
            self.lease = yield from leases.renew(self.engine, self.lease)

    # Checkpoints

    def checkpoint(
        self,
        name: str | None = None,
        *,
        parent_id: str | None = None,
        failed: BaseException | None = None,
        entries: tuple[Any, ...] = (),
        workspace: Any = None,
        **tags: Any,
    ) -> Plan[str]:
        """Keep all of the run as its next checkpoint, and go on from there."""
        lease = self._held()
        if lease.is_half_over:
            self.lease = yield from leases.renew(self.engine, lease)
        if self.journal.waiting and failed is None and parent_id is None:
            self._check_all_made()
        head = self.head
        calls = [call.as_dict() for call in self.journal.calls]
        log = [*self.log, *calls, *entries]
        if self.files is not None and workspace is None:
            workspace = yield from self.files.capture()
        if failed is not None:
            tags |= {"failed": True, "error": f"{type(failed).__name__}: {failed}"[:500]}
        if self.options.version is not None:
            tags[VERSION_TAG] = self.options.version
        info = new_info(
            agent_id=self.options.agent_id,
            framework=Framework.CUSTOM,
            session_id=self.options.session_id,
            parent_id=parent_id or (None if head is None else head.checkpoint_id),
            step_index=0 if head is None else head.step_index + 1,
            step_name=name,
            metadata={**self.options.metadata, **tags},
        )
        payload = make_payload(self.state, self.context, self.tasks.as_list(), log, workspace)
        written = notes.Written()
        if head is not None:
            written.add(self.engine, head.checkpoint_id, NEXT, {"checkpoint": info.checkpoint_id})
        reach("run:before_checkpoint")
        try:
            yield from save.write(self.engine, info, payload, [("effects",)], written)
        except NoteExists:
            raise leases.lost(lease) from None
        reach("run:after_checkpoint")
        self.head, self.log = info, log
        self.journal, self._next_index = Journal(), 0
        return info.checkpoint_id

    def _check_all_made(self) -> None:
        """A resumed program must not go on to a checkpoint past calls it has not made again."""
        for call in self.journal.waiting:
            if call.status == "started":
                self._check_known(call)
        if self.options.on_divergence == "live":
            self.leave_recorded()
        elif any(call.status != "started" for call in self.journal.waiting):
            raise self.journal.divergence("comes to a checkpoint")

    def _held(self) -> Lease:
        if self.lease is None:
            raise RunError("this run is over: open the session again")
        return self.lease

    # Calls

    def call(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        kind: Kind,
        compensate: Callable[..., Any] | None,
        key: str | None,
        again: bool,
    ) -> Plan[Any]:
        """Call a tool, or give what it gave when it was called before."""
        self._held()
        if not callable(function):
            raise InvalidArgumentError(f"run.call takes a function, not {function!r}")
        if compensate is not None:
            self.functions[path_of(compensate)] = compensate
        with self._lock:
            effect = self._describe(function, args, kwargs, kind, compensate, key)
            recorded = self._recorded(effect, again)
            if recorded is None:
                self._next_index += 1
                self.journal.put(effect)
            else:
                effect = recorded
        if recorded is not None and recorded.status != "started":
            return _outcome(recorded)
        return (yield from self._make(function, effect, fresh=recorded is None))

    def _describe(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        kind: Kind,
        compensate: Callable[..., Any] | None,
        key: str | None,
    ) -> Effect:
        assert self.head is not None
        place = (*self.session, "" if key is not None else self.head.checkpoint_id)
        return describe(
            function,
            args,
            kwargs,
            kind=kind,
            key=key,
            compensate=compensate,
            place=place,
            index=self._next_index,
            task=None if self.task is None else self.task.id,
            attempt=0 if self.task is None else self.task.attempts,
        )

    def _recorded(self, effect: Effect, again: bool) -> Effect | None:
        """The record of this very call, if it was made before."""
        if self.options.on_divergence == "live":
            try:
                found = self.journal.claim(effect)
            except DivergenceError:
                self.leave_recorded()
                found = None
        else:
            found = self.journal.claim(effect)
        if found is not None and found.status == "started":
            self._check_known(found)
        return found if found is not None or again else self._standing(effect)

    def leave_recorded(self) -> None:
        """Go on live: what was recorded and not made again belongs to a way that is left."""
        left = self.journal.waiting
        self.journal = Journal(call for call in self.journal.calls if call not in left)
        self.journal.claim_all()
        self.log += [{**call.as_dict(), "abandoned": True} for call in left]

    def _check_known(self, found: Effect) -> None:
        if found.kind in ("read", "local") or found.id in self.journal.retried:
            return
        raise UnknownEffectError(
            f"{found} was begun at {found.started_at:%H:%M:%S} UTC and its end is not recorded: it "
            "may have taken place or not. Look, then decide for each of run.unknown_effects(): "
            ".retry(), .mark_done(output) or .mark_failed(error)"
        )

    def _standing(self, effect: Effect) -> Effect | None:
        """A call with this key, or one that cannot be undone and was made on a way since left."""
        if effect.key is not None:
            known = self.journal.known_by(effect.tool, effect.key)
            if known is not None:
                return known
        reused = {entry["reused"] for entry in self.log if "reused" in entry}
        for entry in self.log:
            if "id" not in entry or entry["id"] in reused or entry.get("status") != "done":
                continue
            if effect.key is not None:
                if (entry["tool"], entry.get("key")) == (effect.tool, effect.key):
                    return Effect.from_dict(entry)
            elif _is_left_standing(entry) and entry["digest"] == effect.digest:
                self.log.append({"reused": entry["id"]})
                return Effect.from_dict(entry)
        return None

    def _make(self, function: Callable[..., Any], effect: Effect, fresh: bool) -> Plan[Any]:
        """Make a call, journaled before and after."""
        if self.options.approval is not None:
            effect = yield from self._approved(effect)
        assert self.head is not None
        head = self.head.checkpoint_id
        reach("run:before_journal")
        mark = STARTED if fresh else f"{STARTED}/{new_id()}"
        yield from self._note(head, key_of(effect.index, mark), effect)
        reach("run:before_tool")
        args, kwargs = with_key(function, effect)
        try:
            output = yield from plan.call(function, *args, **kwargs)
        except Exception as error:
            reach("run:after_tool")
            yield from self._ended(head, effect.ended(status="failed", error=error))
            raise
        reach("run:after_tool")
        yield from self._ended(head, effect.ended(status="done", output=output))
        yield from self.keep_lease()
        return output

    def _approved(self, effect: Effect) -> Plan[Effect]:
        assert self.options.approval is not None
        assert self.head is not None
        try:
            return (
                yield from approvals.ask(
                    self.engine, self.options.approval, self.session, effect, self.keep_lease
                )
            )
        except ApprovalDenied as denied:
            yield from self._note(self.head.checkpoint_id, key_of(effect.index, STARTED), effect)
            ended = effect.ended(status="denied", reason=denied.reason)
            yield from self._ended(self.head.checkpoint_id, ended)
            raise

    def _ended(self, head: str, effect: Effect) -> Plan[None]:
        if self.files is not None:
            effect = replace(effect, workspace=(yield from self.files.capture()))
        reach("run:before_end")
        try:
            yield from self._note(head, key_of(effect.index, ENDED), effect)
        except SerializationError as error:
            problem = f"its {'output' if effect.error is None else 'error'}: {error.problem}"
            unkept = replace(effect, output=None, error=None, status="started", reason=problem)
            self.journal.put(unkept)
            raise SerializationError(f"the output of {effect.tool}", error.problem) from error
        self.journal.put(effect)
        reach("run:after_end")

    def _note(self, head: str, key: str, effect: Effect) -> Plan[None]:
        written = notes.Written()
        written.add(self.engine, head, key, effect.as_dict())
        try:
            yield from written.write()
        except NoteExists:
            raise leases.lost(self._held()) from None

    # What is unknown

    def decide(self, effect: Effect, mark: str, **changes: Any) -> Plan[None]:
        """Record what the user says of a call whose end is unknown."""
        assert self.head is not None
        if effect.id not in {call.id for call in self.journal.unknown()}:
            raise RunError(f"{effect} is not unknown any more")
        if mark == RETRY:
            self.journal.retried.add(effect.id)
            key = key_of(effect.index, f"{RETRY}/{new_id()}")
            yield from self._note(self.head.checkpoint_id, key, effect)
            return
        decided = effect.ended(**changes)
        yield from self._note(self.head.checkpoint_id, key_of(effect.index, ENDED), decided)
        self.journal.put(decided)

    # Tasks

    def begin_task(self, record: TaskRecord) -> Plan[None]:
        """Begin a task with a checkpoint of its own; one that was begun before goes on."""
        self.task = record
        if self.tasks.begin(record):
            yield from self.checkpoint(f"{record.id}: started")

    def end_task(self, record: TaskRecord, error: BaseException | None) -> Plan[None]:
        """End a task, with a checkpoint of its own."""
        reach("run:task_exit")
        parent = None if record.parent is None else self.tasks.get(record.parent)
        if error is None:
            self.tasks.end(record, "completed")
            yield from self.checkpoint(f"{record.id}: completed")
        elif isinstance(error, Exception) and not isinstance(error, (RunError,)):
            self.tasks.end(record, "failed", f"{type(error).__name__}: {error}"[:500])
            yield from self.checkpoint(f"{record.id}: failed", failed=error)
        self.task = parent

    def find(self, to: str | None, steps: int) -> Plan[CheckpointInfo]:
        """The checkpoint that a rollback leads to: by id, by name, or so many steps back."""
        from holdfast.verbs.read import ancestors, get_info

        assert self.head is not None
        chain = [self.head, *(yield from ancestors(self.head.checkpoint_id))]
        own = [info for info in chain if (info.agent_id, info.session_id) == self.session]
        if to is None:
            if isinstance(steps, bool) or not isinstance(steps, int) or steps < 1:
                raise InvalidArgumentError(f"steps is a number from 1, not {steps!r}")
            if steps >= len(own):
                raise RunError(f"there are only {len(own) - 1} checkpoints before this one")
            return own[steps]
        checked_name("to", to)
        named = [info for info in own if info.step_name == to]
        if named:
            return named[0]
        try:
            found = yield from get_info(to)
        except CheckpointNotFoundError:
            names = ", ".join(str(info.step_name) for info in own[:20] if info.step_name)
            raise RunError(f"no checkpoint is called {to!r}; there are {names}") from None
        return found


def _is_left_standing(entry: Mapping[str, Any]) -> bool:
    """Whether it cannot be undone and was made on a way that was left."""
    return bool(entry.get("abandoned")) and entry["kind"] == "irreversible"


def _outcome(effect: Effect) -> Any:
    """What a call gave that was made before."""
    if effect.status == "denied":
        raise ApprovalDenied(effect.tool, effect.reason)
    if effect.error is not None:
        raise effect.error
    return effect.output
