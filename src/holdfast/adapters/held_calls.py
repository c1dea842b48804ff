"""Journaled calls of frameworks that tell when a tool begins and ends, but run it themselves."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from holdfast.adapters.journal import ToolJournal


@dataclass(frozen=True, slots=True)
class Begun:
    """What is known of a call when it begins."""

    is_recorded: bool
    """Whether it was made before: then ``output`` is what it gave."""
    output: Any = None
    arguments: Any = None
    """What it is to be made with, as who approved it may have edited that."""


class HeldCalls:
    """Calls that are under way: recorded as begun, and held until their end is told."""

    def __init__(self, journal: ToolJournal) -> None:
        self._journal = journal
        self._held: dict[str, tuple[asyncio.Task[Any], asyncio.Future[Any]]] = {}

    async def begin(self, name: str, call_id: str, arguments: Any) -> Begun:
        """Record that a call begins; or tell what it gave, or raise what it raised, before."""
        loop = asyncio.get_running_loop()
        entered: asyncio.Future[Any] = loop.create_future()
        outcome: asyncio.Future[Any] = loop.create_future()

        async def tool(arguments: Any) -> Any:
            entered.set_result(arguments)
            return await outcome

        call = asyncio.create_task(self._journal.call(name, call_id, arguments, tool))
        try:
            await asyncio.wait([call, entered], return_when=asyncio.FIRST_COMPLETED)
        except BaseException:
            call.cancel()
            raise
        if not entered.done():
            return Begun(is_recorded=True, output=await call)
        self._held[call_id] = call, outcome
        return Begun(is_recorded=False, arguments=entered.result())

    async def end(self, call_id: str, output: Any) -> None:
        """Record what a call gave; nothing happens if it is not under way."""
        call, outcome = self._held.pop(call_id, (None, None))
        if call is not None and outcome is not None:
            if not outcome.done():
                outcome.set_result(output)
            await call

    async def fail(self, call_id: str, error: Exception) -> None:
        """Record what a call raised; nothing happens if it is not under way."""
        call, outcome = self._held.pop(call_id, (None, None))
        if call is not None and outcome is not None:
            if not outcome.done():
                outcome.set_exception(error)
            done, _ = await asyncio.wait([call])
            problem = done.pop().exception()
            if problem is not None and problem is not error:
                raise problem

    async def let_go(self) -> bool:
        """Leave the calls that are under way: of their end nothing is known.

        Returns whether there were any.
        """
        held, self._held = self._held, {}
        under_way = [call for call, _ in held.values() if not call.done()]  # else its loop is over
        for call in under_way:
            call.cancel()
        if under_way:
            await asyncio.wait(under_way)
        return bool(held)
