"""A reply of an AgentScope agent that is killed anywhere goes on where it was."""

from pathlib import Path

from tests.frameworks.kit import Job, check_resumed, points_of

NAME = "agentscope"


def test_a_killed_reply_asks_and_runs_nothing_again_that_was_done(tmp_path: Path) -> None:
    whole = Job(NAME, tmp_path / "whole")
    told = whole.start()
    assert told.returncode == 0, told.errors
    # Afterwards the reply may be over, and then the same prompt is a new one.
    before_end = whole.points()[: whole.points().index("model answered#2") + 1]
    points = [each for each in points_of(whole) if each in before_end]
    assert {"model#1", "tool depth#1", "tool tide done#1", "model answered#2"} <= set(points)
    for number, kill_at in enumerate(points):
        killed = Job(NAME, tmp_path / str(number))
        check_resumed(whole, told.output, killed, kill_at)
        assert sorted(path.name for path in killed.place.iterdir()) == ["depth.txt", "tide.txt"]
