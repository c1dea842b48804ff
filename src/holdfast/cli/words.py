"""The words of a command line, as far as they tell which command is meant; imports nothing."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

WITH_VALUE = ("--store", "--color")
"""Common options that take a value: they may stand before the command."""


def split(arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """Return the name of the command, and everything else in its order."""
    rest = list(arguments)
    index = 0
    while index < len(rest):
        word = rest[index]
        if not word.startswith("-") or word == "-":
            return rest.pop(index), rest
        index += 2 if word in WITH_VALUE else 1
    return None, rest
