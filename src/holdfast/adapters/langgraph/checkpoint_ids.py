"""The ids of LangGraph's checkpoints: what Holdfast's are derived from, and when they were made.

LangGraph's are unique in a namespace only: ``copy_thread`` gives two threads the same ids.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from typing import Any

from holdfast.core.codec import pack
from holdfast.model import moment

_GREGORIAN = 0x01B21DD213814000
"""The 100-ns ticks from 1582, where UUIDs of version 6 count from, to 1970."""


def record_id(thread_id: str, namespace: str, checkpoint_id: str) -> str:
    """Return the Holdfast id of a LangGraph checkpoint: ordered as theirs are, and unique."""
    digest = hashlib.sha256(pack([thread_id, namespace, checkpoint_id])).digest()
    ticks = _ticks(checkpoint_id)
    if ticks is None:
        return str(uuid.UUID(bytes=digest[:16], version=4))
    # A UUID of version 7: 48 bits of milliseconds, 14 for the rest of the time, 60 of the digest.
    milliseconds, rest = divmod(ticks, 10_000)
    low = (rest & 0b11) << 60 | int.from_bytes(digest[:8], "big") >> 4
    return str(uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | (rest >> 2) << 64 | 0b10 << 62 | low))


def made_at(checkpoint_id: str, timestamp: Any = None) -> datetime | None:
    """Return when a checkpoint was made, as its id or else its timestamp says; None if neither."""
    ticks = _ticks(checkpoint_id)
    if ticks is not None:
        return moment(ticks // 10)
    try:
        made = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return made if made.tzinfo is not None else made.replace(tzinfo=UTC)


def says_when(checkpoint_id: str) -> bool:
    """Return whether an id is of LangGraph's kind: those are ordered by when they were made."""
    return _ticks(checkpoint_id) is not None


def _ticks(checkpoint_id: str) -> int | None:
    """Return the 100-ns ticks since 1970 that an id of LangGraph's kind holds."""
    try:
        value = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    if value.version != 6:
        return None
    ticks = (value.int >> 80) << 12 | (value.int >> 64) & 0xFFF
    return ticks - _GREGORIAN if ticks >= _GREGORIAN else None
