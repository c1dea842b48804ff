"""Who is at the other end: the process of a hook, and the agent that runs it."""

from __future__ import annotations

import os
import sys
from _socket import SOL_SOCKET, socket
from pathlib import Path

if sys.platform == "linux":
    from _socket import SO_PEERCRED

_BETWEEN = {
    *("sh", "bash", "dash", "zsh", "fish", "ksh", "ash", "busybox", "env", "timeout", "nice"),
    *("uv", "pipx", "holdfast", "xargs", "sudo"),
}
"""What stands between an agent and its hook, and may have ended before the agent does."""
_MOST_BETWEEN = 10


def peer_of(connection: socket) -> int | None:
    """Return the process at the other end; None where the system does not say."""
    if sys.platform == "darwin":
        of, option = 0, 2  # SOL_LOCAL, LOCAL_PEERPID
    elif sys.platform == "linux":
        of, option = SOL_SOCKET, SO_PEERCRED
    else:
        return None
    said: bytes = connection.getsockopt(of, option, 12)
    pid = int.from_bytes(said[:4], sys.byteorder, signed=True)
    return pid if pid > 0 else None


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
        return None if sys.platform == "linux" else asked_of_ps(pid)
    name = text[text.index("(") + 1 : text.rindex(")")]
    return int(text[text.rindex(")") + 2 :].split()[1]), name


def asked_of_ps(pid: int) -> tuple[int, str] | None:
    """Return the same where there is no /proc."""
    import subprocess

    words = ["ps", "-o", "ppid=,comm=", "-p", str(pid)]
    try:
        said = subprocess.run(words, capture_output=True, text=True, timeout=2).stdout  # noqa: S603
        parent, name = said.split(maxsplit=1)
        return int(parent), os.path.basename(name.strip())
    except (OSError, ValueError, subprocess.SubprocessError):
        return None


def _watched(pid: int) -> int | None:
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except ProcessLookupError:
        raise
    except OSError:  # an older kernel, or a sandbox that forbids it
        return None


class Agent:
    """A process that runs hooks, watched until it ends."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.fd = _watched(pid)
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
