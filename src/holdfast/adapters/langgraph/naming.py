"""What a LangGraph checkpoint is called in Holdfast.

A thread is a session; a subgraph's namespace within it is a session of its own, named
``thread|namespace``. The id is derived from LangGraph's, which is unique in its namespace only:
``copy_thread`` gives two threads the same ids.
"""

from __future__ import annotations

import hashlib
import uuid
from datetime import UTC, datetime
from typing import Any

from holdfast.core.codec import pack
from holdfast.model import moment

_SEPARATOR = "|"
_ESCAPES = {"%": "%25", _SEPARATOR: "%7C"}
_GREGORIAN = 0x01B21DD213814000
"""The 100-ns ticks from 1582, where UUIDs of version 6 count from, to 1970."""


def session_of(thread_id: str, namespace: str) -> str:
    """The session that holds the checkpoints of a thread's namespace."""
    name = _escaped(thread_id)
    return f"{name}{_SEPARATOR}{namespace}" if namespace else name


def sessions_below(thread_id: str) -> str:
    """What the names of the sessions of a thread's subgraphs begin with."""
    return _escaped(thread_id) + _SEPARATOR


def place_of(session_id: str) -> tuple[str, str]:
    """The thread and namespace of a session."""
    name, _, namespace = session_id.partition(_SEPARATOR)
    for plain, escape in reversed(_ESCAPES.items()):
        name = name.replace(escape, plain)
    return name, namespace


def _escaped(thread_id: str) -> str:
    for plain, escape in _ESCAPES.items():
        thread_id = thread_id.replace(plain, escape)
    return thread_id


def record_id(thread_id: str, namespace: str, checkpoint_id: str) -> str:
    """The Holdfast id of a LangGraph checkpoint: ordered as theirs are, unique in the store."""
    digest = hashlib.sha256(pack([thread_id, namespace, checkpoint_id])).digest()
    ticks = _ticks(checkpoint_id)
    if ticks is None:
        return str(uuid.UUID(bytes=digest[:16], version=4))
    # A UUID of version 7: 48 bits of milliseconds, 14 for the rest of the time, 60 of the digest.
    milliseconds, rest = divmod(ticks, 10_000)
    low = (rest & 0b11) << 60 | int.from_bytes(digest[:8], "big") >> 4
    return str(uuid.UUID(int=milliseconds << 80 | 0x7 << 76 | (rest >> 2) << 64 | 0b10 << 62 | low))


def made_at(checkpoint_id: str, timestamp: Any = None) -> datetime | None:
    """When a checkpoint was made: as its id says, else as it says itself; None if neither does."""
    ticks = _ticks(checkpoint_id)
    if ticks is not None:
        return moment(ticks // 10)
    try:
        made = datetime.fromisoformat(timestamp)
    except (TypeError, ValueError):
        return None
    return made if made.tzinfo is not None else made.replace(tzinfo=UTC)


def says_when(checkpoint_id: str) -> bool:
    """Whether it is an id of LangGraph's kind, which are ordered by the time they were made."""
    return _ticks(checkpoint_id) is not None


def _ticks(checkpoint_id: str) -> int | None:
    """The 100-ns ticks since 1970 that an id of LangGraph's kind holds."""
    try:
        value = uuid.UUID(checkpoint_id)
    except ValueError:
        return None
    if value.version != 6:
        return None
    ticks = (value.int >> 80) << 12 | (value.int >> 64) & 0xFFF
    return ticks - _GREGORIAN if ticks >= _GREGORIAN else None
