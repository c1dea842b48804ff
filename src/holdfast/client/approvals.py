"""Calls that wait for somebody to allow them, of all sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.verb_group import VerbGroup
from holdfast.runtime import AsyncRuntime, SyncRuntime

if TYPE_CHECKING:
    from holdfast.session.approval import Question


class Approvals(VerbGroup[SyncRuntime]):
    """Deciding of calls that wait (``approval="wait"``): ``client.approvals``."""

    def pending(self, agent_id: str | None = None) -> list[Question]:
        """Return the calls that wait for approval, of all sessions, the oldest first."""
        from holdfast.session import approval

        return self.runtime.run(approval.pending(self._engine, agent_id))

    def approve(
        self,
        effect_id: str,
        reason: str | None = None,
        *,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Question:
        """Allow a call that waits; with ``args`` or ``kwargs`` it is made with those instead."""
        from holdfast.session import approval

        decision = approval.Decision(True, reason, args, kwargs)
        return self.runtime.run(approval.decide(self._engine, effect_id, decision))

    def deny(self, effect_id: str, reason: str | None = None) -> Question:
        """Refuse a call that waits; the program gets ApprovalDeniedError."""
        from holdfast.session import approval

        decision = approval.Decision(False, reason)
        return self.runtime.run(approval.decide(self._engine, effect_id, decision))


class AsyncApprovals(VerbGroup[AsyncRuntime]):
    """Approvals, awaited."""

    async def pending(self, agent_id: str | None = None) -> list[Question]:
        """Return the calls that wait for approval, of all sessions, the oldest first."""
        from holdfast.session import approval

        return await self.runtime.run(approval.pending(self._engine, agent_id))

    async def approve(
        self,
        effect_id: str,
        reason: str | None = None,
        *,
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Question:
        """Allow a call that waits; with ``args`` or ``kwargs`` it is made with those instead."""
        from holdfast.session import approval

        decision = approval.Decision(True, reason, args, kwargs)
        return await self.runtime.run(approval.decide(self._engine, effect_id, decision))

    async def deny(self, effect_id: str, reason: str | None = None) -> Question:
        """Refuse a call that waits; the program gets ApprovalDeniedError."""
        from holdfast.session import approval

        decision = approval.Decision(False, reason)
        return await self.runtime.run(approval.decide(self._engine, effect_id, decision))
