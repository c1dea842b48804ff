"""What the children do that test_large_saves kills: a large save, chunks of which lie on disk."""

import os
import random
import tempfile
from typing import Any

from holdfast import SyncClient
from holdfast.core import chunk_encoder
from holdfast.system import crash_points
from tests.integration.fork_server import tell

AGENT = "large"
SIZE = 10_000_000
"""Bytes that no store takes at once."""


def state_at(step: int) -> dict[str, Any]:
    """A large state, little of which is that of another step."""
    return {"step": step, "raw": random.Random(step).randbytes(SIZE)}


def save_until_killed(url: str, scratch: str, point: str) -> None:
    """Save once, and once more to be killed at that point."""
    tempfile.tempdir = scratch
    chunk_encoder._HELD = 100_000
    with SyncClient.open(url) as client:
        tell(client.save(AGENT, execution_state=state_at(1), session_id="s"))
        crash_points.install(lambda reached: _die(scratch) if reached == point else None)
        client.save(AGENT, execution_state=state_at(2), session_id="s")


def save_until_the_disk_was_read(url: str, scratch: str, reads: int) -> None:
    """Save once, and once more to be killed when so many chunks were read for the store."""
    tempfile.tempdir = scratch
    chunk_encoder._HELD = 100_000
    with SyncClient.open(url) as client:
        tell(client.save(AGENT, execution_state=state_at(1), session_id="s"))
        left, read = [reads], os.pread

        def counted(fd: int, size: int, at: int) -> bytes:
            left[0] -= 1
            if not left[0]:
                _die(scratch)
            return read(fd, size, at)

        os.pread = counted
        client.save(AGENT, execution_state=state_at(2), session_id="s")


def _die(scratch: str) -> None:
    tell(os.listdir(scratch))
    os.kill(os.getpid(), 9)
