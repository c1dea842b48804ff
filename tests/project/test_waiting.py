"""The limits of tests follow progress, and what was not run is said."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.waiting import Watch

ROOT = Path(__file__).parents[2]

STANDS_STILL = """
import time
from tests import waiting

hung = []
waiting.watch(0.5, hung.append)
while not hung:
    time.sleep(0.05)
waiting.end_watch()
"""


def compute(seconds: float) -> None:
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


@pytest.fixture
def hung() -> list[str]:
    return []


def test_a_test_that_stands_still_is_noticed_by_itself() -> None:
    subprocess.run([sys.executable, "-c", STANDS_STILL], cwd=ROOT, check=True)


def test_a_test_that_stands_still_hangs(hung: list[str]) -> None:
    Watch(100, hung.append).ask()

    assert hung == ["nothing went on for 100 s"]


def test_a_test_that_computes_and_achieves_nothing_hangs(hung: list[str]) -> None:
    watch = Watch(0.1, hung.append)
    compute(0.5)

    watch.ask()

    assert "achieved nothing" in hung[0]


def test_a_test_that_achieves_something_may_take_as_long_again(hung: list[str]) -> None:
    watch = Watch(0.4, hung.append)
    for _ in range(4):
        compute(0.4)
        watch.ask()
        watch.renew()

    assert not hung


def test_what_the_processes_of_a_test_compute_is_progress(hung: list[str]) -> None:
    watch = Watch(3, hung.append)
    work = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", work], check=True)

    watch.ask()

    assert not hung


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
