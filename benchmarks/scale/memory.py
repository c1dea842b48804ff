"""How much memory a process has taken at most."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak() -> int:
    """Return bytes: of this program alone, where the system tells it.

    Elsewhere what it was started from is part of it, if that was larger.
    """
    if _STATUS.exists():
        for line in _STATUS.read_text().splitlines():
            name, _, value = line.partition(":")
            if name == "VmHWM":
                return int(value.split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
