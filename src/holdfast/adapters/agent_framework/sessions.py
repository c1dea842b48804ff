"""Sessions of agents as the framework stores them: an AgentSession under an id."""

from __future__ import annotations

import warnings
from typing import Any

from agent_framework import AgentSession, SessionStore

from holdfast.adapters.agent_framework import turn_state
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore, OnStore
from holdfast.client import Client, SyncClient
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework, checked_name


class _KeptSessions(OnStore):
    """Keeps each AgentSession that is set as a checkpoint of its session."""

    def __init__(
        self,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        agent_id: str = Framework.AGENT_FRAMEWORK.value,
    ) -> None:
        """Keep sessions in the store of a client or a URL; ``HOLDFAST_URL`` if neither is given."""
        self._store = AdapterStore.given(client, url)
        self._kept = KeptSessions(self._store, Framework.AGENT_FRAMEWORK, agent_id)

    async def get(self, session_id: str) -> AgentSession | None:
        """Return the session as its newest checkpoint holds it, or None if there is none."""
        head = await self._store.aio.run(self._kept.head(checked_name("session_id", session_id)))
        if head is None:
            return None
        found = turn_state.checked(head.state, session_id).get("session")
        if found is None:  # messages were kept, and no session yet
            return AgentSession(session_id=session_id)
        try:
            return AgentSession.from_dict(found)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            raise AdapterError(
                f"session {session_id!r} does not hold an AgentSession ({error}): register its "
                "types with agent_framework.register_state_type, or go back with holdfast rollback"
            ) from error

    async def set(self, session_id: str, session: AgentSession) -> None:
        """Keep a session as the next checkpoint; messages that a provider kept stay beside it."""
        checked_name("session_id", session_id)
        if not isinstance(session, AgentSession):
            raise InvalidArgumentError(
                f"what is stored is an AgentSession, not {type(session).__name__}"
            )
        plain = session.to_dict()

        def replaced(state: Any) -> dict[str, Any]:
            known = turn_state.checked(state, session_id) if state else {}
            return {**known, "session": plain}

        await self._store.aio.run(self._kept.update(session_id, replaced, name="session"))

    async def delete(self, session_id: str) -> None:
        """Remove a session with all its checkpoints."""
        await self._store.aio.run(self._kept.remove(checked_name("session_id", session_id)))


with warnings.catch_warnings():
    # That the framework may change what a session store is concerns who makes one, not who imports.
    warnings.simplefilter("ignore")

    class HoldfastSessionStore(_KeptSessions, SessionStore):
        """Keeps each AgentSession that is set as a checkpoint of its session.

        What a history provider keeps of the same session stays beside it.
        """
