"""What changes in a store, told to every page as it happens; one thread looks for all of them."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast._version import __version__
from holdfast.errors import HoldfastError
from holdfast.ui.changes import Changes, Found
from holdfast.ui.guard import Message, Receive, Scope, Send

if TYPE_CHECKING:
    from holdfast.client import SyncClient

logger = logging.getLogger("holdfast.ui")

POLL = 0.25
POLL_A_SERVER = 0.5
PING = 15.0
_LONGEST_REST = 5.0
_NAMED = 200
"""How many sessions are named before it is said that any may have changed."""
_WAITING = 16
"""How many events wait for a page before they become one."""

Event = tuple[str, dict[str, Any]]


def _changed(found: Found) -> Event:
    named = found.everything or len(found.sessions) > _NAMED
    sessions = None if named else sorted(map(list, found.sessions))
    at = datetime.now(UTC).isoformat()
    return "changed", {"sessions": sessions, "inbox": found.inbox, "at": at}


def _anything() -> Event:
    return _changed(Found(everything=True, inbox=True))


class Subscription:
    """What one page has not been told yet."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()

    def tell(self, event: Event | None) -> None:
        """Add an event, from any thread; None is the end."""
        try:
            self._loop.call_soon_threadsafe(self._add, event)
        except RuntimeError:
            pass  # its loop has ended, and the page with it

    def _add(self, event: Event | None) -> None:
        if event is not None and self._events.qsize() >= _WAITING:
            last: Event | None = None
            while not self._events.empty():
                told = self._events.get_nowait()
                if told is None:
                    event = None
                elif told[0] != "changed":
                    last = told
            if event is not None and event[0] != "changed":
                last = event
            self._events.put_nowait(_anything())
            if last is not None:
                self._events.put_nowait(last)
            if event is None:
                self._events.put_nowait(None)
            return
        self._events.put_nowait(event)

    async def next(self, timeout: float) -> Event | None:
        """Return the next event, or None at the end; raises TimeoutError if nothing comes."""
        return await asyncio.wait_for(self._events.get(), timeout)


class Live:
    """Tells all pages of an application what changes; looks only while there is a page."""

    def __init__(self, client: Callable[[], SyncClient]) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._pages: set[Subscription] = set()
        self._stop: threading.Event | None = None
        self._trouble: str | None = None
        self._servers = 0
        self._ended = False

    @property
    def pages(self) -> int:
        """How many pages are told."""
        return len(self._pages)

    def subscribe(self) -> Subscription:
        """Begin to tell a page, which runs on the current event loop."""
        page = Subscription(asyncio.get_running_loop())
        with self._lock:
            if self._ended:
                page.tell(None)
                return page
            self._pages.add(page)
            if self._trouble is not None:
                page.tell(("lost", {"message": self._trouble}))
            if self._stop is not None:
                page.tell(_anything())  # what was written as it was read and nobody told it yet
            else:
                self._stop = threading.Event()
                name = "holdfast-ui-follower"
                threading.Thread(
                    target=self._follow, args=(self._stop,), name=name, daemon=True
                ).start()
        return page

    def leave(self, page: Subscription) -> None:
        """Tell a page nothing any more."""
        with self._lock:
            self._pages.discard(page)
            if not self._pages and self._stop is not None:
                self._stop.set()
                self._stop = None
                self._trouble = None

    def begin(self) -> None:
        """Be ready to tell, for a server that starts (again)."""
        with self._lock:
            self._servers += 1
            self._ended = False

    def end(self) -> bool:
        """Know that a server has stopped; returns whether it was the last that tells pages."""
        with self._lock:
            self._servers -= 1
            is_last = self._servers <= 0
        if is_last:
            self.hush()
        return is_last

    def hush(self) -> None:
        """End all streams."""
        with self._lock:
            self._ended = True
            pages = list(self._pages)
        for page in pages:
            page.tell(None)

    def _tell(self, stop: threading.Event, event: Event) -> None:
        with self._lock:
            if stop.is_set():
                return
            if event[0] != "changed":
                self._trouble = event[1].get("message")
            pages = list(self._pages)
        for page in pages:
            page.tell(event)

    def _follow(self, stop: threading.Event) -> None:
        changes: Changes | None = None
        is_lost = False
        while not stop.is_set():
            begun = time.monotonic()
            try:
                if changes is None:
                    changes = Changes(self._client())
                    # What was written as the page was read and nobody looked yet.
                    event: Event | None = _anything()
                else:
                    found = changes.look()
                    event = _changed(found) if found else None
                if is_lost:
                    is_lost, event = False, _anything()
                    self._tell(stop, ("back", {}))
                if event is not None:
                    self._tell(stop, event)
            except Exception as error:
                logger.debug("the store cannot be followed", exc_info=True)
                changes = None  # it may be opened anew
                if not is_lost:
                    is_lost = True
                    self._tell(stop, ("lost", {"message": _said(error)}))
            has_tick = changes is not None and changes.has_tick and not is_lost
            # A store that is slow to look at is not looked at all the time.
            took = time.monotonic() - begun
            stop.wait(max(POLL if has_tick else POLL_A_SERVER, min(took, _LONGEST_REST)))


class EventStream:
    """The answer of ``events``: what changes, as server-sent events, until the page goes."""

    def __init__(self, live: Live, ping: float = PING) -> None:
        self._live = live
        self._ping = ping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Tell one page."""
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        headers.append((b"x-accel-buffering", b"no"))  # which proxies would otherwise do
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        if scope["method"] == "HEAD":
            await send({"type": "http.response.body", "body": b""})
            return
        page = self._live.subscribe()
        leaving = asyncio.create_task(_gone(receive, page))
        try:
            await send(_written("hello", {"version": __version__}))
            while True:
                try:
                    event = await page.next(self._ping)
                except TimeoutError:
                    await send(_written("ping", {}))
                    continue
                if event is None:
                    break
                await send(_written(*event))
            await send({"type": "http.response.body", "body": b""})
        except (OSError, asyncio.CancelledError):
            pass  # the page has gone, or the server does not wait for it
        finally:
            self._live.leave(page)
            leaving.cancel()


def _said(error: Exception) -> str:
    """Return what is told of an error; what others say of it may hold anything."""
    return str(error) if isinstance(error, HoldfastError) else type(error).__name__


def _written(name: str, data: dict[str, Any]) -> Message:
    body = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
    return {"type": "http.response.body", "body": body, "more_body": True}


async def _gone(receive: Receive, page: Subscription) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    page.tell(None)
