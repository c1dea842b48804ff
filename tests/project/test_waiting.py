"""The limits of tests follow progress, and what was not run is said."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WATCHED = """
import sys, threading, time
from tests import waiting

hung = []
waiting.watch(1, hung.append)
{body}
print(*hung)
"""
STANDS_STILL = """
while not hung:
    time.sleep(0.05)
"""
COMPUTES_IN_VAIN = """
while not hung:
    sum(range(1000))
"""
ACHIEVES = """
began = time.process_time()
while time.process_time() - began < 3:
    sum(range(1000))
    waiting.achieved()
"""
COMPUTES_IN_A_CHILD = """
import subprocess
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 1.5: pass"])
"""


def watched(body: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", WATCHED.format(body=body)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


def test_a_test_that_stands_still_hangs() -> None:
    assert "nothing went on" in watched(STANDS_STILL)


def test_a_test_that_computes_and_achieves_nothing_hangs() -> None:
    assert "achieved nothing" in watched(COMPUTES_IN_VAIN)


@pytest.mark.parametrize("body", [ACHIEVES, COMPUTES_IN_A_CHILD])
def test_a_test_that_goes_on_has_as_long_as_it_needs(body: str) -> None:
    assert watched(body) == ""


PYTEST = ("-m", "pytest", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull)
LEFT_OUT = ("CI", "PYTEST_ADDOPTS")
NEEDS_A_SERVER = """
from tests.programs import program

def test_one() -> None:
    program("no-such-server", package="some-server")

def test_other() -> None:
    assert True
"""


def run_suite(directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (directory / "test_it.py").write_text(NEEDS_A_SERVER)
    environment = {name: value for name, value in os.environ.items() if name not in LEFT_OUT}
    return subprocess.run(
        [sys.executable, *PYTEST, "--rootdir", directory, directory],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
    )


def test_what_needs_a_program_that_is_not_here_is_not_run_and_said_at_the_end(
    tmp_path: Path,
) -> None:
    done = run_suite(tmp_path)

    assert done.returncode == 0, done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    said = done.stdout.partition("NOT RUN: 1 tests")[2]
    assert "1  some-server is not installed here, or does not start" in said


def test_in_ci_a_program_that_is_not_here_is_a_failure(tmp_path: Path) -> None:
    done = run_suite(tmp_path, CI="true")

    assert done.returncode == 1
    assert "some-server is not installed here" in done.stdout
