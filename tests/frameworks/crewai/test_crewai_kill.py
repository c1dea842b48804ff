"""Crews and conversations of CrewAI that are killed at every moment, and started again."""

from collections import Counter
from pathlib import Path

import pytest

from tests.frameworks.kit import Job, points_of


@pytest.mark.parametrize("name", ["crewai", "crewai_from_checkpoint"])
def test_a_crew_killed_anywhere_does_again_the_task_that_was_cut_and_no_other(
    name: str, tmp_path: Path
) -> None:
    whole, output = _whole(name, tmp_path)
    points = points_of(whole, saves=9)
    assert {"model#1", "tool tide done#1", "model done#4", "sqlite:committed#3"} <= set(points)

    for number, kill_at in enumerate(points):
        _check(whole, output, Job(name, tmp_path / str(number)), kill_at)


def test_a_conversation_killed_anywhere_goes_on_from_the_last_request_to_the_model(
    tmp_path: Path,
) -> None:
    name = "crewai_conversation"
    whole, output = _whole(name, tmp_path)
    points = points_of(whole, saves=9)
    over = ("answered#1", points[-1])  # the answer is kept, and the same prompt is a new one

    for number, kill_at in enumerate(points):
        if kill_at not in over:
            _check(whole, output, Job(name, tmp_path / str(number)), kill_at)


def _whole(name: str, directory: Path) -> tuple[Job, object]:
    whole = Job(name, directory / "whole")
    told = whole.start()
    assert told.returncode == 0, told.errors
    return whole, told.output


def _check(whole: Job, output: object, job: Job, kill_at: str) -> None:
    """Kill a job and start it again: what was not kept yet happens again, and nothing else."""
    first = job.start(kill_at)
    assert first.was_killed, first.errors
    lines = job.world.read_text("utf-8").splitlines()
    kept = max(
        (place for place, line in enumerate(lines) if line == "sqlite:committed"), default=-1
    )
    again = _world(lines[kept + 1 :])

    second = job.start()

    assert second.returncode == 0, second.errors
    assert second.output == output
    found = _world(job.world.read_text("utf-8").splitlines())
    assert found == _world(whole.world.read_text("utf-8").splitlines()) + again, kill_at


def _world(lines: list[str]) -> Counter[str]:
    return Counter(line for line in lines if not line.startswith("sqlite:"))
