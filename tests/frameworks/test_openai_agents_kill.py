"""Runs of the OpenAI Agents SDK that are killed at every moment, and started again."""

from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of, whole_run

JOBS = ("openai_agents",)
BEGUN = ("model", "tool depth", "tool tide", "tool warn", "handoff")
"""What begins in the world of a job."""
ENDED = (*(f"{name} done" for name in BEGUN), "model answered")


@pytest.mark.parametrize("name", JOBS)
def test_a_run_killed_anywhere_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    whole = whole_run(name, tmp_path / "whole")
    output = Job(name, tmp_path / "again").start().output
    points = points_of(whole)
    assert len(points) > 20
    for number, kill_at in enumerate(points):
        killed = Job(name, tmp_path / str(number))
        check_resumed(whole, output, killed, kill_at, again=_may_come_again(kill_at))
        again = _world(killed) - _world(whole)
        assert sum(again[name] for name in BEGUN) <= 1, f"{again} at {kill_at}"


def _may_come_again(kill_at: str) -> frozenset[str]:
    """Return what may happen twice: that whose end was not written down yet, and that one only."""
    if kill_at.startswith("model answered"):
        return frozenset({"model"})
    is_lost = kill_at.startswith(("sqlite:begun", "sqlite:chunks_written"))
    return frozenset((*BEGUN, *ENDED) if is_lost else ())


def _world(job: Job) -> Counter[str]:
    return Counter({what: n for what, n in job.happened().items() if what in BEGUN})
