"""A store around another: a wrapper writes down what it changes, and all else is forwarded."""

from __future__ import annotations

from collections.abc import Collection, Container
from datetime import datetime
from typing import ClassVar, TypeVar

from holdfast.model import CheckpointInfo
from holdfast.stores.base import (
    Collected,
    Commit,
    Note,
    NotesOnly,
    Query,
    Record,
    SessionInfo,
    Stats,
    Store,
    given,
)

C = TypeVar("C")


class WrappedStore(Store):
    """Forwards every method and every capability to the store within."""

    hidden: ClassVar[tuple[type, ...]] = ()
    """Capabilities of the store within that do not hold for what is around it."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        self.shares_chunks = inner.shares_chunks
        self.allow_pickle = inner.allow_pickle

    @property
    def name(self) -> str:
        return self.inner.name

    def capability(self, kind: type[C]) -> C | None:
        """Return the wrapper itself if it has the capability, else what the store within says."""
        if kind in self.hidden:
            return None
        return super().capability(kind) or self.inner.capability(kind)

    def commit(self, commit: Commit | NotesOnly) -> None:
        self.inner.commit(commit)

    def load(self, checkpoint_id: str, verify: bool = True) -> Record | None:
        return self.inner.load(checkpoint_id, verify)

    def fetch(self, names: Collection[bytes]) -> dict[bytes, bytes]:
        return self.inner.fetch(names)

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> list[Note]:
        return self.inner.notes(scopes, after, limit)

    def match(self, prefix: str, limit: int, after: str = "") -> list[str]:
        return self.inner.match(prefix, limit, after)

    def query(self, query: Query) -> list[CheckpointInfo]:
        return self.inner.query(query)

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> list[SessionInfo]:
        asked = {"session_id": session_id, "limit": limit, "before": before}
        return self.inner.heads(agent_id, **given(asked))

    def delete(self, checkpoint_ids: Collection[str]) -> int:
        return self.inner.delete(checkpoint_ids)

    def sweep(self, now: datetime) -> int:
        return self.inner.sweep(now)

    def collect(self, live: Container[bytes], before: datetime, dry_run: bool) -> Collected:
        return self.inner.collect(live, before, dry_run)

    def stats(self) -> Stats:
        return self.inner.stats()

    def close(self) -> None:
        self.inner.close()
