"""ADK's agents, killed at every moment that matters and started again with the same lines."""

import json
from pathlib import Path

import pytest

from holdfast import SyncClient
from tests.frameworks.kit import Job, check_resumed, points_of, whole_run

ANSWER = "Süd is 12 m / it rises / noted"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Job:
    return whole_run("google_adk", tmp_path_factory.mktemp("whole"))


def said(job: Job) -> list[object]:
    """Return what the conversation of a job holds, but for ids and times."""
    with SyncClient.open(job.url) as client:
        head = client.latest("google_adk", "harbour/ann/job-1")
    assert head is not None
    parts = [
        part
        for event in head.execution_state["events"]
        for part in event.get("content", {}).get("parts", [])
    ]
    plain = json.loads(json.dumps(parts))
    for part in plain:
        for kind in ("function_call", "function_response"):
            if kind in part:
                del part[kind]["id"]
    return plain


def test_a_killed_agent_goes_on_where_it_stopped(whole: Job, tmp_path: Path) -> None:
    points = points_of(whole)
    assert {"model#1", "tool depth#1", "tool tide done#1", "model answered#3"} <= set(points)

    for index, kill_at in enumerate(points):
        killed = Job("google_adk", tmp_path / str(index))
        check_resumed(whole, ANSWER, killed, kill_at)
        assert said(killed) == said(whole), kill_at
        assert (killed.place / "notes.txt").read_text("utf-8") == "Süd ✓\n"


TOOLS = frozenset(
    f"tool {name}{end}" for name in ("depth", "tide", "note") for end in ("", " done")
)


def test_without_the_plugin_tools_run_again_whose_results_were_not_kept(tmp_path: Path) -> None:
    whole = whole_run("google_adk_alone", tmp_path / "whole")

    for index, kill_at in enumerate(points_of(whole, saves=6)):
        killed = Job("google_adk_alone", tmp_path / str(index))
        check_resumed(whole, ANSWER, killed, kill_at, again=TOOLS)
        assert said(killed) == said(whole), kill_at
