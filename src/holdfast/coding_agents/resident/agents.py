"""Who is at the other end: the process of a hook, and the agent that runs it."""

from __future__ import annotations

import os
import struct
from _socket import SOL_SOCKET, socket
from pathlib import Path

_BETWEEN = {
    *("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "nice"),
    *("uv", "pipx", "holdfast", "xargs", "sudo"),
}
"""What stands between an agent and its hook, and may have ended before the agent does."""
_MOST_BETWEEN = 10


def peer_of(connection: socket) -> int | None:
    """Return the process at the other end; None where the system does not say."""
    try:
        from _socket import SO_PEERCRED
    except ImportError:
        return None
    pid, _, _ = struct.unpack("3i", connection.getsockopt(SOL_SOCKET, SO_PEERCRED, 12))
    return int(pid) if pid > 0 else None


def agent_of(hook: int) -> int | None:
    """Return the process that runs a hook: its nearest ancestor that is no shell."""
    pid = hook
    for _ in range(_MOST_BETWEEN):
        found = _parent_of(pid)
        if found is None:
            return None
        pid, name = found
        if pid <= 1:
            return None
        if name not in _BETWEEN:
            return pid
    return None


def _parent_of(pid: int) -> tuple[int, str] | None:
    """Return the parent of a process, and its name."""
    own = _stat(pid)
    parent = None if own is None else _stat(own[0])
    return None if own is None or parent is None else (own[0], parent[1])


def _stat(pid: int) -> tuple[int, str] | None:
    """Return the parent and the name of a process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return None
    name = text[text.index("(") + 1 : text.rindex(")")]
    return int(text[text.rindex(")") + 2 :].split()[1]), name


class Agent:
    """A process that runs hooks, watched until it ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fd = os.pidfd_open(pid) if hasattr(os, "pidfd_open") else None
        """Becomes readable when it has ended, where the system has such."""

    @property
    def has_ended(self) -> bool:
        """Whether it is known to have ended, where that has to be asked."""
        if self.fd is not None:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Let go of it."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
