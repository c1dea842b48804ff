"""Agents of smolagents that are killed at every moment, and started again with the same lines."""

from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of

BEGUN = ("model", "tool depth", "tool tide", "tool note")
"""What begins in the world of a job."""
ENDED = tuple(f"{name} done" for name in BEGUN)


@pytest.mark.parametrize("name", ["smolagents", "smolagents_code"])
def test_killed_anywhere_it_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    whole = Job(name, tmp_path / "whole")
    told = whole.start()
    assert told.returncode == 0, told.errors
    points = points_of(whole)
    assert {"model#1", "model done#2", "tool depth#1", "tool tide done#1"} <= set(points)
    for number, kill_at in enumerate(points):
        killed = Job(name, tmp_path / str(number))
        check_resumed(whole, told.output, killed, kill_at, again=_may_come_again(kill_at))
        again = _begun(killed) - _begun(whole)
        assert sum(again.values()) <= 1, f"{again} at {kill_at}"


def _may_come_again(kill_at: str) -> frozenset[str]:
    """Return what may happen twice: that whose end was not written down yet, and that one only."""
    is_lost = kill_at.startswith(("sqlite:begun", "sqlite:chunks_written"))
    return frozenset((*BEGUN, *ENDED) if is_lost else ())


def _begun(job: Job) -> Counter[str]:
    return Counter({what: n for what, n in job.happened().items() if what in BEGUN})
