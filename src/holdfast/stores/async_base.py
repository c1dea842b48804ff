"""A store as event loops ask it: the same methods, each to be awaited."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Container
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

if TYPE_CHECKING:
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
    )
    from holdfast.system.threads import Threads

C = TypeVar("C")


class AsyncStore(Protocol):
    """The methods of Store, to be awaited on any event loop, which none of them blocks."""

    def commit(self, commit: Commit | NotesOnly) -> Awaitable[None]: ...

    def load(self, checkpoint_id: str, verify: bool = True) -> Awaitable[Record | None]: ...

    def fetch(self, names: Collection[bytes]) -> Awaitable[dict[bytes, bytes]]: ...

    def notes(
        self, scopes: Collection[str] | None, after: int = 0, limit: int | None = None
    ) -> Awaitable[list[Note]]: ...

    def match(self, prefix: str, limit: int, after: str = "") -> Awaitable[list[str]]: ...

    def query(self, query: Query) -> Awaitable[list[CheckpointInfo]]: ...

    def heads(
        self,
        agent_id: str | None = None,
        *,
        session_id: str | None = None,
        limit: int | None = None,
        before: str | None = None,
    ) -> Awaitable[list[SessionInfo]]: ...

    def delete(self, checkpoint_ids: Collection[str]) -> Awaitable[int]: ...

    def sweep(self, now: datetime) -> Awaitable[int]: ...

    def collect(
        self, live: Container[bytes], before: datetime, dry_run: bool
    ) -> Awaitable[Collected]: ...

    def stats(self) -> Awaitable[Stats]: ...

    def capability(self, kind: type[C]) -> C | None:
        """Return what speaks for a capability, its methods to be awaited too; None without it."""

    def release(self) -> None:
        """End what was begun for event loops and write what they queued, from outside of any."""

    async def close(self) -> None:
        """Release everything, the store as well."""


Carry = Callable[..., Awaitable[Any]]
"""Calls a function with arguments, and is awaited."""


class _Awaited:
    """The methods of something sync, each to be awaited."""

    def __init__(self, sync: Any, carry: Carry) -> None:
        self._sync = sync
        self._carry = carry

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._sync, name)

        def awaited(*args: Any, **named: Any) -> Awaitable[Any]:
            return (
                self._carry(lambda: method(*args, **named)) if named else self._carry(method, *args)
            )

        return awaited


class AwaitedStore(_Awaited):
    """A sync store whose methods are awaited, however they are carried out."""

    def capability(self, kind: type[C]) -> C | None:
        found = self._sync.capability(kind)
        return None if found is None else cast(C, _Awaited(found, self._carry))

    def release(self) -> None:
        """Do nothing: there are only the threads, which are their owner's."""

    async def close(self) -> None:
        import asyncio

        await asyncio.to_thread(self._sync.close)


def in_threads(store: Store, threads: Threads) -> AsyncStore:
    """Return a store whose methods run in threads, so that what they wait for blocks no loop."""
    return cast(AsyncStore, AwaitedStore(store, threads.run))


def at_once(store: Store) -> AsyncStore:
    """Return a store whose methods wait for nothing, and are called on the event loop itself."""

    async def call(function: Callable[..., Any], *args: Any) -> Any:
        return function(*args)

    return cast(AsyncStore, AwaitedStore(store, call))
