"""The process of a helper: ``python -m holdfast.coding_agents.resident SOCKET FILES FOLDER``.

It is started by hooks; the files are where it says that it is ready, and the lock of who starts
one. The folder is only there for people who look at their processes.
"""

from __future__ import annotations

import os
import signal
import sys

from holdfast.coding_agents.resident.meeting import Meeting
from holdfast.coding_agents.resident.server import IDLE_SECONDS, Helper
from holdfast.coding_agents.resident.sweeping import sweep


def main(socket: str, files: str) -> None:
    """Listen, say so, and serve."""
    tells, lock = map(int, files.split(","))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    meeting = Meeting(socket)
    try:
        helper = Helper(meeting, _idle_seconds())
    except Exception as error:
        os.write(tells, f"{type(error).__name__}: {error}"[:900].encode("utf-8", "replace"))
        return
    os.write(tells, b"ready")
    os.close(tells)
    os.close(lock)
    sweep(meeting)
    helper.serve()


def _idle_seconds() -> float:
    """Return after how long without an event it ends: as HOLDFAST_HOOK_HELPER says, if it does."""
    try:
        seconds = float(os.environ.get("HOLDFAST_HOOK_HELPER", ""))
    except ValueError:
        return IDLE_SECONDS
    return seconds if seconds > 0 else IDLE_SECONDS


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
