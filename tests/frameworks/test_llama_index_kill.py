"""A LlamaIndex workflow that is killed anywhere goes on where it was."""

from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of, whole_run

IN_FLIGHT = frozenset({"tool depth", "tool depth done", "tool tide", "tool tide done"})
"""Both tools run at once: who is killed in one of them was in the other too."""
ASKING = frozenset({"model", "model answered"})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return whole_run("llama_index", tmp_path_factory.mktemp("whole"))


def again_after(kill_at: str) -> frozenset[str]:
    """Return what may happen once more: what was in flight, for which nothing was kept yet."""
    if kill_at.startswith(("sqlite:begun", "sqlite:chunks_written")):
        return IN_FLIGHT | ASKING
    if kill_at.startswith("model answered"):
        return ASKING
    is_in_tools = kill_at.startswith(("tool", "sqlite:committed"))
    return IN_FLIGHT if is_in_tools else frozenset()


def test_a_killed_workflow_runs_no_finished_step_again(whole: Job, tmp_path: Path) -> None:
    output = Job("llama_index", tmp_path / "output").start().output
    *points, ended = points_of(whole, saves=100)
    assert ended.startswith("sqlite:committed")  # the workflow is over: the next run is a new one
    assert len(points) > 15
    for number, kill_at in enumerate(points):
        killed = Job("llama_index", tmp_path / str(number))
        check_resumed(whole, output, killed, kill_at, again=again_after(kill_at))
