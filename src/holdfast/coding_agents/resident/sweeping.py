"""Removes what helpers left behind that were killed, of whichever project."""

from __future__ import annotations

import os
from contextlib import suppress

from holdfast.coding_agents.resident.meeting import Meeting
from holdfast.coding_agents.resident.starting import listens, lock_of


def sweep(own: Meeting) -> None:
    """Remove the sockets and locks of others that nobody holds or listens at."""
    folder = os.path.dirname(own.socket)
    for name in os.listdir(folder):
        stem, _, end = name.rpartition(".")
        meeting = Meeting(os.path.join(folder, f"{stem}.sock"))
        if end in ("sock", "lock") and meeting.socket != own.socket:
            with suppress(OSError):  # removed just now, or of another kind
                _remove(meeting)


def _remove(meeting: Meeting) -> None:
    if listens(meeting):
        return
    lock = lock_of(meeting, 0)
    if lock is None:
        return  # one is being started
    try:
        if not listens(meeting):
            with suppress(FileNotFoundError):
                os.unlink(meeting.socket)
            os.unlink(meeting.lock)
    finally:
        os.close(lock)
