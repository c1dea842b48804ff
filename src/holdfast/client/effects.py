"""Calls that were begun and of whose end nobody knows, of all sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.client.verb_group import VerbGroup
from holdfast.runtime import AsyncRuntime, SyncRuntime

if TYPE_CHECKING:
    from holdfast.session.unknown import UnknownCall


class Effects(VerbGroup[SyncRuntime]):
    """Deciding of calls of unknown end: ``client.effects``."""

    def unknown_effects(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> list[UnknownCall]:
        """Return the calls of unknown end that wait to be decided of, the oldest first.

        They may have done something that lasts. What a process is making just now is not among
        them.
        """
        from holdfast.session import unknown

        return self.runtime.run(unknown.unknown_calls(self._engine, agent_id, session_id))

    def resolve(
        self,
        effect_id: str,
        *,
        done: Any = ...,
        failed: str | Exception | bool | None = None,
        retry: bool = False,
        takeover: bool = False,
    ) -> UnknownCall:
        """Decide of a call of unknown end: it gave ``done``, ``failed``, or is to be made again.

        It is as if the program had decided with ``run.unknown_effects()``; when it is resumed, it
        finds that. A session that a living process works on is an error.
        """
        from holdfast.session import unknown

        verdict = unknown.verdict(done, failed, retry)
        call = self.runtime.run(unknown.find(self._engine, effect_id))
        session = unknown.session_of(self._engine, call, takeover)
        try:
            self.runtime.run(unknown.decide(session, call, verdict))
        finally:
            self.runtime.run(session.checkpointer.release())
        return call


class AsyncEffects(VerbGroup[AsyncRuntime]):
    """Effects, awaited."""

    async def unknown_effects(
        self, agent_id: str | None = None, session_id: str | None = None
    ) -> list[UnknownCall]:
        """Return the calls of unknown end that wait to be decided of, the oldest first.

        See Effects.unknown_effects.
        """
        from holdfast.session import unknown

        return await self.runtime.run(unknown.unknown_calls(self._engine, agent_id, session_id))

    async def resolve(
        self,
        effect_id: str,
        *,
        done: Any = ...,
        failed: str | Exception | bool | None = None,
        retry: bool = False,
        takeover: bool = False,
    ) -> UnknownCall:
        """Decide of a call of unknown end: it gave ``done``, ``failed``, or is to be made again.

        See Effects.resolve.
        """
        from holdfast.session import unknown

        verdict = unknown.verdict(done, failed, retry)
        call = await self.runtime.run(unknown.find(self._engine, effect_id))
        session = unknown.session_of(self._engine, call, takeover)
        try:
            await self.runtime.run(unknown.decide(session, call, verdict))
        finally:
            await self.runtime.run(session.checkpointer.release())
        return call
