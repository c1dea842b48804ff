"""Runs of the OpenAI Agents SDK that are killed at every moment, and started again."""

from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of, whole_run


@pytest.mark.parametrize("name", ["openai_agents", "openai_agents_handoff"])
def test_a_run_killed_anywhere_goes_on_as_if_it_had_not_been(name: str, tmp_path: Path) -> None:
    whole = whole_run(name, tmp_path / "whole")
    output = Job(name, tmp_path / "again").start().output
    points = points_of(whole)
    assert len(points) > 20

    for number, kill_at in enumerate(points):
        check_resumed(whole, output, Job(name, tmp_path / str(number)), kill_at)
