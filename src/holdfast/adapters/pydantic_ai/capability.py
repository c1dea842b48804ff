"""The capability that keeps every step of an agent's runs, and has them go on after a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering, Instrumentation

from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.adapters.pydantic_ai.delegation import OuterCall, outer_call
from holdfast.adapters.pydantic_ai.session_run import SessionRun
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework, checked_name
from holdfast.session.async_run import AsyncRun

SessionId = str | Callable[[RunContext[Any]], str]


class HoldfastCapability(OnStore, AbstractCapability[Any]):
    """Keeps every step of an agent's runs as checkpoints; a run that was cut off goes on.

    ``Agent(model, capabilities=[HoldfastCapability(url=..., session_id="ada")])``

    ``session_id`` is a name, or a function of the run's context (``lambda ctx: ctx.deps.user``);
    without one it is the ``conversation_id`` of the run. ``effects`` says what tools do to the
    world, by their names; ``approval`` and ``approve_when`` are those of ``client.session``. With
    ``workspace`` the files of that directory are kept with every step.
    """

    id: str | None = "holdfast"  # one for an agent: that of a run replaces that of its agent

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        session_id: SessionId | None = None,
        agent_id: str = Framework.PYDANTIC_AI.value,
        effects: Effects | None = None,
        workspace: Any = None,
        approval: Any = None,
        approve_when: Any = None,
        approval_expires_seconds: float | None = None,
        approval_timeout: float | None = None,
        takeover: bool = False,
    ) -> None:
        if session_id is not None and not callable(session_id):
            checked_name("session_id", session_id)
        self.session_id = session_id
        self.agent_id = checked_name("agent_id", agent_id)
        checked_effects(effects)
        self.effects = effects
        self._workspace = workspace
        self._options: dict[str, Any] = {
            "approval": approval,
            "approve_when": approve_when,
            "approval_expires_seconds": approval_expires_seconds,
            "approval_timeout": approval_timeout,
            "takeover": takeover,
        }
        self._store = AdapterStore.given(client, url)
        self._client = self._store.async_client

    @classmethod
    def combine(cls, capabilities: Sequence[AbstractCapability[Any]]) -> AbstractCapability[Any]:
        """Refuse two of them in one list: a run is kept in one session."""
        raise InvalidArgumentError(
            f"an agent was given {len(capabilities)} HoldfastCapabilities: one keeps its runs, "
            "so leave the others out"
        )

    @classmethod
    def get_serialization_name(cls) -> str | None:
        """Return that no spec names it: a store is opened by the program."""
        return None

    def get_ordering(self) -> CapabilityOrdering:
        """Wrap others, so that what is kept of a tool is what comes of it in the end."""
        return CapabilityOrdering(position="outermost", wrapped_by=[Instrumentation])

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """Return what keeps one run."""
        outer = outer_call()
        session_id = self._session_of(ctx, outer)
        return SessionRun(self._opening(session_id), self.effects, outer, self.id)

    def _session_of(self, ctx: RunContext[Any], outer: OuterCall | None) -> str:
        """Return the session of a run.

        A run that a tool of another one makes has a session beside that one's, told by the call:
        so it is found again when the tool is.
        """
        given = self.session_id(ctx) if callable(self.session_id) else self.session_id
        if given is not None:
            checked_name("session_id", given)
        if outer is not None and given in (None, outer.session_id):
            return outer.next_session()
        return ctx.conversation_id if given is None else given

    def _opening(self, session_id: str) -> AsyncRun:
        return self._client.session(
            self.agent_id,
            session_id,
            framework=Framework.PYDANTIC_AI,
            workspace=self._workspace,
            **self._options,
        )
