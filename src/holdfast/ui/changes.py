"""What has changed in a store since it was looked at last, found without reading much of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from holdfast.errors import CheckpointIntegrityError
from holdfast.session import lease
from holdfast.stores.base import NOTE_TIES
from holdfast.stores.capabilities import glance_of, tick_of
from holdfast.ui.reading import DAMAGE

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import Note, Store

Key = tuple[str, str]

_PAGE = 100
_NOTES = 500
_SECOND = NOTE_TIES * 1_000_000
_OVERLAP = 2 * _SECOND
"""Of notes in different scopes, one with an earlier place may be seen later."""
_END = 2**62
_HELD_EVERY = 1.0
_ALL_EVERY = 5.0
_SHARE = 100
"""Looking through all sessions takes at most one part in so many of the time."""
_UNSEEN = ("/events/", "/workspaces/", "/objects", "/offers/", "/marks/")
"""Where notes are kept of which no view shows anything."""


@dataclass
class Found:
    """What looks different: these sessions, or all; and whether the inbox may."""

    sessions: set[Key] = field(default_factory=set)
    everything: bool = False
    inbox: bool = False

    def __bool__(self) -> bool:
        return bool(self.sessions) or self.everything or self.inbox

    def all(self) -> None:
        """Say that anything may look different."""
        self.everything = self.inbox = True


class Changes:
    """Knows what it has seen of a store, and finds what is new in it.

    Saves are seen in the page of the newest checkpoints, calls, questions and leases in the notes.
    What neither shows (a process that died, what expired, what came or went far behind) is seen
    more slowly: in the leases that are held, and in the heads of all sessions.
    """

    def __init__(self, client: SyncClient) -> None:
        self._client = client
        self.has_tick = tick_of(client.store) is not None
        self._mark = self._marked()  # first: what comes while the rest is read is found again
        self._notes = _Notes(client.store)
        self._page: dict[str, Key] = {}
        self._held: set[Key] = set()
        self._held_at = self._all_at = self._damaged_at = 0.0
        self._heads: dict[Key, tuple[str, int]] = {}
        self._asked: set[str] = set()
        self._is_explained = False
        for look in (self._look_at_page, self._look_at_notes, self._look_at_all):
            self._try(look, Found())
        recent = set(self._page.values())
        self._try(lambda found: self._look_at_leases(recent, found), Found())

    def look(self) -> Found:
        """Return what has changed since it was asked last."""
        found = Found()
        mark = self._marked()
        if mark is None or mark != self._mark:
            self._is_explained = False
            self._try(self._look_at_page, found)
            self._try(self._look_at_notes, found)
            if self.has_tick and not self._is_explained:
                found.all()  # something else was written or removed
            self._mark = mark
        now = time.monotonic()
        if self._held and now >= self._held_at:
            self._try(lambda found: self._look_at_leases(self._held, found), found)
        if now >= self._all_at:
            self._try(self._look_at_all, found)
        return found

    def _marked(self) -> Any:
        store = self._client.store
        return tick_of(store) if self.has_tick else glance_of(store)

    def _try(self, look: Callable[[Found], None], found: Found) -> None:
        """Look; where something damaged is in the way, anything may have changed."""
        try:
            look(found)
        except DAMAGE:
            now = time.monotonic()
            if self.has_tick or now >= self._damaged_at:
                self._damaged_at = now + _ALL_EVERY
                found.all()

    def _look_at_page(self, found: Found) -> None:
        newest = self._client.find(limit=_PAGE)
        page = {info.checkpoint_id: (info.agent_id, info.session_id) for info in newest}
        seen, self._page = self._page, page
        fresh = page.keys() - seen.keys()
        kept = len(page) - len(fresh)
        if (fresh and not kept and seen) or kept < min(len(seen), _PAGE - len(fresh)):
            found.all()  # more came than a page has, or something was removed
        if fresh:
            self._is_explained = True
            found.sessions |= {page[each] for each in fresh}
            found.inbox = True

    def _look_at_notes(self, found: Found) -> None:
        fresh = self._notes.fresh()
        if fresh is None:
            found.all()
            return
        self._is_explained = self._is_explained or bool(fresh)
        leased = set()
        for note in fresh:
            session = _session_of(note.scope)
            if session is not None:
                leased.add(session)
                if note.key.count("/") > 1 and not note.key.endswith("/released"):
                    continue  # renewed: nobody sees that
                found.sessions.add(session)
                found.inbox = True
            elif note.scope in self._page:
                found.sessions.add(self._page[note.scope])
                found.inbox = True
            elif not note.scope.startswith(_UNSEEN):
                found.all()
        if leased:
            self._look_at_leases(self._held | leased, found)

    def _look_at_leases(self, keys: set[Key], found: Found) -> None:
        """See which sessions are held: a process that was killed writes nothing of it."""
        self._held_at = time.monotonic() + _HELD_EVERY
        endings = self._client.runtime.run(lease.endings(self._client.runtime.engine, keys))
        held = {key for key, ending in endings.items() if ending.is_held}
        over = (self._held & keys) - held
        self._held = held | (self._held - keys)
        found.sessions |= over
        found.inbox = found.inbox or bool(over)

    def _look_at_all(self, found: Found) -> None:
        begun = time.monotonic()
        self._all_at = begun + _ALL_EVERY
        heads = {
            (each.agent_id, each.session_id): (each.head.checkpoint_id, each.checkpoints)
            for each in self._client.store.heads()
        }
        asked = {each.effect_id for each in self._client.pending()}
        found.sessions |= {key for key, _ in heads.items() ^ self._heads.items()}
        found.inbox = found.inbox or asked != self._asked
        self._heads, self._asked = heads, asked
        self._all_at = max(self._all_at, begun + (time.monotonic() - begun) * _SHARE)


def _session_of(scope: str) -> Key | None:
    kind, _, rest = scope.removeprefix("/").partition("/")
    agent, mark, session = rest.partition("/")
    if kind != "sessions" or not mark:
        return None
    return unquote(agent, errors="surrogatepass"), session


class _Notes:
    """The notes of a store, as they come; where they end is found without reading them."""

    def __init__(self, store: Store) -> None:
        self._store = store
        low, high = 0, _END
        while high - low > _SECOND:
            middle = (low + high) // 2
            low, high = (middle, high) if self._is_any_past(middle) else (low, middle)
        self._after = self._last = low
        self._seen: frozenset[int] = frozenset()

    def _is_any_past(self, place: int) -> bool:
        try:
            return bool(self._store.notes(None, place, 1))
        except CheckpointIntegrityError:
            return True  # one that is damaged

    def fresh(self) -> list[Note] | None:
        """Return those that came; None if they were too many to be read at once."""
        page = self._store.notes(None, self._after, _NOTES)
        fresh = [note for note in page if note.seq not in self._seen]
        self._last = max([self._last, *(note.seq for note in page)])
        if len(page) == _NOTES:
            self._after, self._seen = self._last, frozenset()
            return None
        self._after = max(self._last - _OVERLAP, 0)
        self._seen = frozenset(note.seq for note in page)
        return fresh
