"""What looks after a store, in a process of its own: ``python -m benchmarks.scale.upkeep``.

A thread of that process saves meanwhile, and so does whoever started it: these are the writers "in
the same process" and "in another" that the table tells of.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.scale.memory import peak
from benchmarks.scale.shape import LONG
from benchmarks.scale.writers import SavingThread
from holdfast import SyncClient

_ROOT = Path(__file__).parents[2]
_GRACE = 5.0
"""What is saved meanwhile is younger; all that was loaded is older, but in the smallest stores."""
_PART, _BETWEEN = 1_000_000, 0.025
"""Bytes and seconds: about what upkeep writes to SQLite, and how long it rests."""
KEPT_LAST = 100
LONG_KEPT = 50


def _nothing(client: SyncClient, rest: float) -> str:
    time.sleep(rest)
    return f"for {rest:.1f} s"


def _stranger(client: SyncClient, rest: float) -> str:
    written, end = 0, time.monotonic() + rest
    with tempfile.TemporaryFile(buffering=0) as file:
        while time.monotonic() < end:
            file.write(bytes(_PART))
            os.fsync(file.fileno())
            written += _PART
            time.sleep(_BETWEEN)
    return f"{written / 1e6:,.0f} MB"


def _verify(client: SyncClient, rest: float) -> str:
    found = client.verify()
    if not found.ok:
        raise RuntimeError(str(found))
    return f"{found.checkpoints:,} checkpoints"


def _sweep(client: SyncClient, rest: float) -> str:
    return f"{client.store.sweep(datetime.now(UTC)):,} records"


def _prune_one(client: SyncClient, rest: float) -> str:
    return f"{len(client.prune(last=LONG_KEPT, session_id=LONG)):,} records"


def _prune(client: SyncClient, rest: float) -> str:
    return f"{len(client.prune(last=KEPT_LAST)):,} records"


def _gc(client: SyncClient, rest: float) -> str:
    return f"{client.gc(grace_seconds=_GRACE).chunks:,} chunks"


WHAT: dict[str, Callable[[SyncClient, float], str]] = {
    "nothing": _nothing,
    "a file is written beside it": _stranger,
    "verify": _verify,
    "sweep": _sweep,
    "prune of the long-lived session": _prune_one,
    "prune": _prune,
    "gc": _gc,
}


@dataclass(frozen=True)
class Pauses:
    """How long saves took beside something."""

    saves: int
    worst: float
    usual: float
    """Of 99 in 100 at most so long."""

    @classmethod
    def of(cls, took: list[float]) -> Pauses:
        """Return the longest, and what all but one in a hundred took."""
        ordered = sorted(took)
        return cls(len(took), ordered[-1], ordered[(len(ordered) - 1) * 99 // 100])


@dataclass(frozen=True)
class Kept:
    """What looking after a store cost, and who waited for it."""

    did: str
    wall: float
    cpu: float
    peak: int
    """Bytes of memory, all in all."""
    same: Pauses
    other: Pauses


def look_after(what: str, url: str, rest: float) -> Kept:
    """Have a store looked after, while a thread of this process saves."""
    command = [sys.executable, "-m", "benchmarks.scale.upkeep", what, url, str(rest)]
    with SyncClient.open(url) as client, SavingThread(client, f"beside-{what}") as saver:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{what} ended with {done.returncode}: {done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Kept(
        **{**told, "same": Pauses.of(told["same"])},
        other=Pauses.of(saver.took),
    )


def main(what: str, url: str, rest: str) -> None:
    """Look after a store, and print what it took as JSON."""
    with SyncClient.open(url) as client, SavingThread(client, f"within-{what}") as saver:
        wall, cpu = time.perf_counter(), time.thread_time()
        did = WHAT[what](client, float(rest))
        wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
    told = {"did": did, "wall": wall, "cpu": cpu, "peak": peak(), "same": saver.took}
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
