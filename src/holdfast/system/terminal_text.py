"""Text as a terminal may be given it: harmless, and as wide as there is room."""

from __future__ import annotations

import unicodedata


def clean(text: str) -> str:
    """Return text on one line that cannot steer the terminal."""
    if text.isprintable():
        return text
    return "".join(c if is_harmless(c) else _escaped(c) for c in text)


def is_harmless(character: str) -> bool:
    """Return whether a character only shows itself: no control, direction or line end."""
    return character.isprintable() or unicodedata.category(character) == "Zs"


def clean_lines(text: str) -> str:
    """Return text of several lines that cannot steer the terminal."""
    return "\n".join(clean(line.replace("\t", "    ")) for line in text.splitlines())


def _escaped(character: str) -> str:
    return {"\n": "⏎", "\t": " "}.get(character) or escaped(character)


def escaped(character: str) -> str:
    """Return a character as Python writes it: ``\\x1b``."""
    return character.encode("unicode_escape").decode()


def width(text: str) -> int:
    """Return how many columns text takes on a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )


def cut(text: str, columns: int, mark: str = "…") -> str:
    """Return text that takes at most so many columns."""
    if width(text) <= columns:
        return text
    kept = ""
    for character in text:
        if width(kept + character) > max(columns - width(mark), 0):
            break
        kept += character
    return kept + mark if columns >= width(mark) else ""


def pad(text: str, columns: int) -> str:
    """Return text with blanks behind it, to line up."""
    return text + " " * (columns - width(text))


def indented(text: str, by: str = "  ") -> str:
    """Return text with every line moved to the right."""
    return "\n".join(by + line for line in text.splitlines())
