"""Named moments in a commit at which a test may kill the process.

>>> from holdfast.system import crash_points
>>> seen = []
>>> crash_points.install(seen.append)
>>> crash_points.reach("file:written")
>>> crash_points.clear()
>>> seen
['file:written']
"""

from __future__ import annotations

from collections.abc import Callable

POINTS: dict[str, tuple[str, ...]] = {
    "file": ("file:begun", "file:written", "file:synced", "file:linked", "file:committed"),
    "postgres": ("postgres:begun", "postgres:committed"),
    "redis": ("redis:begun", "redis:committed"),
    "redis+cluster": (
        "redis:begun",
        "redis:entered",
        "redis:chunks_written",
        "redis:committed",
    ),
    "sqlite": (
        "sqlite:begun",
        "sqlite:record_written",
        "sqlite:chunks_written",
        "sqlite:committed",
    ),
}
"""The points each store passes in every commit, in order."""

RUN_POINTS = (
    *("run:before_checkpoint", "run:after_checkpoint", "run:task_exit"),
    *("run:before_journal", "run:before_tool", "run:after_tool", "run:before_end", "run:after_end"),
    *("run:rollback_begun", "run:before_compensation", "run:after_compensation"),
    *("run:compensated", "run:rolled_back", "run:forked", "run:adopting"),
)
"""The points that runs pass."""

REWIND_POINTS = ("rewind:kept", "rewind:written", "rewind:forked", "rewind:restored")
"""The points that rewinding a coding agent passes, in order."""

HELPER_POINTS = ("helper:told", "helper:recorded", "helper:answered")
"""The points that the helper of coding agents' hooks passes with every event."""

UPKEEP_POINTS = ("upkeep:part", "upkeep:chosen", "upkeep:marked")
"""The points of what removes: after each part of it, when others have their turn; before the first
checkpoint is pruned; before the first chunk is collected."""

OBJECT_POINTS = (
    *("objects:drafted", "objects:uploaded", "objects:moved", "objects:led"),
    *("objects:forgotten", "objects:removed"),
)
"""The points of a store with large blobs apart: in a save, and where gc moves and removes."""

_handler: Callable[[str], object] | None = None


def reach(name: str) -> None:
    """Say that a commit has come to this point; does nothing unless a test listens."""
    if _handler is not None:
        _handler(name)


def install(handler: Callable[[str], object]) -> None:
    """Call this with the name of every point that is reached, until ``clear``."""
    global _handler
    _handler = handler


def clear() -> None:
    """Stop listening."""
    global _handler
    _handler = None
