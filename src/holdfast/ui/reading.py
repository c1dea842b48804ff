"""What the reading families share: what is read once for a moment, cursors, and damaged rows."""

from __future__ import annotations

import base64
import binascii
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from holdfast.cli.exits import UsageError
from holdfast.core.short_repr import brief
from holdfast.errors import (
    AdapterError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    SchemaMigrationError,
    SerializationError,
)
from holdfast.stores.base import Query
from holdfast.stores.capabilities import removals_of, tick_of

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import Store

T = TypeVar("T")

DAMAGE = (
    AdapterError,
    CheckpointIntegrityError,
    CheckpointNotFoundError,
    SchemaMigrationError,
    SerializationError,
)
"""What a row of a list may suffer from without harm to the others."""
LARGEST_VALUE = 20_000
_MOMENT = 2.0
"""For so many seconds what was read is good, if nobody has written since."""
_lock = threading.Lock()


class _Moment:
    """What was read last under a name."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.mark: Any = None
        self.began = 0.0
        self.value: Any = None


_kept: WeakKeyDictionary[Store, dict[str, _Moment]] = WeakKeyDictionary()


def for_a_moment(store: Store, name: str, read: Callable[[], T]) -> T:
    """Return what a function reads, or what it read a moment ago if nobody has written since.

    Of many who ask at once, one reads for all that came before it began.
    """
    came = time.monotonic()
    with _lock:
        moment = _kept.setdefault(store, {}).setdefault(name, _Moment())
    with moment.lock:
        mark = (tick_of(store), removals_of(store))
        is_unchanged = mark[0] is not None and moment.mark == mark
        if moment.began <= came and not (is_unchanged and came < moment.began + _MOMENT):
            began = time.monotonic()
            moment.value = read()
            moment.mark, moment.began = mark, began
        found: T = moment.value
        return found


def parent_of(client: SyncClient, info: CheckpointInfo) -> CheckpointInfo | None:
    """Return the checkpoint before one; None if there is none any more."""
    found = client.store.query(Query(ids=[info.parent_id])) if info.parent_id else []
    return found[0] if found else None


def of_each(
    read: Callable[[Any, Sequence[CheckpointInfo]], Mapping[str, T]],
    client: SyncClient,
    infos: Sequence[CheckpointInfo],
) -> dict[str, T]:
    """Return what a function reads of some checkpoints; nothing of those that are damaged."""
    try:
        return dict(read(client, infos))
    except DAMAGE:
        found: dict[str, T] = {}
        for info in infos:
            try:
                found.update(read(client, [info]))
            except DAMAGE:
                continue
        return found


def cursor_of(value: Any) -> str:
    """Return where a page ended, as a text that is given back as it is."""
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def from_cursor(given: str | None, kind: type[T]) -> T | None:
    """Return what a cursor says; None for the first page."""
    if given is None:
        return None
    try:
        padded = given.encode("ascii") + b"=" * (-len(given) % 4)
        found = json.loads(base64.b64decode(padded, b"-_", validate=True))
    except (ValueError, binascii.Error, RecursionError):
        found = None
    if type(found) is not kind:
        raise UsageError("cursor is what the page before gave as next, and nothing else")
    return found


def start_of(given: str | None) -> int:
    """Return where the page of a list begins whose cursor counts rows."""
    start = from_cursor(given, int) or 0
    if start < 0:
        raise UsageError("cursor is what the page before gave as next, and nothing else")
    return start


def next_start(start: int, limit: int, total: int) -> str | None:
    """Return the cursor of the page behind one; None behind the last."""
    return cursor_of(start + limit) if start + limit < total else None


def small(value: Any, most: int = LARGEST_VALUE) -> Any:
    """Return a value in JSON as it is, or how it begins where it is too large for a page."""
    size = len(json.dumps(value, ensure_ascii=False))
    if size <= most:
        return value
    return {"$type": "preview", "value": brief(value, most // 10), "size": size}
