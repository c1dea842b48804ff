"""Looking after a store: what it holds, whether it is whole, what may go, and bundles of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from holdfast.client.verb_group import VerbGroup
from holdfast.errors import InvalidArgumentError
from holdfast.runtime import AsyncRuntime, SyncRuntime, steps
from holdfast.stores.base import Collected, Stats
from holdfast.verbs import bundle, upkeep, verify
from holdfast.verbs import prune as pruning
from holdfast.verbs.bundle import Exported, Imported
from holdfast.verbs.progress import Progress
from holdfast.verbs.prune import Keep, Pruned
from holdfast.verbs.verify import Verified

DEFAULT_GRACE = 3600.0
"""Seconds for which gc leaves a chunk alone after it was written."""


def policy_of(policy: Keep | None, **rules: Any) -> Keep:
    """Return the policy that was given, or that of the rules that were."""
    given = {name: rule for name, rule in rules.items() if rule is not None and rule is not False}
    if policy is None:
        return Keep(**given)
    if given:
        raise InvalidArgumentError("give prune() a policy or rules, not both")
    return policy


class Upkeep(VerbGroup[SyncRuntime]):
    """Looking after a store: ``client.upkeep``."""

    def expire(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint now; False if there is none."""
        return self.runtime.run(upkeep.expire(self._engine, checkpoint_id))

    def prune(
        self,
        policy: Keep | None = None,
        *,
        last: int | None = None,
        within: timedelta | float | None = None,
        named: bool | Collection[str] = False,
        tags: Mapping[str, Any] | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pruned:
        """Remove what a policy does not keep: ``prune(Keep(last=10))`` or ``prune(last=10)``."""
        keep = policy_of(
            policy,
            last=last,
            within=within,
            named=named,
            tags=tags,
            agent_id=agent_id,
            session_id=session_id,
        )
        return self.runtime.run(pruning.prune(self._engine, keep, dry_run, progress))

    def gc(
        self,
        grace_seconds: float = DEFAULT_GRACE,
        dry_run: bool = False,
        *,
        progress: Progress | None = None,
    ) -> Collected:
        """Remove what has expired, and chunks that no checkpoint needs."""
        return self.runtime.run(upkeep.gc(self._engine, grace_seconds, dry_run, progress))

    def verify(self, progress: Progress | None = None) -> Verified:
        """Read every checkpoint and name each that is damaged."""
        return self.runtime.run(verify.verify(self._engine, progress))

    def stats(self) -> Stats:
        """Return how much the store holds."""
        return self.runtime.run(steps.stats())

    def export(
        self,
        file: str | Path,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        ids: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Exported:
        """Write checkpoints to a bundle file that any store can import."""
        return self.runtime.run(
            bundle.export(self._engine, file, agent_id, session_id, ids, progress)
        )

    def import_(self, file: str | Path, *, progress: Progress | None = None) -> Imported:
        """Bring the checkpoints of a bundle file into this store."""
        return self.runtime.run(bundle.import_(self._engine, file, progress))


class AsyncUpkeep(VerbGroup[AsyncRuntime]):
    """Upkeep, awaited."""

    async def expire(self, checkpoint_id: str) -> bool:
        """Remove a checkpoint now; False if there is none."""
        return await self.runtime.run(upkeep.expire(self._engine, checkpoint_id))

    async def prune(
        self,
        policy: Keep | None = None,
        *,
        last: int | None = None,
        within: timedelta | float | None = None,
        named: bool | Collection[str] = False,
        tags: Mapping[str, Any] | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> Pruned:
        """Remove what a policy does not keep: ``prune(Keep(last=10))`` or ``prune(last=10)``."""
        keep = policy_of(
            policy,
            last=last,
            within=within,
            named=named,
            tags=tags,
            agent_id=agent_id,
            session_id=session_id,
        )
        return await self.runtime.run(pruning.prune(self._engine, keep, dry_run, progress))

    async def gc(
        self,
        grace_seconds: float = DEFAULT_GRACE,
        dry_run: bool = False,
        *,
        progress: Progress | None = None,
    ) -> Collected:
        """Remove what has expired, and chunks that no checkpoint needs."""
        return await self.runtime.run(upkeep.gc(self._engine, grace_seconds, dry_run, progress))

    async def verify(self, progress: Progress | None = None) -> Verified:
        """Read every checkpoint and name each that is damaged."""
        return await self.runtime.run(verify.verify(self._engine, progress))

    async def stats(self) -> Stats:
        """Return how much the store holds."""
        return await self.runtime.run(steps.stats())

    async def export(
        self,
        file: str | Path,
        *,
        agent_id: str | None = None,
        session_id: str | None = None,
        ids: Collection[str] | None = None,
        progress: Progress | None = None,
    ) -> Exported:
        """Write checkpoints to a bundle file that any store can import."""
        return await self.runtime.run(
            bundle.export(self._engine, file, agent_id, session_id, ids, progress)
        )

    async def import_(self, file: str | Path, *, progress: Progress | None = None) -> Imported:
        """Bring the checkpoints of a bundle file into this store."""
        return await self.runtime.run(bundle.import_(self._engine, file, progress))
