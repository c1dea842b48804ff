"""The Session of the SDK: a conversation whose every change is a checkpoint."""

from __future__ import annotations

from typing import Any

from agents.memory import SessionSettings

from holdfast.adapters.kept import Kept, KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client, SyncClient
from holdfast.core.conversation.frameworks import openai_agents
from holdfast.core.conversation.frameworks.openai_items import repaired
from holdfast.errors import AdapterError, InvalidArgumentError
from holdfast.model import Framework, checked_name
from holdfast.runtime.steps import Plan


class HoldfastSession:
    """A conversation that ``Runner.run(agent, prompt, session=…)`` goes on with.

    ``HoldfastSession("ada", url="sqlite:///agent.db")``; see docs/openai-agents.md.
    """

    def __init__(
        self,
        session_id: str,
        client: Client | SyncClient | None = None,
        *,
        url: str | None = None,
        agent_id: str = Framework.OPENAI_AGENTS.value,
        session_settings: SessionSettings | None = None,
        workspace: Any = None,
    ) -> None:
        self.session_id = checked_name("session_id", session_id)
        self.session_settings = session_settings or SessionSettings()
        self._store = AdapterStore.given(client, url)
        self._has_added = False
        self._kept = KeptSessions(self._store, Framework.OPENAI_AGENTS, agent_id, workspace)

    @property
    def client(self) -> SyncClient:
        """A client of the store, to look at what was kept."""
        return self._store.client

    async def get_items(self, limit: int | None = None) -> list[Any]:
        """Return the conversation, or its last items, in order.

        Every call in it is answered: one that was cut off is told to the model as that.
        """
        if limit is None:
            limit = self.session_settings.limit
        items = await self._store.aio.run(self._items())
        if limit is not None:
            items = items[-limit:] if limit > 0 else []
        return repaired(items)

    async def add_items(self, items: list[Any]) -> None:
        """Keep items behind those that are there, as one checkpoint.

        A program that was killed before its prompt was answered, and gives it again, has it once.
        """
        given = [_plain(item) for item in items]
        if not given:
            return
        is_first, self._has_added = not self._has_added, True
        if is_first and _is_prompt(given):
            known = await self._store.aio.run(self._items())
            if known[-len(given) :] == given:
                return
        await self._change(lambda known: [*known, *given], _named(given))

    async def pop_item(self) -> Any | None:
        """Take back the newest item; the checkpoints before still have it."""
        popped: list[Any] = []

        def without_last(known: list[Any]) -> list[Any]:
            popped[:] = known[-1:]
            return known[:-1]

        if await self._store.aio.run(self._items()):
            await self._change(without_last, "item taken back")
        return popped[0] if popped else None

    async def clear_session(self) -> None:
        """Begin anew; a rollback leads back to what was there."""
        if await self._store.aio.run(self._items()):
            await self._change(lambda known: [], "cleared")

    async def close(self) -> None:
        """Close the store, if the session opened it."""
        self._kept.close()
        await self._store.aclose()

    async def _change(self, change: Any, name: str) -> Kept:
        def changed(state: Any) -> dict[str, Any]:
            said = state.get("instructions") if isinstance(state, dict) else None
            return {
                "items": change(_found(self.session_id, state)),
                "instructions": said,
                "run": None,
            }

        return await self._store.aio.run(self._kept.update(self.session_id, changed, name=name))

    def _items(self) -> Plan[list[Any]]:
        kept = yield from self._kept.head(self.session_id)
        return _found(self.session_id, None if kept is None else kept.state)


def _found(session_id: str, state: Any) -> list[Any]:
    if state is None:
        return []
    native = openai_agents.extract(state)
    if native is None:
        raise AdapterError(
            f"the head of session {session_id!r} holds no conversation of the OpenAI Agents SDK; "
            "roll it back to a checkpoint that does, or use another session_id"
        )
    return list(native.messages)


def _plain(item: Any) -> Any:
    if isinstance(item, dict):
        return item
    if hasattr(item, "model_dump"):
        return item.model_dump(mode="json", exclude_unset=True)
    raise InvalidArgumentError(
        f"items of a session are dicts in the form of the Responses API, not {type(item).__name__}"
    )


def _is_prompt(items: list[Any]) -> bool:
    return all(item.get("role") == "user" for item in items)


def _named(items: list[Any]) -> str:
    """Return what happened, in the user's words."""
    kinds = {item.get("type") or "message" for item in items}
    if any(item.get("role") == "user" for item in items):
        return "user prompt"
    return "tools" if "function_call_output" in kinds else "model"
