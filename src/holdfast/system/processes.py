"""Processes by name, so that others on the same machine can tell whether one has ended."""

from __future__ import annotations

import os
import socket
from pathlib import Path


def this_process() -> str:
    """Return the name of this process: its machine, boot, number and start."""
    return f"{_machine()}:{_boot()}:{os.getpid()}:{_started(os.getpid()) or ''}"


def is_dead(process: str) -> bool:
    """Return whether a process of this very machine is known to have ended."""
    host, boot, pid, started = _parts(process)
    if host != _machine() or boot != _boot() or not boot or not pid.isdecimal():
        return False
    now = _started(int(pid))
    # Where a mount of /proc hides others' processes (hidepid), only a signal tells.
    return now != started if now is not None else not _answers(int(pid))


def told(process: str) -> str:
    """Return a process as people call it."""
    host, _, pid, _ = _parts(process)
    return f"process {pid} on {host.partition('/')[0]}"


def _parts(process: str) -> list[str]:
    return [*process.rsplit(":", 3), "", "", ""][:4]


def _machine() -> str:
    """Return the host and, as containers may share its name, the namespace of its pids."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _answers(pid: int) -> bool:
    """Return whether there is a process of that number, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """Return when a process started, in ticks since the boot: "" for one that has ended.

    None where it cannot be seen.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]
