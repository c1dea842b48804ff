"""The runtime: every step that a workflow finished is kept before what follows from it is begun."""

from __future__ import annotations

from typing import Any

from workflows import Context, Workflow
from workflows.context.serializers import BaseSerializer, JsonSerializer
from workflows.events import StartEvent
from workflows.plugins.basic import BasicRuntime
from workflows.runtime.runtime_decorators import BaseRuntimeDecorator
from workflows.runtime.types.internal_state import BrokerState
from workflows.runtime.types.plugin import ExternalRunAdapter, InternalRunAdapter, Runtime

from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.llama_index.event_classes import for_reading
from holdfast.adapters.llama_index.run_keeper import KeepingRunAdapter, RunKeeper
from holdfast.adapters.llama_index.snapshots import context_of
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, SessionBusyError
from holdfast.model import Framework, checked_name


class HoldfastRuntime(OnStore, BaseRuntimeDecorator):
    """Runs a workflow on another runtime, and keeps where it stands after every step.

    ``workflow = Report(runtime=HoldfastRuntime(url=..., session_id="report-7"))``, and then
    ``await workflow.run(ctx=runtime.resume(workflow), topic="kelp")`` begins it, or goes on.
    One runtime is one session, with one run at a time. ``serializer`` writes and reads what is
    kept; without one that is JSON, and only events of the program and its typed state are revived.
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        session_id: str,
        runtime: Runtime | None = None,
        agent_id: str = "llama_index",
        workspace: Any = None,
        serializer: BaseSerializer | None = None,
    ) -> None:
        super().__init__(
            BasicRuntime() if runtime is None else runtime,
            default_serializer=serializer or JsonSerializer(allowed_types=()),
        )
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.LLAMA_INDEX, agent_id, workspace)
        self._session_id = checked_name("session_id", session_id)
        self._head: Kept | None = None
        self._runs: dict[str, RunKeeper] = {}

    def _let_go(self) -> None:
        self._kept.close()

    def resume(self, workflow: Workflow) -> Context[Any] | None:
        """Return the context to go on with, as the session stands now; None if it is new.

        A run that had not ended goes on where it was, and ``run`` then begins no new one. One
        that had ended gives its state to the next. On an event loop: ``await aresume(workflow)``.
        """
        return self._context(workflow, self._store.sync.run(self._kept.head(self._session_id)))

    async def aresume(self, workflow: Workflow) -> Context[Any] | None:
        """Do what ``resume`` does, without keeping the event loop waiting."""
        return self._context(workflow, await self._store.aio.run(self._kept.head(self._session_id)))

    def _context(self, workflow: Workflow, head: Kept | None) -> Context[Any] | None:
        self._head = head
        if head is None:
            return None
        try:
            serializer = for_reading(self.get_serializer(workflow), workflow)
            return context_of(workflow, head.state, serializer)
        except AdapterError as error:
            raise AdapterError(f"session {self._session_id!r}: {error}") from error

    def run_workflow(
        self,
        run_id: str,
        workflow: Workflow,
        init_state: BrokerState,
        start_event: StartEvent | None = None,
        serialized_state: dict[str, Any] | None = None,
        serializer: BaseSerializer | None = None,
    ) -> ExternalRunAdapter:
        """Run it, and keep what it does."""
        self._runs = {name: run for name, run in self._runs.items() if run.is_running}
        if self._runs:
            raise SessionBusyError(
                f"session {self._session_id!r} has a run that has not ended: await it first, or "
                "give each run a HoldfastRuntime with a session_id of its own"
            )
        keeper = RunKeeper(
            self._store,
            self._kept,
            self._session_id,
            run_id,
            init_state,
            self.get_serializer(workflow),
            known=self._head,
            on_kept=self._set_head,
        )
        self._runs[run_id] = keeper
        try:
            external = super().run_workflow(
                run_id, workflow, init_state, start_event, serialized_state, serializer
            )
        except BaseException:
            del self._runs[run_id]
            raise
        keeper.watch(external)
        return external

    def _set_head(self, head: Kept) -> None:
        self._head = head

    def get_internal_adapter(self, workflow: Workflow) -> InternalRunAdapter:
        """Return who speaks for a run to its control loop, and keeps what that decides."""
        inner = super().get_internal_adapter(workflow)
        return KeepingRunAdapter(inner, self._runs[inner.run_id])

    def get_serializer(self, workflow: Workflow) -> BaseSerializer:
        """Return the serializer of the workflow, or that of this runtime."""
        serializer: BaseSerializer = Runtime.get_serializer(self, workflow)
        return serializer

    async def destroy(self) -> None:
        """Let go of the store, and do what the runtime below does."""
        await super().destroy()
        await self._store.aclose()
        self._kept.close()
