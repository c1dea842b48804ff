"""Programs that tests start: where they are, and what it means that one is missing."""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

PLACES = ("/usr/sbin", "/usr/local/sbin")


class Unavailable(Exception):
    """A program is not here, or does not start: its tests are left out and named at the end.

    In CI that is a failure. ``make services`` installs what it may.
    """

    def __init__(self, package: str) -> None:
        super().__init__(f"{package} is not installed here, or does not start")


@cache
def program(*names: str, package: str, asked: str = "--version") -> str:
    """The first of these programs that is here and starts."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *PLACES])
    for name in names:
        found = shutil.which(name, path=path)
        if found is not None and starts(found, asked):
            return found
    raise Unavailable(package)


def starts(found: str | Path, asked: str = "--version") -> bool:
    """Whether a program starts."""
    try:
        return subprocess.run([found, asked], capture_output=True).returncode == 0
    except OSError:
        return False
