"""Calls whose effect lasts: begun and ended in a run, as calls of any other program are.

While such a tool is at work its session is held by a run, through which all else is written. If the
process is killed there, the call is one of unknown end, for a person to decide of.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.adapters.claude_agent_sdk.sessions import Change
from holdfast.adapters.claude_agent_sdk.transcript import Call, was_interrupted
from holdfast.adapters.held_calls import HeldCalls
from holdfast.adapters.journal import Effects, ToolEffect, ToolJournal, checked_effects, opened
from holdfast.adapters.kept import KeptSessions
from holdfast.adapters.opening import AdapterStore
from holdfast.client import Client
from holdfast.core.conversation.frameworks.claude_entries import Entry, content_of, results_in
from holdfast.core.short_repr import brief
from holdfast.errors import ApprovalDeniedError, RunError, UnknownEffectError
from holdfast.runtime.steps import Plan
from holdfast.session import heads
from holdfast.session.async_run import AsyncRun
from holdfast.session.effects import RULES, Effect
from holdfast.session.recorded import calls_in, calls_noted
from holdfast.verbs.read import restore

_ROOM = 2000


class _LeftOpen(BaseException):
    """Lets go of a session as an interrupt does: calls of unknown end stay so."""


@dataclass(frozen=True)
class Begun:
    """What a hook answers before a tool runs."""

    denied: str | None = None
    """Why it does not run."""
    arguments: dict[str, Any] | None = None
    """Others than the model gave, where who approved it changed them."""


@dataclass
class _Held:
    """A session that is held by a run while lasting calls are made."""

    run: AsyncRun
    journal: ToolJournal
    calls: HeldCalls
    under_way: dict[str, str] = field(default_factory=dict)
    """The ids of calls that are being made, and those under which they are recorded."""
    waiting: int = 0
    """How many more may begin: somebody is asked whether they may."""


class LastingCalls:
    """The lasting calls of all sessions of a store."""

    def __init__(self, store: AdapterStore, kept: KeptSessions) -> None:
        self._client = store.async_client
        self._kept = kept
        self._effects: dict[str, ToolEffect] = {}
        self._approval: Any = None
        self._held: dict[str, _Held] = {}
        self._locks: WeakKeyDictionary[Any, dict[str, asyncio.Lock]] = WeakKeyDictionary()

    def writing(self, name: str) -> asyncio.Lock:
        """Return what who writes a session holds: no run takes it or leaves it meanwhile."""
        own = self._locks.setdefault(asyncio.get_running_loop(), {})
        return own.setdefault(name, asyncio.Lock())

    def declare(self, effects: Effects | None, approval: Any) -> None:
        """Know what tools do to the world, and who is asked before."""
        self._effects = {**self._effects, **checked_effects(effects)}
        self._approval = approval if approval is not None else self._approval

    def is_lasting(self, tool: str) -> bool:
        """Return whether a tool does what no rollback of state and files undoes."""
        effect = self._effects.get(tool)
        return effect is not None and RULES[effect.kind].lasts

    def is_open(self, name: str) -> bool:
        """Return whether a session is held by a run."""
        return name in self._held

    async def change(self, name: str, change: Change, title: str) -> None:
        """Write a transcript through the run that holds its session."""
        run = self._held[name].run
        before = run.state
        changed = change(before)
        if changed is None:
            return
        run.state = changed
        try:
            # Not run.checkpoint: calls of unknown end do not keep the conversation from going on.
            await run._runtime.run(run._session.checkpointer.checkpoint(title))
        except BaseException:
            run.state = before
            raise

    async def begin(self, name: str, call: Call) -> Begun:
        """Record that a call begins; it does not where it may have been made before."""
        async with self.writing(name):
            held = self._held.get(name) or await self._hold(name)
            held.waiting += 1
        key = self._key_of(held.run, call)
        try:
            begun = await held.calls.begin(call.tool, key, call.arguments)
        except (ApprovalDeniedError, UnknownEffectError) as denied:
            return Begun(denied=str(denied))
        except RunError as error:
            held.journal.check()
            return Begun(denied=f"it was made before, and failed: {error}")
        else:
            if begun.is_recorded:
                said = brief(begun.output, _ROOM)
                return Begun(denied=f"it was made before and is not made twice; it gave: {said}")
            held.under_way[call.id] = key
            is_edited = begun.arguments != call.arguments
            return Begun(arguments=begun.arguments if is_edited else None)
        finally:
            held.waiting -= 1
            await self._let_go(name)

    def _key_of(self, run: AsyncRun, call: Call) -> str:
        """Return under which id a call is made: that of an equal one whose end the model missed."""
        entries = run.state["entries"]
        equal = [each for each in run.effects if _is_equal(each, call)]
        for effect in equal:
            is_left = effect.abandoned or effect.left or was_interrupted(entries, effect.key or "")
            if effect.key is not None and is_left and effect.status in ("started", "done"):
                return effect.key
        return call.id

    async def begun(self, name: str) -> set[str]:
        """Return the ids of lasting calls that were begun; whether they ended may be unknown."""
        session = (self._kept.agent_id, name)
        return {
            call.key
            for call in await self._client.runtime.run(_calls_of(self._client, session))
            if call.lasts and call.key is not None
        }

    async def _hold(self, name: str) -> _Held:
        run = self._client.session(
            self._kept.agent_id,
            name,
            framework=self._kept.framework,
            workspace=self._kept.workspace,
            approval=self._approval,
            on_divergence="live",
        )
        await opened(run)
        journal = ToolJournal(run, self._effects)
        held = self._held[name] = _Held(run, journal, HeldCalls(journal))
        return held

    async def end(self, name: str, call_id: str, output: Any, error: str | None) -> None:
        """Record how a call ended, with the files as they are then."""
        held = self._held.get(name)
        key = None if held is None else held.under_way.pop(call_id, None)
        if held is None or key is None:
            return
        try:
            if error is None:
                await held.calls.end(key, output)
            else:
                await held.calls.fail(key, RunError(error))
        finally:
            await self._let_go(name)

    async def answered(self, entries: Sequence[Entry]) -> None:
        """End calls that never ran: somebody else denied them, as their results say."""
        for name, held in list(self._held.items()):
            for entry in entries:
                for call_id in results_in(entry):
                    if call_id in held.under_way:
                        said = brief(content_of(entry), _ROOM)
                        await self.end(name, call_id, None, f"it did not run: {said}")

    async def _let_go(self, name: str, at_once: bool = False) -> None:
        async with self.writing(name):
            held = self._held.get(name)
            if held is None or ((held.under_way or held.waiting) and not at_once):
                return
            del self._held[name]
            is_known = not held.under_way and not held.run.unknown_effects()
            await held.calls.let_go()
            error = None if is_known else _LeftOpen()
            await held.run.__aexit__(None if error is None else _LeftOpen, error, None)

    async def leave(self, name: str) -> None:
        """Let go of a session; calls that are being made in it are of unknown end then."""
        await self._let_go(name, at_once=True)

    async def close(self) -> None:
        """Let go of all sessions."""
        for name in list(self._held):
            await self.leave(name)


def _calls_of(client: Client, session: tuple[str, str]) -> Plan[list[Effect]]:
    """Return the calls of a session that nobody holds, as they stand."""
    engine = client.runtime.engine
    head = yield from heads.find(engine, session, "raw")
    if head is None:
        return []
    kept = yield from restore(engine, head.info.checkpoint_id, True, "raw")
    before = yield from calls_in(engine, kept.effects)
    return [*before, *head.missed, *calls_noted(head.noted)]


def _is_equal(effect: Effect, call: Call) -> bool:
    return effect.lasts and effect.tool == call.tool and effect.kwargs == call.arguments
