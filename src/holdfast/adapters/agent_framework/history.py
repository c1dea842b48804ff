"""The history of an agent, and its runs: each model call and each tool kept as it comes."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from agent_framework import AgentSession, HistoryProvider

from holdfast.adapters.agent_framework import turn_state
from holdfast.adapters.agent_framework.messages import kept, loaded
from holdfast.adapters.agent_framework.middleware import HoldfastMiddleware
from holdfast.adapters.agent_framework.turn import Turn
from holdfast.adapters.journal import Effects, checked_effects, opened
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.core.conversation.parts import text
from holdfast.errors import InvalidArgumentError
from holdfast.model import Framework, checked_name

AGENT_ID = Framework.AGENT_FRAMEWORK.value


class HoldfastHistoryProvider(OnStore, HistoryProvider):
    """Keeps what an agent says and does; with ``.middleware`` a killed run goes on where it was.

    ``Agent(client=…, context_providers=[provider], middleware=[provider.middleware])``
    """

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        source_id: str = "holdfast",
        agent_id: str = AGENT_ID,
        effects: Effects | None = None,
        approval: Any = None,
        approve_when: Any = None,
        approval_expires_seconds: float | None = None,
        approval_timeout: float | None = None,
        workspace: Any = None,
    ) -> None:
        """Keep sessions in the store of a client or a URL; ``HOLDFAST_URL`` if neither is given.

        ``effects`` says what tools do to the world, by their names: ``{"send": "irreversible"}``.
        ``approval`` and what follows it are those of ``client.session``. The files of a
        ``workspace`` go with the session.
        """
        super().__init__(checked_name("source_id", source_id))
        self._effects = checked_effects(effects)
        self._options = {
            "workspace": workspace,
            "approval": approval,
            "approve_when": approve_when,
            "approval_expires_seconds": approval_expires_seconds,
            "approval_timeout": approval_timeout,
        }
        self._agent_id = checked_name("agent_id", agent_id)
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.AGENT_FRAMEWORK, agent_id)
        self._turns: weakref.WeakKeyDictionary[AgentSession, Turn] = weakref.WeakKeyDictionary()

    def _let_go(self) -> None:
        self._kept.close()

    @cached_property
    def middleware(self) -> HoldfastMiddleware:
        """What makes runs go on where they were killed: for the agent's ``middleware``."""
        return HoldfastMiddleware(self._begin, self._under_way)

    def _under_way(self, session: AgentSession | None) -> Turn | None:
        """Return the run that is under way in a session."""
        turn = None if session is None else self._turns.get(session)
        return turn if turn is not None and turn.is_open else None

    async def _begin(self, context: Any) -> Turn:
        """Open the session of a run, and begin or go on with it."""
        session = context.session
        if session is None:
            raise InvalidArgumentError(
                "the run has no session by which it could be found again: "
                'agent.run(…, session=agent.create_session(session_id="…"))'
            )
        if self not in getattr(context.agent, "context_providers", [self]):
            raise InvalidArgumentError(
                f"agent {context.agent.name!r} has the middleware of a history provider that is "
                "not its own: Agent(context_providers=[provider], middleware=[provider.middleware])"
            )
        self._check_effects(context)
        run = self._store.async_client.session(
            self._agent_id,
            session_id=session.session_id,
            framework=Framework.AGENT_FRAMEWORK,
            on_divergence="live",
            **self._options,
        )
        await opened(run)
        turn = Turn(run, session, self.source_id, self._effects)
        try:
            context.messages = await turn.begin(context.messages, _instructions(context.agent))
        except BaseException as error:
            await turn.fail(error)
            raise
        self._turns[session] = turn
        return turn

    def _check_effects(self, context: Any) -> None:
        """Refuse effects of tools that the agent does not have, where all of them are known."""
        agent = context.agent
        own = _options(agent).get("tools") or []
        given = context.tools if isinstance(context.tools, (list, tuple)) else [context.tools]
        names = {getattr(tool, "name", getattr(tool, "__name__", None)) for tool in (*own, *given)}
        unknown = sorted(set(self._effects) - names)
        others = [
            each
            for each in getattr(agent, "context_providers", [])
            if not isinstance(each, HistoryProvider)
        ]
        if unknown and not others and not getattr(agent, "mcp_tools", None):
            known = ", ".join(sorted(filter(None, names))) or "none"
            raise InvalidArgumentError(
                f"effects names {unknown[0]!r}, which is no tool of agent "
                f"{agent.name!r}: its tools are {known}"
            )

    # What the framework asks for

    async def get_messages(
        self, session_id: str | None, *, state: dict[str, Any] | None = None, **kwargs: Any
    ) -> list[Any]:
        """Return what was said before the messages that are being sent."""
        turn = self._turn_of(session_id)
        if turn is not None:
            return turn.history()
        head = await self._store.aio.run(self._kept.head(_checked(session_id)))
        if head is None:
            return []
        messages = turn_state.checked(head.state, str(session_id))["messages"]
        return loaded(turn_state.repaired(messages))

    async def save_messages(
        self,
        session_id: str | None,
        messages: Sequence[Any],
        *,
        state: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep messages; those of a run with ``.middleware`` are kept already."""
        if self._turn_of(session_id) is not None or not messages:
            return
        given = kept(messages)

        def added(state: Any) -> dict[str, Any]:
            known = turn_state.checked(state, str(session_id))
            existing = known["messages"]
            new = turn_state.news(existing, given)
            rest = {key: value for key, value in known.items() if key != "turn"}
            return {**rest, "messages": [*existing, *new]}

        await self._store.aio.run(self._kept.update(_checked(session_id), added, name="messages"))

    def _turn_of(self, session_id: str | None) -> Turn | None:
        for session, turn in self._turns.items():
            if session.session_id == session_id and turn.is_open:
                return turn
        return None

    async def is_unfinished(self, session_id: str) -> bool:
        """Return whether a run was cut off, so that the same input goes on with it."""
        head = await self._store.aio.run(self._kept.head(_checked(session_id)))
        return (
            head is not None and turn_state.checked(head.state, session_id).get("turn") is not None
        )


def _checked(session_id: str | None) -> str:
    return checked_name("session_id", session_id)


def _instructions(agent: Any) -> list[Any]:
    """Return the agent's instructions as parts, for who goes on in another framework."""
    given = _options(agent).get("instructions")
    return [text(given)] if isinstance(given, str) and given else []


def _options(agent: Any) -> dict[str, Any]:
    """Return what an agent asks its models with; agents of other kinds have none."""
    return getattr(agent, "default_options", None) or {}
