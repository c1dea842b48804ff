"""Agents and teams of AutoGen, killed at every point and started again with the same lines."""

from pathlib import Path

import pytest

from tests.frameworks.kit import Job, check_resumed, points_of, whole_run


@pytest.mark.parametrize(
    ("name", "saves"), [("autogen", 8), ("autogen_streamed", 2), ("autogen_team", 8)]
)
def test_a_run_killed_anywhere_goes_on_where_it_was(name: str, saves: int, tmp_path: Path) -> None:
    whole = whole_run(name, tmp_path / "whole")
    output = whole.start().output
    for number, kill_at in enumerate(points_of(whole, saves=saves)):
        check_resumed(whole, output, Job(name, tmp_path / str(number)), kill_at)
