"""The part of a workspace that a restore is about."""

from __future__ import annotations

from collections.abc import Collection


class Selection:
    """Paths that were chosen, and all below them; or everything."""

    def __init__(self, paths: Collection[bytes] | None) -> None:
        self._all = paths is None
        self._paths = frozenset(paths or ())
        self._above = {
            b"/".join(path.split(b"/")[:depth])
            for path in self._paths
            for depth in range(path.count(b"/") + 1)
        }

    def holds(self, path: bytes) -> bool:
        """Return whether the path or one above it was chosen."""
        if self._all or path in self._paths:
            return True
        parts = path.split(b"/")
        return any(b"/".join(parts[:depth]) in self._paths for depth in range(1, len(parts)))

    def leads_to(self, path: bytes) -> bool:
        """Return whether something beneath the path was chosen."""
        return not self._all and path in self._above
