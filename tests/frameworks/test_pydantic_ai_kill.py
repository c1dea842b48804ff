"""An agent of Pydantic AI is killed at every moment, and started again with the same lines."""

from pathlib import Path

from tests.frameworks.kit import Job, check_resumed, points_of

NAME = "pydantic_ai"


def test_killed_anywhere_it_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    whole = Job(NAME, tmp_path / "whole")
    told = whole.start()
    assert told.returncode == 0, told.errors
    *points, last = points_of(whole, saves=1000)
    assert last.startswith("sqlite:committed")  # the session was let go of: the turn is over
    assert {"model#1", "tool depth#1", "tool tide done#1", "model#3"} <= set(points)
    for number, kill_at in enumerate(points):
        check_resumed(whole, told.output, Job(NAME, tmp_path / str(number)), kill_at)
