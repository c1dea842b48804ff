"""What may go wrong on the disk, told before it happens or explained afterwards."""

from __future__ import annotations

import errno
import os

from holdfast.errors import WorkspaceError
from holdfast.workspace.restore_plan import RestorePlan

_SPARE = 2**20


def check_room(directory: bytes, plan: RestorePlan) -> None:
    """Refuse a plan for which there is no room on the disk."""
    disk = os.statvfs(directory)
    free = disk.f_bavail * disk.f_frsize
    if plan.bytes() + _SPARE > free:
        raise WorkspaceError(
            f"the tree needs {plan.bytes():,} bytes more, and {_SPARE:,} have to be spared, but "
            f"{free:,} are free on the disk of {os.fsdecode(directory)!r}: nothing was changed"
        )


def explained(error: BaseException, path: bytes, outcome: str) -> BaseException:
    """Return an error of the disk in words that say where it was, and how things are now."""
    if isinstance(error, OSError):
        reason = error.strerror or str(error)
        if isinstance(error, NotADirectoryError):
            reason = "a directory was replaced meanwhile, and nothing is written through symlinks"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            reason = "the disk is full"
        where = f" at {os.fsdecode(path)!r}" if path else ""
        return WorkspaceError(f"restoring failed{where}: {reason}; {outcome}")
    return error
