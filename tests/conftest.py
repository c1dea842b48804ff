"""What the whole suite shares: Hypothesis profiles, limits, no skipping in CI or in silence."""

import os
import signal
import sys
from collections import Counter
from collections.abc import Generator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import pytest_timeout
from hypothesis import settings

from tests import waiting
from tests.programs import Unavailable

# Hundreds of projects would have a helper each, for as long as the tests run; some tests say "on".
os.environ.setdefault("HOLDFAST_HOOK_HELPER", "off")

# A shell that starts the tests in the background has them ignore Ctrl-C, and all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

IN_CI = os.environ.get("CI", "").lower() in {"1", "true"}

# A build of torch for the CPU alone is to be had for this Python; others would bring gigabytes.
HAS_TORCH = find_spec("torch") is not None or (IN_CI and sys.version_info < (3, 12))
collect_ignore_glob = [] if HAS_TORCH else ["*torch*"]


def pytest_report_header() -> str | None:
    if HAS_TORCH:
        return None
    return "NOT RUN: the tests of torch, which is not installed (pip install --group torch)"


settings.register_profile("ci", derandomize=True, deadline=None, max_examples=120)
settings.register_profile("dev", deadline=None, max_examples=50)
settings.register_profile("quick", deadline=None, max_examples=10)
settings.load_profile("ci" if IN_CI else "dev")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A directory with a file, for an agent to work in."""
    repo = tmp_path / "repo"
    repo.mkdir()
    (repo / "main.py").write_text("print('one')")
    return repo


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.excinfo is not None and isinstance(call.excinfo.value, Unavailable) and not IN_CI:
        path, line, _ = item.location
        report.outcome = "skipped"
        report.longrepr = (path, line or 0, f"Skipped: {call.excinfo.value}")
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
        report.outcome = "failed"
        report.longrepr = f"{_reason(report)}\nIn CI every test has to run: a skip is a failure."


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    reason = report.longrepr[-1] if isinstance(report.longrepr, tuple) else report.longrepr
    return str(reason).removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say at the very end, and loudly, what was not run."""
    left_out = terminalreporter.stats.get("skipped", [])
    if left_out:
        terminalreporter.section(f"NOT RUN: {len(left_out)} tests", sep="!", red=True, bold=True)
        for reason, count in Counter(map(_reason, left_out)).most_common():
            terminalreporter.line(f"{count:6}  {reason}")


def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """In place of a limit by the clock, one that follows progress; 0 stands for none."""
    if settings.method != "signal":
        return None

    def hangs(why: str) -> None:
        if not pytest_timeout.is_debugging():
            pytest_timeout.dump_stacks(item.config.get_terminal_writer())
            pytest.fail(f"it hangs: {why}")

    waiting.watch(settings.timeout, hangs)
    return True


def pytest_timeout_cancel_timer(item: pytest.Item) -> bool | None:
    waiting.end_watch()
    return True
