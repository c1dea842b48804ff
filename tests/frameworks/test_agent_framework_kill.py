"""Runs of Agent Framework, killed at every point and started again with the same lines."""

from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of, whole_run


@pytest.mark.parametrize(
    ("name", "saves"),
    [
        ("agent_framework", 12),
        ("agent_framework_streamed", 3),
        ("agent_framework_per_call", 3),
        ("agent_framework_workflow", 6),
    ],
)
def test_a_run_killed_anywhere_goes_on_where_it_was(name: str, saves: int, tmp_path: Path) -> None:
    whole = whole_run(name, tmp_path / "whole")
    output = whole.start().output
    for number, kill_at in enumerate(points_of(whole, saves=saves)):
        check_resumed(whole, output, Job(name, tmp_path / str(number)), kill_at)
