"""Times, sizes and numbers as people read and write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from holdfast.cli.exits import UsageError

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def age(moment: datetime, now: datetime | None = None) -> str:
    """Return how long ago it was: ``3m ago``."""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds >= 365 * 86400:
        return f"{seconds // (365 * 86400)}y ago"
    unit, size = next(((u, s) for u, s in _UNITS if seconds >= s), ("s", 1))
    return f"{seconds // size}{unit} ago"


def span(text: str) -> float:
    """Return the seconds of ``90``, ``30m``, ``12h``, ``7d`` or ``2w``."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)", text)
    if match is None:
        raise UsageError(f"{text[:40]!r} is no time: write 90, 30m, 12h, 7d or 2w")
    return float(match[1]) * _SPANS[match[2] or "s"]


def size(count: float) -> str:
    """Return so many bytes as ``512 B``, ``1.2 kB`` or ``3.4 MB``."""
    if count < 1000:
        return f"{count:.0f} B"
    power = 1 if count < 10**6 else 2 if count < 10**9 else 3
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def many(number: int, noun: str) -> str:
    """Return so many things as ``1 checkpoint`` or ``2 checkpoints``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
