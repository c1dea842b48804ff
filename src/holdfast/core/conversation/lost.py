"""What a conversation loses on the way to another form: named, never dropped in silence."""

from __future__ import annotations

import re

_INDEX = re.compile(r"^\$\.messages\[(\d+)\]")
_LONGEST = 500


class Lost:
    """Collects what could not be carried: where it was, and why.

    >>> from holdfast.core.conversation import Lost
    >>> lost = Lost()
    >>> lost.add("$.messages[2].parts[0]", "sound, where only text is taken")
    >>> lost.found
    ['$.messages[2].parts[0]: sound, where only text is taken']
    """

    def __init__(self, first: int = 0) -> None:
        self.first = first
        """How many messages there are before those at hand, which paths count too."""
        self._found: dict[str, None] = {}

    def add(self, path: str, why: str) -> None:
        """Note what is lost; the same is noted once."""
        if self.first:
            path = _INDEX.sub(lambda match: f"$.messages[{int(match[1]) + self.first}]", path)
        self._found[f"{path}: {why}"[:_LONGEST]] = None

    @property
    def found(self) -> list[str]:
        """What was noted, in order."""
        return list(self._found)
