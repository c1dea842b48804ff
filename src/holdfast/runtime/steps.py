"""Plans: generators that yield what they want done and are sent the answer.

The sync runtime answers with a plain call, the async one awaits; the logic is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Generator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar

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
from holdfast.stores.capabilities import (
    FilesRecords,
    FindsLastNotes,
    FindsNewest,
    ListsLost,
    ListsRoots,
    ListsTargets,
    Waits,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the store for something; in an async runtime the operation returns an awaitable."""

    operation: Callable[[Store], Any]


@dataclass(frozen=True, slots=True)
class Do:
    """Call a function that may wait for the disk."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Rest:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Call:
    """Call the user's own function, and await it if it is async."""

    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: Mapping[str, Any] = field(default_factory=dict)


Step = Ask | Do | Rest | Call
"""What a plan yields."""
Plan = Generator[Step, Any, T]
"""A generator that yields steps, is sent their answers, and returns a result."""


def _able(store: Store, kind: type[T]) -> T:
    found = store.capability(kind)
    if found is None:
        raise AssertionError(f"{store.name} is no store that {kind.__name__}: ask before")
    return found


def commit(commit: Commit | NotesOnly) -> Plan[None]:
    yield Ask(lambda store: store.commit(commit))


def load(checkpoint_id: str, verify: bool = True) -> Plan[Record | None]:
    answer: Record | None = yield Ask(lambda store: store.load(checkpoint_id, verify))
    return answer


def newest(agent_id: str, session_id: str) -> Plan[Record | None]:
    answer: Record | None = yield Ask(
        lambda store: _able(store, FindsNewest).newest(agent_id, session_id)
    )
    return answer


def fetch(names: Collection[bytes]) -> Plan[dict[bytes, bytes]]:
    answer: dict[bytes, bytes] = yield Ask(lambda store: store.fetch(names))
    return answer


def notes(
    scopes: Collection[str] | None, after: int = 0, limit: int | None = None
) -> Plan[list[Note]]:
    answer: list[Note] = yield Ask(lambda store: store.notes(scopes, after, limit))
    return answer


def last_notes(scopes: Collection[str], count: int) -> Plan[list[Note]]:
    answer: list[Note] = yield Ask(
        lambda store: _able(store, FindsLastNotes).last_notes(scopes, count)
    )
    return answer


def targets() -> Plan[list[str]]:
    answer: list[str] = yield Ask(lambda store: _able(store, ListsTargets).targets())
    return answer


def match(prefix: str, limit: int, after: str = "") -> Plan[list[str]]:
    answer: list[str] = yield Ask(lambda store: store.match(prefix, limit, after))
    return answer


def query(query: Query) -> Plan[list[CheckpointInfo]]:
    answer: list[CheckpointInfo] = yield Ask(lambda store: store.query(query))
    return answer


def heads(
    agent_id: str | None, limit: int | None = None, before: str | None = None
) -> Plan[list[SessionInfo]]:
    asked = given({"limit": limit, "before": before})
    answer: list[SessionInfo] = yield Ask(lambda store: store.heads(agent_id, **asked))
    return answer


def delete(checkpoint_ids: Collection[str]) -> Plan[int]:
    answer: int = yield Ask(lambda store: store.delete(checkpoint_ids))
    return answer


def sweep(now: datetime) -> Plan[int]:
    answer: int = yield Ask(lambda store: store.sweep(now))
    return answer


def roots(include_expired: bool, take: Callable[[list[bytes]], object]) -> Plan[None]:
    yield Ask(lambda store: _able(store, ListsRoots).roots(include_expired, take))


def collect(live: Container[bytes], before: datetime, dry_run: bool) -> Plan[Collected]:
    answer: Collected = yield Ask(lambda store: store.collect(live, before, dry_run))
    return answer


def stats() -> Plan[Stats]:
    answer: Stats = yield Ask(lambda store: store.stats())
    return answer


def lost() -> Plan[list[tuple[str, str]]]:
    answer: list[tuple[str, str]] = yield Ask(lambda store: _able(store, ListsLost).lost())
    return answer


def misfiled(infos: Collection[CheckpointInfo]) -> Plan[list[tuple[str, str]]]:
    answer: list[tuple[str, str]] = yield Ask(
        lambda store: _able(store, FilesRecords).misfiled(infos)
    )
    return answer


def wait(scope: str, after: int, timeout: float) -> Plan[None]:
    yield Ask(lambda store: _able(store, Waits).wait(scope, after, timeout))


def rest(seconds: float) -> Plan[None]:
    yield Rest(seconds)


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Plan[Any]:
    return (yield Call(function, args, kwargs))


def do(function: Callable[[], T]) -> Plan[T]:
    answer: T = yield Do(function)
    return answer
