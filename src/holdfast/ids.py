"""Checkpoint ids (UUIDs of version 7) and their times, both increasing within a process.

An id may be written without its dashes, and as a beginning of itself: here is how it is spelled.
"""

from __future__ import annotations

import os
import random
import re
import threading
import time
from datetime import UTC, datetime, timedelta

MIN_PREFIX = 6
"""How much of an id names it at least."""
TIME_DIGITS = 12
"""How many of its digits are its time: what is made later differs in these."""
_WHOLE = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_WITHOUT_DASHES = re.compile(r"[0-9a-f]{9,32}")


class _Clock:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.last_us = 0
        self.random = random.Random(os.urandom(32))  # noqa: S311  (unique, not secret)


_clock = _Clock()


def new_stamp() -> tuple[str, int]:
    """Return a new id and its time in microseconds, both greater than any this process made.

    A clock that is set back does not matter: time then goes on from where it was. The microseconds
    stand behind the milliseconds, where a UUID may have them, so ids of one process begin unlike.
    """
    now = time.time_ns() // 1000
    clock = _clock
    with clock.lock:
        fresh = clock.random.getrandbits(62)
        clock.last_us = now = max(now, clock.last_us + 1)
    milliseconds, rest = divmod(now, 1000)
    fraction = (rest << 12) // 1000
    text = f"{milliseconds << 80 | 0x7 << 76 | fraction << 64 | 0b10 << 62 | fresh:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}", now


def new_id() -> str:
    """Return a new id, greater than every one this process made before.

    >>> from holdfast.ids import new_id
    >>> first, second = new_id(), new_id()
    >>> first < second
    True
    """
    return new_stamp()[0]


def is_whole(text: str) -> bool:
    """Return whether a text is an id as it is made here, and not a part of one."""
    return _WHOLE.fullmatch(text) is not None


def spellings(text: str) -> list[str]:
    """Return how ids begin that a text may mean: as it is, and with the dashes that it lacks.

    >>> from holdfast.ids import spellings
    >>> spellings("019a9563e5d2"), spellings("plan")
    (['019a9563e5d2', '019a9563-e5d2'], ['plan'])
    """
    return [text, dashed(text)] if _WITHOUT_DASHES.fullmatch(text) else [text]


def dashed(digits: str) -> str:
    """Return the digits of an id, or the first of them, with its dashes."""
    parts = (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    return "-".join(part for part in parts if part)


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
