"""A store as the page asks it: its sessions are remembered, and what was saved since is added."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from holdfast.stores import WrappedStore
from holdfast.stores.base import Query, SessionInfo
from holdfast.stores.capabilities import tick_of

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Store

Key = tuple[str, str]

_PAGE = 100
"""More new checkpoints than these are not added one by one."""
_SECONDS = 5.0
_UNCHANGED = 60.0
"""For so many seconds sessions are as they were read; the more if nobody has written at all."""
_WORTH = 20
"""What took a second to read is good for so many."""


class SeenStore(WrappedStore):
    """Lists sessions from what it knows, and the page of the newest checkpoints.

    What neither shows (what others removed, or brought from elsewhere) is seen seconds later.
    """

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._sessions: list[SessionInfo] | None = None
        self._page: set[str] = set()
        self._tick: Any = None
        self._is_whole = False
        """Whether all sessions were read, and nobody has written since."""
        self._read_at = self._took = 0.0
        self._end: datetime | None = None

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[SessionInfo]:
        if before is not None:
            return super().heads(agent_id, session_id=session_id, limit=limit, before=before)
        with self._lock:  # of many who ask at once, one reads
            self._look()
            assert self._sessions is not None
            sessions = self._sessions
        names = {"agent_id": agent_id, "session_id": session_id}.items()
        return [
            each
            for each in sessions
            if all(name is None or getattr(each, what) == name for what, name in names)
        ][:limit]

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        removed = super().delete(checkpoint_ids)
        self._forget()
        return removed

    def sweep(self, now: datetime) -> int:
        removed = super().sweep(now)
        self._forget()
        return removed

    def _forget(self) -> None:
        with self._lock:
            self._sessions = None

    def _look(self) -> None:
        tick = tick_of(self.inner)  # first: what is written while the rest is read is seen again
        age = time.monotonic() - self._read_at
        is_known = self._sessions is not None and not self._has_expired()
        is_recent = age < max(_SECONDS, _WORTH * self._took)
        is_same = tick is not None and tick == self._tick
        if is_known and is_same and (is_recent or (self._is_whole and age < _UNCHANGED)):
            return
        if is_known and is_recent and self._add():
            self._tick, self._is_whole = tick, False
            return
        began = time.monotonic()
        page = self.inner.query(Query(limit=_PAGE))
        self._keep(self.inner.heads(), page)
        self._tick, self._is_whole = tick, True
        self._read_at = time.monotonic()
        self._took = self._read_at - began

    def _keep(self, sessions: list[SessionInfo], page: list[CheckpointInfo]) -> None:
        self._sessions = sessions
        self._page = {info.checkpoint_id for info in page}
        ends = (each.head.expires_at for each in sessions if each.head.ttl_seconds is not None)
        self._end = min((end for end in ends if end is not None), default=None)

    def _has_expired(self) -> bool:
        return self._end is not None and datetime.now(UTC) >= self._end

    def _add(self) -> bool:
        """Add what is new in the page of the newest; False if that is not all there may be."""
        page = self.inner.query(Query(limit=_PAGE))
        fresh = [info for info in page if info.checkpoint_id not in self._page]
        stayed = len(page) - len(fresh)
        # Of those before, only the last were pushed out; any other that is missing was removed.
        if (fresh and not stayed) or stayed < min(len(self._page), _PAGE - len(fresh)):
            return False
        if fresh:
            known = {(each.agent_id, each.session_id): each for each in self._sessions or ()}
            added = Counter((info.agent_id, info.session_id) for info in fresh)
            moved: dict[Key, SessionInfo] = {}
            for info in page:
                key = info.agent_id, info.session_id
                if key not in moved and key in added:
                    count = added[key] + (known[key].checkpoints if key in known else 0)
                    moved[key] = SessionInfo(*key, info, count)
                elif key not in moved and key in known:
                    moved[key] = known[key]
            known = {key: each for key, each in known.items() if key not in moved}
            self._keep([*moved.values(), *known.values()], page)
        return True
