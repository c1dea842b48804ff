"""The checkpointer of an open session: what it writes behind its head, under its lease."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.errors import FencedError, NotTheHeadError, RunError
from holdfast.model import CheckpointInfo, new_info
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.session import heads
from holdfast.session import lease as leases
from holdfast.session.effects import Block, Effect
from holdfast.session.files import Files
from holdfast.session.folding import Entry
from holdfast.session.history import CallHistory, Closed, without
from holdfast.session.lease import SessionLease
from holdfast.session.options import SessionOptions
from holdfast.session.session_state import SessionState
from holdfast.session.shared_lock import SharedLock
from holdfast.stores.base import Query
from holdfast.system.crash_points import reach
from holdfast.verbs.leases import renew
from holdfast.verbs.notes import NoteBatch


@dataclass(frozen=True)
class Written:
    """A checkpoint that is being written."""

    info: CheckpointInfo
    news: list[Entry]
    """What it adds to the log of calls."""
    closed: Closed | None
    """The log with its oldest entries in volumes, if it had become long."""


class Checkpointer:
    """Keeps the state and the history of a session: as notes on its head, and as its next head."""

    def __init__(
        self,
        engine: Engine,
        options: SessionOptions,
        state: SessionState,
        history: CallHistory,
        files: Files | None,
    ) -> None:
        self._engine = engine
        self._options = options
        self._state = state
        self._history = history
        self._files = files
        self._head: CheckpointInfo | None = None
        self._lease: SessionLease | None = None
        self._lock = SharedLock()
        """Calls are noted together, and a checkpoint is made alone."""
        self._unsure: Written | None = None
        """A checkpoint whose writing was cut off: it may be there or not."""

    # The head

    @property
    def has_head(self) -> bool:
        """Whether the session was opened, and has a checkpoint."""
        return self._head is not None

    @property
    def head(self) -> CheckpointInfo:
        """The newest checkpoint of an open session, or of one that was."""
        if self._head is None:
            raise RunError(
                "this run was not opened: use `with client.session(...) as run:` (async with, for "
                "an async client)"
            )
        return self._head

    def resume(self, head: CheckpointInfo) -> None:
        """Go on behind a head that was found."""
        self._head = head

    # The lease

    def acquire(self) -> Plan[None]:
        """Take the lease of the session; an error if another process holds it, or may."""
        options = self._options
        self._lease = yield from leases.acquire(
            self._engine, *options.session, options.lease_seconds, options.takeover
        )

    @property
    def lease(self) -> SessionLease:
        """The lease of an open session; an error if it was not opened or is over."""
        if self._lease is None:
            _ = self.head
            raise RunError("this run is over: open the session again")
        return self._lease

    def check_held(self) -> None:
        """Refuse to go on in a session that was not opened, or is over."""
        _ = self.lease

    def keep_lease(self) -> Plan[None]:
        """Renew the lease if it is time."""
        if self._lease is not None and self._lease.is_half_over:
            renewed = yield from renew(self._engine, self._lease)
            self._lease = renewed if self._lease is not None else None

    def release(self) -> Plan[None]:
        """Let go of the session, if it is held."""
        lease, self._lease = self._lease, None
        yield from self._give_back(lease)

    def let_go(self) -> Plan[None]:
        """Let others open the session; what is tried in this one after that fails."""
        yield from self._give_back(self._lease)

    def _give_back(self, lease: SessionLease | None) -> Plan[None]:
        if lease is not None:
            waiting = self._history.waiting_for_decision()
            yield from leases.release(self._engine, lease, self._left(lease), waiting)

    def _left(self, lease: SessionLease) -> str:
        """Return how the files are left: as they were found, where nothing was done to them."""
        agree = None if self._files is None else self._files.agree
        if agree is None:
            agree = lease.was_clean(bool(self._history.unknown()))
        return leases.CLEAN if agree else leases.BEHIND

    # Notes

    def write_notes(self, batch: NoteBatch) -> Plan[None]:
        """Write notes, unless another process took the session over: a SessionLostError."""
        lease = self.lease
        try:
            yield from batch.write(lease.fence)
        except FencedError:
            raise lease.lost() from None

    def note(self, key: str, value: Any, checkpoint_id: str | None = None) -> Plan[None]:
        """Write a note on the head, or on another checkpoint."""
        batch = NoteBatch()
        batch.add(self._engine, checkpoint_id or self.head.checkpoint_id, key, value)
        yield from self.write_notes(batch)

    def note_call(self, effect: Effect, mark: str) -> Plan[None]:
        """Write down a call on the head, and remember it; no checkpoint comes between."""
        yield from self._lock.share()
        is_new = not self._history.is_noted(effect)
        try:
            effect = self._history.put(effect)
            head = self.head.checkpoint_id
            yield from self.note(*self._history.note_of(effect, mark, head), head)
        except Exception:
            if is_new:  # it was not begun
                self._history.drop(effect)
            raise
        finally:
            self._lock.unshare()

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
        going_to: Any = None,
        tags: Mapping[str, Any] | None = None,
    ) -> Plan[str]:
        """Keep all of the session as its next checkpoint, and go on from there; returns its id.

        All recorded calls of ``block`` have to be made again before. ``marks`` are added to the
        log, ``beside`` are notes on the new checkpoint; ``going_to`` are files put back after it.
        """
        yield from self._lock.take()
        try:
            if self.lease.is_half_over:
                yield from self.keep_lease()
            if block is not None:
                self._history.check_made(block)
            if self._files is not None and workspace is None:
                workspace = yield from self._files.capture(going_to)
            info = self._next_info(name, parent_id, failed, tags)
            news = self._history.news(marks, block)
            written = yield from self._write(info, news, workspace, beside or {})
            self._follow(written)
            return written.info.checkpoint_id
        finally:
            self._lock.give_back()

    def recapture(self, name: str, workspace: Any, tags: Mapping[str, Any]) -> Plan[CheckpointInfo]:
        """Keep the files as a checkpoint of their own, at which the program is where it was."""
        info = self._next_info(name, None, None, tags)
        written = yield from self._write(info, [], workspace, self._history.notes_on())
        self._stand_on(written)
        self._history.move_on(written.info.checkpoint_id)
        return written.info

    def _follow(self, written: Written) -> None:
        """Go on from a checkpoint that was written."""
        self._stand_on(written)
        self._history.follow(written.news, written.info.checkpoint_id)

    def _stand_on(self, written: Written) -> None:
        self._head, self._unsure = written.info, None
        if written.closed is not None:
            self._history.close(written.closed)

    def _next_info(
        self,
        name: str | None,
        parent_id: str | None,
        failed: BaseException | None,
        tags: Mapping[str, Any] | None,
    ) -> CheckpointInfo:
        given = dict(tags or {})
        if failed is not None:
            given |= {"failed": True, "error": f"{type(failed).__name__}: {failed}"[:500]}
        head = self._head
        return new_info(
            agent_id=self._options.agent_id,
            framework=self._state.framework,
            session_id=self._options.session_id,
            parent_id=parent_id or (None if head is None else head.checkpoint_id),
            step_index=0 if head is None else head.step_index + 1,
            step_name=name,
            metadata=self._state.tags(given),
        )

    def _write(
        self, info: CheckpointInfo, news: list[Entry], workspace: Any, beside: Mapping[str, Any]
    ) -> Plan[Written]:
        """Write a checkpoint."""
        history = self._history
        closed = yield from history.closed()
        payload = self._state.payload(history.entries_with(news, closed), workspace)
        batch, lease = NoteBatch(), self.lease
        batch.add(self._engine, info.checkpoint_id, heads.RUN, lease.number)
        for key, value in beside.items():
            batch.add(self._engine, info.checkpoint_id, key, value)
        batch.linked = history.linked()
        grows = closed is None and info.parent_id == history.grown_from
        if closed is not None:
            batch.chunks.update(closed.chunks)
        reach("run:before_checkpoint")
        unsure, self._unsure = self._unsure, Written(info, news, closed)
        try:
            yield from heads.write(
                self._engine, self._head, info, payload, grows, batch, lease.fence
            )
        except FencedError:
            raise lease.lost() from None
        except NotTheHeadError:
            if unsure is None or not (yield from _is_there(unsure.info)):
                last = yield from heads.last(self._options.session)
                raise lease.overtaken(last.checkpoint_id if last else "?") from None
            # The one whose writing was cut off is there all the same: this one comes behind it.
            if info.parent_id == self.head.checkpoint_id:
                info = info.with_(parent_id=unsure.info.checkpoint_id)
            self._follow(unsure)
            return (yield from self._write(info, without(news, unsure.news), workspace, beside))
        reach("run:after_checkpoint")
        return Written(info, news, closed)


def _is_there(info: CheckpointInfo) -> Plan[bool]:
    return bool((yield from steps.query(Query(ids=[info.checkpoint_id]))))
