"""Channels of events, which outlive who publishes and who listens."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

from holdfast.client.verb_group import VerbGroup
from holdfast.runtime import AsyncRuntime, SyncRuntime
from holdfast.verbs import events
from holdfast.verbs.events import Event


class Events(VerbGroup[SyncRuntime]):
    """Telling others what happened, and hearing of it: ``client.events``."""

    def publish(
        self,
        channel: str,
        checkpoint_id: str | None = None,
        *,
        ttl_seconds: float | None = None,
        **data: Any,
    ) -> None:
        """Announce something on a channel; it is durable when this returns."""
        self.runtime.run(events.publish(self._engine, channel, checkpoint_id, data, ttl_seconds))

    def subscribe(
        self, channel: str, after: str | Event | None = None, *, timeout: float | None = None
    ) -> Iterator[Event]:
        """Yield the events of a channel in order: all that are kept, then new ones as they come.

        ``after`` the cursor of the last event you have dealt with, each comes at least once, also
        over restarts. Ends when ``timeout`` seconds pass without one.
        """
        events.scope(channel)
        return self._follow(channel, events.place(after), timeout)

    def _follow(self, channel: str, at: int, timeout: float | None) -> Iterator[Event]:
        while self.runtime.run(events.wait(self._engine, channel, at, timeout)):
            for event in self.runtime.run(events.read(self._engine, channel, at)):
                at = int(event.cursor)
                yield event


class AsyncEvents(VerbGroup[AsyncRuntime]):
    """Events, awaited."""

    async def publish(
        self,
        channel: str,
        checkpoint_id: str | None = None,
        *,
        ttl_seconds: float | None = None,
        **data: Any,
    ) -> None:
        """Announce something on a channel; it is durable when this returns."""
        await self.runtime.run(
            events.publish(self._engine, channel, checkpoint_id, data, ttl_seconds)
        )

    def subscribe(
        self, channel: str, after: str | Event | None = None, *, timeout: float | None = None
    ) -> AsyncIterator[Event]:
        """Yield the events of a channel in order: all that are kept, then new ones as they come.

        See Events.subscribe.
        """
        events.scope(channel)
        return self._follow(channel, events.place(after), timeout)

    async def _follow(self, channel: str, at: int, timeout: float | None) -> AsyncIterator[Event]:
        while await self.runtime.run(events.wait(self._engine, channel, at, timeout)):
            for event in await self.runtime.run(events.read(self._engine, channel, at)):
                at = int(event.cursor)
                yield event
