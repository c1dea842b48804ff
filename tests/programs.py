"""Programs that tests start: where they are, and what it means that one is missing."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Self

PLACES = ("/usr/sbin", "/usr/local/sbin")


class Unavailable(Exception):
    """What a test needs cannot be had here: it is left out, and named at the end.

    In CI that is a failure. ``make services`` installs what it may.
    """

    @classmethod
    def program(cls, package: str) -> Self:
        """A program is missing."""
        return cls(f"{package} is not installed here, or does not start")


@cache
def program(*names: str, package: str, asked: str = "--version") -> str:
    """The first of these programs that is here and starts."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *PLACES])
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None and starts(found, asked):
            return found
    raise Unavailable.program(package)


@cache
def library(pattern: str, *, package: str) -> Path:
    """The library whose path below /usr/lib fits."""
    found = sorted(Path("/usr/lib").glob(pattern))
    if not found:
        raise Unavailable.program(package)
    return found[0]


def starts(found: str | Path, asked: str = "--version") -> bool:
    """Whether a program starts."""
    try:
        return subprocess.run([found, asked], capture_output=True).returncode == 0
    except OSError:
        return False
