"""Times, sizes and numbers as people read them, and columns that line up."""

from __future__ import annotations

import re
import unicodedata
from datetime import UTC, datetime

from holdfast.cli.exits import UsageError

_UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


def age(moment: datetime, now: datetime | None = None) -> str:
    """How long ago it was: ``3m ago``."""
    seconds = int(((now or datetime.now(UTC)) - moment).total_seconds())
    if seconds < 0:
        return "in the future"
    if seconds >= 365 * 86400:
        return f"{seconds // (365 * 86400)}y ago"
    unit, size = next(((u, s) for u, s in _UNITS if seconds >= s), ("s", 1))
    return f"{seconds // size}{unit} ago"


def span(text: str) -> float:
    """The seconds of ``90``, ``30m``, ``12h``, ``7d`` or ``2w``."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smhdw]?)", text)
    if match is None:
        raise UsageError(f"{text[:40]!r} is no time: write 90, 30m, 12h, 7d or 2w")
    return float(match[1]) * _SPANS[match[2] or "s"]


def size(count: float) -> str:
    """Bytes: ``512 B``, ``1.2 kB``, ``3.4 MB``."""
    if count < 1000:
        return f"{count:.0f} B"
    power = 1 if count < 10**6 else 2 if count < 10**9 else 3
    return f"{count / 1000**power:.1f} {('kB', 'MB', 'GB')[power - 1]}"


def many(number: int, noun: str) -> str:
    """A number of things: ``1 checkpoint``, ``2 checkpoints``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def clean(text: str) -> str:
    """Text on one line that cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if is_harmless(c) else _escaped(c) for c in text)


def is_harmless(character: str) -> bool:
    """Whether a character only shows itself: no control, no change of direction, no line end."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def clean_lines(text: str) -> str:
    """Text of several lines that cannot steer the terminal."""
    return "\n".join(clean(line.replace("\t", "    ")) for line in text.splitlines())


def _escaped(character: str) -> str:
    return {"\n": "⏎", "\t": " "}.get(character) or escaped(character)


def escaped(character: str) -> str:
    """A character as Python writes it: ``\\x1b``."""
    return character.encode("unicode_escape").decode()


def width(text: str) -> int:
    """How many columns text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, columns: int, mark: str = "…") -> str:
    """Text that takes at most so many columns."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > max(columns - width(mark), 0):
            break
        kept += character
    return kept + mark if columns >= width(mark) else ""


def pad(text: str, columns: int) -> str:
    """Text with blanks behind it, to line up."""
    return text + " " * (columns - width(text))


def indented(text: str, by: str = "  ") -> str:
    """Every line moved to the right."""
    return "\n".join(by + line for line in text.splitlines())
