"""Small disks of their own for tests that fill them or make them read-only."""

import os
import subprocess
import sys
from pathlib import Path

import holdfast
from tests.programs import Unavailable

ROOT = Path(__file__).parents[1]
PATH = os.pathsep.join([str(ROOT), str(Path(holdfast.__file__).parents[1])])


def own_disk(directory: Path, size: str) -> list[str]:
    """The command that mounts a small disk there, seen by its process alone."""
    directory.mkdir()
    mount = 'mount -t tmpfs -o size="$1" none "$0" && shift && exec "$@"'
    unshare = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-r", "--mount"]
    command = [*unshare, "sh", "-c", mount, str(directory), size]
    try:
        allowed = subprocess.run([*command, "true"], stderr=subprocess.DEVNULL).returncode == 0
    except FileNotFoundError:
        allowed = False
    if not allowed:
        raise Unavailable("this user may mount no disk of its own here")
    return command


def run_module(module: str, *arguments: object, within: list[str]) -> None:
    """Run a module in a process of its own, which has to end well."""
    done = subprocess.run(
        [*within, sys.executable, "-m", module, *map(str, arguments)],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": PATH},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
