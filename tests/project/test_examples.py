"""Every script in examples/ runs, and says what it promises to show."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"

SHOWN = {
    "handoff/supervisor.py": "6 jobs completed, 12 steps, none twice",
    "langgraph/approval.py": "sent: True",
    "langgraph/crash_and_resume.py": "-> Report: Kelp grows half a metre a day.",
    "langgraph/fan_out.py": "runs: ['a', 'b', 'c', 'c']",
    "langgraph/subgraphs.py": "booked the Anchor",
    "langgraph/time_travel.py": "A joke about otters.",
    "run/coding_agent.py": "issue tracker: fixed after 2 tries",
    "run/explore.py": "adopted sample: a mean of 3.75 stars",
    "stores/one_table.py": ": {'step': 2}",
}


def test_every_example_is_known_here() -> None:
    assert {str(path.relative_to(EXAMPLES)) for path in EXAMPLES.rglob("*.py")} == SHOWN.keys()


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / name],
        cwd=tmp_path,
        env={**os.environ, "HOLDFAST_URL": ""},
        capture_output=True,
        text=True,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert SHOWN[name] in done.stdout
    assert not list(tmp_path.iterdir()), "an example leaves nothing behind"
