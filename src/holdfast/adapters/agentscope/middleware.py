"""The middleware: opens the session for each reply, and keeps what the agent does in it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import Any

from agentscope.agent import Agent
from agentscope.middleware import MiddlewareBase
from agentscope.state import AgentState

from holdfast.adapters.agentscope.agent_states import kept_form, state_of
from holdfast.adapters.agentscope.turn import Turn
from holdfast.adapters.journal import Effects, checked_effects
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import InvalidArgumentError, SessionBusyError
from holdfast.model import Framework, checked_name

Next = Callable[..., AsyncGenerator[Any, None]]


class HoldfastMiddleware(OnStore, MiddlewareBase):
    """Keeps an agent's state before and after the model is asked, and every tool call by its id.

    ``Agent(..., middlewares=[middleware], state=middleware.state())``, and then ``agent.reply``
    as ever. Killed anywhere and started again with the same lines, the reply goes on where it was:
    the prompt is there once, and no tool that finished runs again. One middleware is one session,
    of one agent. ``effects`` says what tools do to the world, by their names
    (``{"send_mail": "irreversible"}``); ``workspace`` is the directory in which they work, and
    ``approval``, ``approve_when`` and ``takeover`` are those of ``client.session``.
    """

    def __init__(
        self,
        *,
        session_id: str,
        client: Client | SyncClient | None = None,
        url: str | None = None,
        agent_id: str = "agentscope",
        effects: Effects | None = None,
        workspace: Any = None,
        approval: Any = None,
        approve_when: Any = None,
        approval_expires_seconds: float | None = None,
        approval_timeout: float | None = None,
        takeover: bool = False,
    ) -> None:
        self._session_id = checked_name("session_id", session_id)
        self._effects = checked_effects(effects)
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.AGENTSCOPE, agent_id)
        self._options: dict[str, Any] = {
            "framework": Framework.AGENTSCOPE,
            "workspace": workspace,
            "approval": approval,
            "approve_when": approve_when,
            "approval_expires_seconds": approval_expires_seconds,
            "approval_timeout": approval_timeout,
            "takeover": takeover,
            "on_divergence": "live",  # another prompt leaves what was begun
        }
        self._known: Any = None
        """The state that was kept or read last, by which it is seen whether others went on."""
        self._given: AgentState | None = None
        """The very state that an agent was made with, or replied with last."""
        self._turn: Turn | None = None

    def _let_go(self) -> None:
        self._kept.close()

    def state(self) -> AgentState | None:
        """Return the agent's state as the session holds it now; None if it is new.

        It reads from the store at once. A reply reads it anyway, so an agent on an event loop that
        is not to wait may be made without it.
        """
        head = self._store.sync.run(self._kept.head(self._session_id))
        if head is None:
            return None
        state = state_of(head.state, self._session_id)
        self._known, self._given = kept_form(state), state
        return state

    async def on_reply(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Next
    ) -> AsyncGenerator[Any, None]:
        """Go on from where the session stands, and keep the reply; what cannot be is raised."""
        if self._turn is not None:
            raise SessionBusyError(
                f"session {self._session_id!r} is in the middle of a reply: await that first, or "
                "give each agent a HoldfastMiddleware with a session_id of its own"
            )
        await self._check_tools(agent)
        run = self._store.async_client.session(
            self._kept.agent_id,
            self._session_id,
            state={"agent": kept_form(agent.state), "reply": {"stage": "ended"}},
            **self._options,
        )
        final = None
        try:
            async with run:
                await run.load_effects()
                known = self._known if agent.state is self._given else None
                self._turn = turn = Turn(run, agent, self._effects, known)
                async for item in turn.reply(input_kwargs, next_handler):
                    if turn.is_final(item):
                        final = item  # given to the caller when all is kept
                    else:
                        yield item
        finally:
            if self._turn is not None:
                self._known, self._given = self._turn.known, agent.state
                self._turn = None
        if final is not None:
            yield final

    async def on_reasoning(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Next
    ) -> AsyncGenerator[Any, None]:
        """Keep what the model is asked with, and what it answers."""
        async for item in self._running().reasoning(input_kwargs, next_handler):
            yield item

    async def on_acting(
        self, agent: Agent, input_kwargs: dict[str, Any], next_handler: Next
    ) -> AsyncGenerator[Any, None]:
        """Journal a call of a tool, or give what it gave before."""
        async for item in self._running().acting(input_kwargs, next_handler):
            yield item

    def _running(self) -> Turn:
        if self._turn is None:
            raise InvalidArgumentError(
                f"the reply on session {self._session_id!r} has ended: nothing more is kept of it"
            )
        return self._turn

    async def _check_tools(self, agent: Agent) -> None:
        for name in self._effects:
            if await agent.toolkit.get_tool(name) is None:
                raise InvalidArgumentError(
                    f"effects names a tool {name!r} that agent {agent.name!r} does not have: "
                    "effects are declared by the names of tools"
                )
