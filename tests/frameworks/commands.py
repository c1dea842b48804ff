"""The command line, as users call it."""

import os
import subprocess
import sys

from tests.frameworks.kit import ROOT


def command(*arguments: str) -> str:
    """Return what ``holdfast`` prints; an error with what it said if it does not succeed."""
    done = subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
