"""Strands's agents, killed at every moment that matters and started again with the same lines."""

from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.frameworks.kit import Job, check_resumed, points_of, whole_run

ANSWER = "Süd is 12 m / it rises / noted"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return whole_run("strands", tmp_path_factory.mktemp("whole"))


def said(job: Job) -> list[object]:
    """Return what the conversation of a job holds, but for ids and times."""
    with SyncClient.open(job.url) as client:
        head = client.latest("strands", "job-1")
    assert head is not None
    (content,) = head.execution_state["entries"].values()
    return [(each["role"], each["content"]) for each in content["json"]["data"]["messages"]]


def test_a_killed_agent_goes_on_where_it_stopped(whole: Job, tmp_path: Path) -> None:
    points = points_of(whole)
    assert {"model#1", "tool depth#1", "tool tide done#1", "model answered#3"} <= set(points)

    for index, kill_at in enumerate(points):
        killed = Job("strands", tmp_path / str(index))
        check_resumed(whole, ANSWER, killed, kill_at)
        assert said(killed) == said(whole), kill_at
        assert (killed.place / "notes.txt").read_text("utf-8") == "Süd ✓\n"


TOOLS = frozenset(
    f"tool {name}{end}" for name in ("depth", "tide", "note") for end in ("", " done")
)


def test_without_the_plugin_tools_run_again_whose_results_were_not_kept(tmp_path: Path) -> None:
    whole = whole_run("strands_alone", tmp_path / "whole")

    for index, kill_at in enumerate(points_of(whole, saves=6)):
        killed = Job("strands_alone", tmp_path / str(index))
        check_resumed(whole, ANSWER, killed, kill_at, again=TOOLS)
        assert said(killed) == said(whole), kill_at
