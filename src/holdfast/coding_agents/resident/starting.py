"""Starts the helper of a project: one, however many hooks want it at once."""

from __future__ import annotations

import fcntl
import os
import sys
import time
from contextlib import suppress

from holdfast.coding_agents.resident.meeting import Meeting, NoHelperError

SECONDS = 5.0
"""For so long another hook may start a helper, and a helper may take to listen."""
_PAUSE = 0.005


def lock_of(meeting: Meeting, seconds: float) -> int | None:
    """Return the lock of who starts or ends a helper, open; None if it stays another's.

    Whoever ends a helper removes the file, so what was locked may be there no more.
    """
    end = time.monotonic() + seconds
    while True:
        lock = os.open(meeting.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(meeting.lock, lock):
                return lock
        except BlockingIOError:
            if time.monotonic() > end:
                os.close(lock)
                return None
            time.sleep(_PAUSE)  # a helper starts in some 50 ms
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _is_still(path: str, file: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(file))
    except FileNotFoundError:
        return False


def start(meeting: Meeting, folder: str) -> None:
    """Start a helper unless one listens by now; returns when it does."""
    try:
        lock = lock_of(meeting, SECONDS)
    except OSError as error:
        raise NoHelperError(f"{meeting.lock} cannot be locked: {error.strerror}") from error
    if lock is None:
        raise NoHelperError(f"another process has been starting it for {SECONDS:g} s")
    try:
        if not listens(meeting):
            with suppress(FileNotFoundError):
                os.unlink(meeting.socket)  # of a helper that was killed
            _spawn(meeting, folder, lock)
    finally:
        os.close(lock)


def listens(meeting: Meeting) -> bool:
    """Return whether a helper is there."""
    from _socket import AF_UNIX, SOCK_STREAM, socket

    connection = socket(AF_UNIX, SOCK_STREAM)
    try:
        connection.settimeout(1.0)
        connection.connect(meeting.socket)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:  # it has many to listen to, or is stopped
        return True
    finally:
        connection.close()
    return True


def _spawn(meeting: Meeting, folder: str, lock: int) -> None:
    """Start the process; it has the lock too, so that it is held until it listens."""
    import select
    import subprocess

    ready, tells = os.pipe()
    # -P: not what lies in the directory, which is the agent's.
    command = [sys.executable, "-P", "-m", __package__, meeting.socket, f"{tells},{lock}", folder]
    try:
        try:
            process = subprocess.Popen(  # noqa: S603  (this very program)
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(tells, lock),
                start_new_session=True,
            )
        except OSError as error:
            raise NoHelperError(f"{sys.executable} cannot be started: {error}") from error
        finally:
            os.close(tells)
        process.returncode = 0  # it outlives this process, which is no mistake
        seen, _, _ = select.select([ready], [], [], SECONDS)
        said = os.read(ready, 1000) if seen else b"it took too long"
    finally:
        os.close(ready)
    if said != b"ready":
        raise NoHelperError(f"it did not start: {said.decode('utf-8', 'replace') or 'it ended'}")
