"""What the sessions of an app and of a user share: the ``app:`` and ``user:`` keys of their state.

Each is a session of its own, as many change it: who is slower adds to what the other wrote.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.adapters.google_adk import records
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.model import Framework

Both = tuple[dict[str, Any], dict[str, Any]]
"""What an app shares, and what a user does."""


class SharedState:
    """The state of all apps, and of all users of each."""

    def __init__(self, store: AdapterStore, agent_id: str) -> None:
        self._store = store
        self._kept = KeptSessions(store, Framework.GOOGLE_ADK, agent_id)

    async def of(self, app_name: str, user_id: str) -> Both:
        """Return what the sessions of an app and of one of its users share."""
        return await self.add(app_name, user_id, {"app": {}, "user": {}})

    async def add(self, app_name: str, user_id: str, changes: records.Shared) -> Both:
        """Add to what they share; returns both."""
        app = await self._changed(records.app_record(app_name), changes["app"])
        user = await self._changed(records.user_record(app_name, user_id), changes["user"])
        return app, user

    async def _changed(self, record: str, change: Mapping[str, Any]) -> dict[str, Any]:
        if change:
            plan = self._kept.update(
                record, lambda state: {**(state or {}), **change}, name="shared state"
            )
            return dict((await self._store.aio.run(plan)).state)
        kept = await self._store.aio.run(self._kept.head(record))
        return {} if kept is None else dict(kept.state)
