"""Checkpoint ids (UUIDs of version 7) and times, both increasing within a process."""

from __future__ import annotations

import os
import random
import threading
import time
from datetime import UTC, datetime, timedelta

_RANDOM_BITS = 74


class _Clock:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last_us = 0
        self.last_ms = 0
        self.counter = 0
        self.random = random.Random(os.urandom(32))  # noqa: S311  (unique, not secret)


_clock = _Clock()


def new_stamp() -> tuple[str, int]:
    """A new id and its time in microseconds; both are greater than any this process made before.

    A clock that is set back does not matter: time then goes on from where it was.
    """
    now = time.time_ns() // 1000
    clock = _clock
    with clock.lock:
        fresh = clock.random.getrandbits(_RANDOM_BITS)
        clock.last_us = now = max(now, clock.last_us + 1)
        if now // 1000 > clock.last_ms:
            # The top bit is left free, so that counting up inside one millisecond has room.
            clock.last_ms, clock.counter = now // 1000, fresh >> 1
        else:
            clock.counter += 1 + (fresh & 0xFFFFFFFF)
            if clock.counter >> _RANDOM_BITS:
                clock.last_ms, clock.counter = clock.last_ms + 1, fresh >> 1
        milliseconds, counter = clock.last_ms, clock.counter
    high, low = counter >> 62, counter & (2**62 - 1)
    text = f"{milliseconds << 80 | 0x7 << 76 | high << 64 | 0b10 << 62 | low:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}", now


def new_id() -> str:
    """A new id, greater than every one this process made before.

    >>> from holdfast.ids import new_id
    >>> first, second = new_id(), new_id()
    >>> first < second
    True
    """
    return new_stamp()[0]


def _start_anew_in_child() -> None:
    global _clock
    _clock = _Clock()


os.register_at_fork(after_in_child=_start_anew_in_child)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def microseconds(moment: datetime) -> int:
    """Return the microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def moment(since_epoch: int) -> datetime:
    """Return the UTC time of that many microseconds since 1970."""
    return _EPOCH + timedelta(0, 0, since_epoch)


def as_iso(moment: datetime) -> str:
    """Return a time as text: in UTC, unless it is of no zone at all."""
    return (moment if moment.tzinfo in (UTC, None) else moment.astimezone(UTC)).isoformat()
