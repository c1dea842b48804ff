"""The methods of a store whose work is written as plans, for threads and for event loops alike.

The sync store and its async twin differ in how a plan is carried out and in nothing else: what one
returns, the other returns to be awaited.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Container
from datetime import datetime
from typing import Any

from holdfast.stores.base import Commit, NotesOnly, Query


class PlannedStore(ABC):
    """Carries out a plan of the same name for every method."""

    _plans: Any
    """What has a plan, a generator of this store's own steps, for each method."""

    @abstractmethod
    def _carry_out(self, plan: Callable[..., Any], *args: Any) -> Any:
        """Return the result of a plan, given by the function that begins it; or an awaitable."""

    def commit(self, commit: Commit | NotesOnly) -> Any:
        return self._carry_out(self._plans.commit, commit)

    def load(self, checkpoint_id: str, verify: bool = True) -> Any:
        return self._carry_out(self._plans.load, checkpoint_id, verify)

    def fetch(self, names: Collection[bytes]) -> Any:
        return self._carry_out(self._plans.fetch, names)

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> Any:
        return self._carry_out(self._plans.notes, scopes, after, limit)

    def match(self, prefix: str, limit: int, after: str = "") -> Any:
        return self._carry_out(self._plans.match, prefix, limit, after)

    def query(self, query: Query) -> Any:
        return self._carry_out(self._plans.query, query)

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> Any:
        return self._carry_out(self._plans.heads, agent_id, session_id, limit, before)

    def delete(self, checkpoint_ids: Collection[str]) -> Any:
        return self._carry_out(self._plans.delete, checkpoint_ids)

    def sweep(self, now: datetime) -> Any:
        return self._carry_out(self._plans.sweep, now)

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Any:
        return self._carry_out(self._plans.collect, live, before, dry_run)

    def stats(self) -> Any:
        return self._carry_out(self._plans.stats)
