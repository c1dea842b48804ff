"""Plans: generators that yield what they want done and are sent the answer.

The sync client answers with a plain call, the async one awaits; the logic is the same for both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from holdfast.model import CheckpointInfo
from holdfast.stores.base import Collected, Commit, Query, Record, SessionInfo, Stats

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Ask:
    """Call a method of the store."""

    method: str
    args: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Do:
    """Call a function that may wait for the disk."""

    function: Callable[[], Any]


Plan = Generator[Ask | Do, Any, T]


def commit(commit: Commit) -> Plan[None]:
    yield Ask("commit", (commit,))


def load(checkpoint_id: str, verify: bool = True) -> Plan[Record | None]:
    return (yield Ask("load", (checkpoint_id, verify)))


def fetch(names: Collection[bytes]) -> Plan[dict[bytes, bytes]]:
    return (yield Ask("fetch", (names,)))


def match(prefix: str, limit: int, after: str = "") -> Plan[list[str]]:
    return (yield Ask("match", (prefix, limit, after)))


def query(query: Query) -> Plan[list[CheckpointInfo]]:
    return (yield Ask("query", (query,)))


def heads(agent_id: str | None) -> Plan[list[SessionInfo]]:
    return (yield Ask("heads", (agent_id,)))


def delete(checkpoint_ids: Collection[str]) -> Plan[int]:
    return (yield Ask("delete", (checkpoint_ids,)))


def sweep(now: datetime) -> Plan[int]:
    return (yield Ask("sweep", (now,)))


def collect(live: Collection[bytes], before: datetime, dry_run: bool) -> Plan[Collected]:
    return (yield Ask("collect", (live, before, dry_run)))


def stats() -> Plan[Stats]:
    return (yield Ask("stats", ()))


def do(function: Callable[[], T]) -> Plan[T]:
    return (yield Do(function))
