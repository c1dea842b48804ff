"""Named moments in a commit at which a test may kill the process.

>>> from holdfast import SyncClient
>>> from holdfast.testing import crash_points
>>> reached = []
>>> with SyncClient.sqlite("agent.db") as client, crash_points.listening(reached.append):
...     saved = client.save("coder", execution_state={"step": 1})
>>> tuple(reached) == crash_points.POINTS["sqlite"]
True
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.system.crash_points import (
    HELPER_POINTS,
    OBJECT_POINTS,
    POINTS,
    RUN_POINTS,
    UPKEEP_POINTS,
    clear,
    install,
    reach,
)

__all__ = [
    "HELPER_POINTS",
    "OBJECT_POINTS",
    "POINTS",
    "RUN_POINTS",
    "UPKEEP_POINTS",
    "clear",
    "install",
    "kill_at",
    "listening",
    "reach",
]


def kill_at(point: str, time: int = 1) -> None:
    """Kill this process with SIGKILL when it comes to a point for the nth time."""
    passed = 0

    def on_reached(name: str) -> None:
        nonlocal passed
        passed += name == point
        if name == point and passed == time:
            os.kill(os.getpid(), signal.SIGKILL)

    install(on_reached)


@contextmanager
def listening(handler: Callable[[str], object]) -> Iterator[None]:
    """Call this with the name of every point that is reached, while the block runs."""
    install(handler)
    try:
        yield
    finally:
        clear()
