"""A coding agent that breaks its files, sees it, and recovers by rolling back.

The model is scripted, so that this runs anywhere: its first patch breaks the program, its second
mends it. State, tasks and files go back together; the issue tracker is told once, whatever happens.
In the middle the process is cut off, and the same program started again goes on.

Run it: python coding_agent.py [store URL]
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast import Run, SyncClient

BUGGY = "def mean(numbers):\n    return sum(numbers) / 10\n"
TEST = "from stats import mean\nassert mean([2, 4]) == 3, mean([2, 4])\n"
PATCHES = [
    "def mean(numbers)\n    return sum(numbers) / len(numbers)\n",  # a colon is missing
    "def mean(numbers):\n    return sum(numbers) / len(numbers)\n",
]


class PowerCut(BaseException):
    """Ends the program as a kill would."""


def model(tried: int) -> str:
    """The scripted model: its next patch."""
    print(f"  model: patch {tried + 1}")
    return PATCHES[tried]


def write(repo: Path, name: str, text: str) -> None:
    """A tool that changes the workspace."""
    print(f"  write: {name}")
    (repo / name).write_text(text)


def run_tests(repo: Path) -> str:
    """A tool that looks: empty if the tests pass."""
    done = subprocess.run(
        [sys.executable, "-B", "test_stats.py"], cwd=repo, capture_output=True, text=True
    )
    said = done.stderr.strip().splitlines()
    print(f"  tests: {said[-1] if said else 'pass'}")
    return said[-1] if said else ""


def report(text: str) -> str:
    """A tool that cannot be undone."""
    print(f"  issue tracker: {text}")
    return "comment 1"


def agent(run: Run, repo: Path, cut: bool) -> None:
    for task in run.tasks.plan("reproduce", "fix", "report").remaining():
        with task:
            print(task.name)
            if task.name == "reproduce":
                run.state["failure"] = run.call(run_tests, repo, effect="read")
            elif task.name == "fix":
                fix(run, repo, cut)
            else:
                said = f"fixed after {run.context['tried']} tries"
                run.state["comment"] = run.call(report, said, effect="irreversible")


def fix(run: Run, repo: Path, cut: bool) -> None:
    """Patch until the tests pass; a patch that does not help is rolled back, files and all."""
    for tried in range(run.context.get("tried", 0), len(PATCHES)):
        patch = run.call(model, tried, effect="read")
        run.call(write, repo, "stats.py", patch)
        if cut:
            print("-- the power is cut --")
            raise PowerCut
        failed = run.call(run_tests, repo, effect="read")
        if not failed:
            run.context["tried"] = tried + 1
            return
        run.rollback(to="reproduce: completed")
        print(f"  rolled back: stats.py is {(repo / 'stats.py').read_text()!r}")
        run.context["tried"] = tried + 1
        run.checkpoint(f"patch {tried + 1} did not help")


@contextmanager
def repository() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        repo = Path(directory) / "repo"
        repo.mkdir()
        (repo / "stats.py").write_text(BUGGY)
        (repo / "test_stats.py").write_text(TEST)
        yield repo


def main(url: str) -> None:
    with repository() as repo, SyncClient.open(url) as client:
        for cut in (True, False):
            try:
                with client.session("coder", session_id="fix-mean", workspace=repo) as run:
                    agent(run, repo, cut)
            except PowerCut:
                (repo / "stats.py").write_text("half a fi")  # what a crash may leave behind
        print("\nwhat was kept:")
        for info in reversed(client.timeline("coder", "fix-mean")):
            print(f"  {info.step_name}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "memory://")
