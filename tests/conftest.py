"""What the whole suite shares: Hypothesis profiles, a directory, and no skipping in CI."""

import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from hypothesis import settings

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# A build of torch for the CPU alone is to be had for this Python; others would bring gigabytes.
HAS_TORCH = sys.version_info < (3, 12)
collect_ignore_glob = [] if HAS_TORCH else ["*torch*"]


def pytest_report_header() -> str | None:
    if HAS_TORCH:
        return None
    return "NOT RUN: the tests of torch, which are run with Python 3.11 alone"


settings.register_profile("ci", derandomize=True, deadline=None, max_examples=200)
settings.register_profile("dev", deadline=None, max_examples=50)
settings.load_profile("ci" if IN_CI else "dev")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A directory with a file, for an agent to work in."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "main.py").write_text("print('one')")
    return repo


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if not hasattr(report, "wasxfail"):
        _fail_if_skipped_in_ci(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped_in_ci(report)
    return report


def _fail_if_skipped_in_ci(report: pytest.TestReport | pytest.CollectReport) -> None:
    if IN_CI and report.skipped:
        reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}\nIn CI every test has to run: a skip is a failure."
