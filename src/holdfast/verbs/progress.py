"""How far a verb that takes long has come."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int | None], None]
"""Called with how much is done and how much there is, if that is known."""

_OFTEN = 100


class Told:
    """Counts what was done, and tells whoever wants to know, now and then."""

    def __init__(self, progress: Progress | None, total: int | None = None) -> None:
        self._progress = progress
        self._total = total
        self._done = self._last = 0

    def add(self, count: int) -> None:
        """Count some more."""
        self._done += count
        if self._progress is not None and self._done - self._last >= _OFTEN:
            self._last = self._done
            self._progress(self._done, self._total)

    def end(self) -> None:
        """Say that all is done."""
        if self._progress is not None:
            self._progress(self._done, self._done)
