"""Agents at work in sessions that their framework has kept: their tools are journaled meanwhile.

A framework that calls its adapter to have its state kept needs no run. Where its tools are to be
journaled one by one it has one, from the beginning of an agent's turn to its end; the session is
then written through that run, which holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.adapters.held_calls import HeldCalls
from holdfast.adapters.journal import Effects, ToolJournal, opened
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.errors import HoldfastError
from holdfast.session.async_run import AsyncRun


class OpenRun:
    """One agent at work: the run that holds its session, and the journal of its tools."""

    def __init__(self, run: AsyncRun, effects: Effects | None) -> None:
        self.run = run
        self.journal = ToolJournal(run, effects)
        self.calls = HeldCalls(self.journal)
        self.problem: HoldfastError | None = None
        """Why it came to no good end; whoever writes after that is told."""

    async def update(
        self, change: Callable[[Any], Any], *, name: str | None, tags: Mapping[str, Any]
    ) -> Any:
        """Keep what a function makes of the state; returns it.

        What goes wrong ends the run, so that nothing is written past it and others may go on.
        """
        if self.problem is not None:
            raise self.problem
        try:
            self.journal.check()
            return await self._update(change, name, tags)
        except HoldfastError as error:
            self.problem = error
            await self.close(asyncio.CancelledError())
            raise

    async def _update(
        self, change: Callable[[Any], Any], name: str | None, tags: Mapping[str, Any]
    ) -> Any:
        before = self.run.state
        state = self.run.state = change(before)
        try:
            await self.run.checkpoint(name, **tags)
        except BaseException:
            if self.run.state is state:
                self.run.state = before
            raise
        return state

    async def close(self, error: BaseException | None) -> None:
        """Let go of the session, and say how the work in it ended."""
        await self.run.__aexit__(None if error is None else type(error), error, None)


class OpenRuns:
    """The sessions of an adapter, written through the runs that are open in them."""

    def __init__(self, store: AdapterStore, kept: KeptSessions) -> None:
        self._store = store
        self._kept = kept
        self._open: dict[str, OpenRun] = {}

    def of(self, session_id: str) -> OpenRun | None:
        """Return the agent at work in a session, if one is."""
        return self._open.get(session_id)

    async def begin(
        self,
        session_id: str,
        effects: Effects | None,
        approval: Any = None,
        tags: Mapping[str, Any] | None = None,
        *,
        state: Any = None,
    ) -> OpenRun:
        """Hold a session while an agent works in it; an error if another does.

        ``state`` is what a new one begins with.
        """
        run = self._store.async_client.session(
            self._kept.agent_id,
            session_id,
            framework=self._kept.framework,
            workspace=self._kept.workspace,
            state=state,
            approval=approval,
            on_divergence="live",  # another prompt than the one that was cut off
            **(tags or {}),
        )
        known = self._open.get(session_id)
        if known is not None and known.problem is not None:
            del self._open[session_id]
        begun = self._open[session_id] = OpenRun(await opened(run), effects)
        return begun

    async def end(self, session_id: str, error: BaseException | None = None) -> None:
        """Let go of a session, and say how the work in it ended.

        Where calls were under way it was cut off, and nothing is kept of that.
        """
        opened = self._open.pop(session_id, None)
        if opened is None:
            return
        if await opened.calls.let_go():
            error = asyncio.CancelledError()
        if opened.problem is None:
            await opened.close(error)
            opened.journal.check()

    async def update(
        self,
        session_id: str,
        change: Callable[[Any], Any],
        *,
        name: str | None,
        tags: Mapping[str, Any],
    ) -> Any:
        """Keep what a function makes of the state of a session (None: there is none yet)."""
        opened = self.of(session_id)
        if opened is not None:
            return await opened.update(change, name=name, tags=tags)
        plan = self._kept.update(session_id, change, name=name, tags=tags)
        return (await self._store.aio.run(plan)).state
