"""A LlamaIndex workflow that is killed anywhere goes on where it was."""

from pathlib import Path

from tests.frameworks.kit import Job, check_resumed, points_of

NAME = "llama_index"


def test_a_killed_workflow_runs_no_finished_step_again(tmp_path: Path) -> None:
    whole = Job(NAME, tmp_path / "whole")
    told = whole.start()
    assert told.returncode == 0, told.errors
    points = points_of(whole)
    assert {"model#1", "tool depth#1", "tool tide done#1", "model answered#2"} <= set(points)
    over = whole.points()[-1]  # then the workflow is over: the next run is a new one
    for number, kill_at in enumerate(each for each in points if each != over):
        check_resumed(whole, told.output, Job(NAME, tmp_path / str(number)), kill_at)
