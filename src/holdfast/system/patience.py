"""How long this process waits for what another one holds: as long as each lock says, or shorter.

A hook stands between an agent and its work, so it gives up early; everything else has time.
"""

from __future__ import annotations

import math

_most = math.inf


def limit(seconds: float) -> None:
    """Let this process wait for no lock longer than this, from now on."""
    global _most
    _most = seconds


def seconds(usual: float = math.inf) -> float:
    """Return how long to wait where the usual time is this."""
    return min(usual, _most)
