"""What is kept of one run, tick by tick, ahead of what a tick leads to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from workflows.context.serializers import BaseSerializer
from workflows.events import WorkflowFailedEvent
from workflows.runtime.control_loop import rebuild_state_from_ticks
from workflows.runtime.runtime_decorators import BaseInternalRunAdapterDecorator
from workflows.runtime.types.internal_state import BrokerState
from workflows.runtime.types.named_task import NamedTask, PendingStart, WorkerTask
from workflows.runtime.types.plugin import (
    ExternalRunAdapter,
    InternalRunAdapter,
    WaitForNextTaskResult,
)
from workflows.runtime.types.results import StepWorkerFailed
from workflows.runtime.types.ticks import (
    TickAddEvent,
    TickCancelRun,
    TickSessionStart,
    TickStepResult,
    TickTimeout,
    TickWaiterTimeout,
    WorkflowTick,
)

from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.llama_index.questions import questions_in
from holdfast.adapters.llama_index.snapshots import is_running, kept_form
from holdfast.adapters.opening import AdapterStore
from holdfast.errors import NotTheHeadError, RunError, SessionLostError
from holdfast.runtime.steps import Plan

_TURNS = 32
"""Of the event loop: more than a step needs from its last line to its end."""


class RunKeeper:
    """Follows the state of a run, and writes it as the next checkpoint of the session."""

    def __init__(
        self,
        store: AdapterStore,
        kept: KeptSessions,
        session_id: str,
        run_id: str,
        state: BrokerState,
        serializer: BaseSerializer,
        known: Kept | None,
        on_kept: Callable[[Kept], None],
    ) -> None:
        self._store, self._kept, self._session_id = store, kept, session_id
        self._run_id, self._state, self._serializer = run_id, state, serializer
        self._is_fresh = state.journal_seq == 0
        self._head, self._on_kept = known, on_kept
        self._has_begun = False
        self._external: ExternalRunAdapter | None = None
        is_resumed = known is not None and not self._is_fresh
        self._questions = questions_in(known.state if is_resumed and known else None, serializer)

    def watch(self, external: ExternalRunAdapter) -> None:
        """Know the run by what tells whether it has ended."""
        self._external = external

    @property
    def is_running(self) -> bool:
        """Whether it has not ended."""
        return bool(getattr(self._external, "is_running", self._external is None))

    async def keep(self, tick: WorkflowTick, adapter: InternalRunAdapter) -> None:
        """Keep where the run stands after a tick, if it got anywhere."""
        self._state = rebuild_state_from_ticks(self._state, [tick], run_id=self._run_id)
        self._questions.follow(tick, self._state)
        if isinstance(tick, TickSessionStart):  # who listens to the stream now has not heard them
            for event in self._questions.events:
                await adapter.write_to_event_stream(event)
        name = name_of(tick)
        if name is None:
            return
        kept = {"questions": self._questions.kept_form()} | kept_form(
            self._state, adapter.get_state_store(()), self._serializer
        )
        self._head = await self._store.aio.run(self._write(kept, name))
        self._on_kept(self._head)

    def _write(self, state: Any, name: str) -> Plan[Kept]:
        if not self._has_begun:
            yield from self._begin()
            self._has_begun = True
        try:
            return (
                yield from self._kept.write(self._session_id, state, name=name, after=self._head)
            )
        except NotTheHeadError as error:
            raise self._lost() from error

    def _begin(self) -> Plan[None]:
        """Refuse to run from anything but where the session stands."""
        head = yield from self._kept.head(self._session_id)
        if head is not None and self._is_fresh and is_running(head.state):
            raise RunError(
                f"session {self._session_id!r} has a run that was cut short: go on with it by "
                "ctx=runtime.resume(workflow), or begin anew under another session_id"
            )
        known = None if self._head is None else self._head.checkpoint_id
        if not self._is_fresh and (None if head is None else head.checkpoint_id) != known:
            raise self._lost()
        self._head = head

    def _lost(self) -> SessionLostError:
        return SessionLostError(
            f"session {self._session_id!r} went on elsewhere, or was rolled back, since this run "
            "took it up: nothing of it was overwritten; begin again with runtime.resume(workflow)"
        )


class KeepingRunAdapter(BaseInternalRunAdapterDecorator):
    """What a run's control loop calls: a tick is kept before its commands are carried out."""

    def __init__(self, decorated: InternalRunAdapter, keeper: RunKeeper) -> None:
        super().__init__(decorated)
        self._keeper = keeper

    async def wait_for_next_task(
        self, running: list[NamedTask], pending: list[PendingStart], timeout: float | None = None
    ) -> WaitForNextTaskResult:
        """Let a step that ends right after it sent an event be kept before that is taken up.

        Otherwise who is killed between the two finds the event begun and its sender unfinished.
        """
        waited = await super().wait_for_next_task(running, pending, timeout)
        named = [*running, *waited.started]
        if _is_sent_by_step(waited.completed):
            for _ in range(_TURNS):
                await asyncio.sleep(0)
                ended = [each.task for each in named if _is_ended_step(each)]
                if ended:
                    return WaitForNextTaskResult(ended[0], waited.started)
        return waited

    async def on_tick(self, tick: WorkflowTick) -> None:
        """Keep it; if that fails the run fails, with that error, and the stream of events ends."""
        try:
            await self._keeper.keep(tick, self._decorated)
        except Exception as error:
            failed = WorkflowFailedEvent(step_name=name_of(tick) or "", exception=error)
            await self._decorated.write_to_event_stream(failed)
            raise
        await super().on_tick(tick)


def _is_ended_step(named: NamedTask) -> bool:
    return isinstance(named, WorkerTask) and bool(named.task.done())


def _is_sent_by_step(task: asyncio.Task[Any] | None) -> bool:
    """Return whether what was received is an event that a step sent."""
    if task is None or task.cancelled() or task.exception() is not None:
        return False
    tick = task.result()
    return isinstance(tick, TickAddEvent) and tick.emission is not None


def name_of(tick: WorkflowTick) -> str | None:
    """Return the name of the checkpoint after a tick, or None if it leaves all where it was."""
    if isinstance(tick, TickStepResult):
        failed = any(isinstance(result, StepWorkerFailed) for result in tick.result)
        return f"{tick.step_id} failed" if failed else str(tick.step_id)
    if isinstance(tick, TickAddEvent):
        # What a step sent was kept with its result; what waits again was kept before.
        is_known = tick.emission is not None or tick.work_item_id is not None
        return None if is_known else type(tick.event).__name__
    if isinstance(tick, TickCancelRun):
        return "cancelled"
    if isinstance(tick, (TickTimeout, TickWaiterTimeout)):
        return "timed out"
    return None
