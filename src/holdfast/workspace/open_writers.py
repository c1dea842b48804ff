"""Whether somebody has a file open for writing, as far as the kernel tells."""

from __future__ import annotations

import errno
import fcntl
import os
import signal


def is_open_for_writing(fd: int) -> bool:
    """Return whether a file that was opened for reading may still be written to, by whomever.

    Linux grants a lease for reading only where nobody writes, to the owner of a file. Where it
    cannot be asked, as on other systems, the answer is no.
    """
    if not hasattr(fcntl, "F_SETLEASE") or os.fstat(fd).st_nlink != 1:
        return False  # what is written to a file with another name is found under that name
    try:
        # Who opens it while the lease is held would have this process sent SIGIO, which ends it.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except OSError as error:
        return error.errno == errno.EAGAIN
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
