"""Kills of hooks and helpers: what was acknowledged is there, and nobody waits or is left."""

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from holdfast.testing import crash_points
from tests.cli.hook_kit import Hooks, hooks_of
from tests.cli.kit import environment

EVENTS = 240
WORKSPACE_POINTS = ("workspace:scanned", "workspace:kept")


@pytest.fixture
def hooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hooks]:
    """The hooks of a project."""
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    project = tmp_path / "project"
    (project / ".holdfast").mkdir(parents=True)
    (project / "page.html").write_text("before")
    with hooks_of(project) as hooks:
        yield hooks


DIES_ONCE = """
import os, signal
from pathlib import Path
from holdfast.system import crash_points

marker, point, time = Path({marker!r}), {point!r}, {time}
passed = 0

def die(name):
    global passed
    passed += name == point
    if name == point and passed == time:
        try:
            marker.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

crash_points.install(die)
"""


@pytest.mark.parametrize("helper", ["first", "warm"])
@pytest.mark.parametrize(
    "point", [*crash_points.HELPER_POINTS, *WORKSPACE_POINTS, *crash_points.POINTS["sqlite"]]
)
def test_an_event_is_recorded_once_wherever_the_helper_dies(
    hooks: Hooks, point: str, helper: str
) -> None:
    """An event without the id of a call, as prompts have none, so that nothing else tells."""
    marker = str(hooks.faults / "died")
    times = {"first": 1, "warm": 5 if point.startswith("sqlite") else 2}
    hooks.fault(DIES_ONCE.format(marker=marker, point=point, time=times[helper]))
    numbers = range(4)
    for number in numbers:
        (hooks.project / "page.html").write_text(f"page {number}")
        hooks.ok(hooks.event("UserPromptSubmit", prompt=f"prompt {number}"))

    assert os.path.exists(marker)
    names = [each.step_name for each in hooks.recorded()]
    assert names == [f"you: prompt {number}" for number in numbers]
    assert not hooks.report.problems


def test_what_was_acknowledged_outlives_kills_at_random(hooks: Hooks) -> None:
    chance = random.Random(15)
    page = hooks.project / "page.html"
    acknowledged = []
    for number in range(EVENTS):
        page.write_text(f"page {number}")
        with hooks.start() as hook:
            victim = chance.choice(["hook", "helper", "nobody"])
            killer = threading.Timer(
                chance.uniform(0, 0.1), kill, (hooks, hook if victim == "hook" else None)
            )
            if victim != "nobody":
                killer.start()
            out, _ = hook.communicate(hooks.event(call=f"call-{number}").encode())
            if victim != "nobody":
                killer.join()
        assert out == b""
        assert hook.returncode in ((0, -signal.SIGKILL) if victim == "hook" else (0,))
        if hook.returncode == 0:
            acknowledged.append(number)

    files = hooks.files()
    assert len(acknowledged) > EVENTS / 2
    for number in acknowledged:
        assert files[f"call-{number}"] == {"page.html": f"page {number}".encode()}
    hooks.ok()  # whose helper removes what those that were killed have left


def kill(hooks: Hooks, hook: subprocess.Popen[bytes] | None) -> None:
    """Kill a hook, or the helper of all."""
    if hook is not None:
        hook.kill()
        return
    for pid in hooks.helpers():
        with suppress(ProcessLookupError):  # it ended by itself
            os.kill(pid, signal.SIGKILL)


AGENT = """
import subprocess, sys
words = [sys.executable, "-m", "holdfast", "hook"]
while True:
    subprocess.run(words, input=sys.argv[1].encode(), check=True)
    print("told", flush=True)
"""


@pytest.mark.parametrize("times", [0, 1, 3])
def test_an_agent_that_is_killed_leaves_no_process_and_no_file(hooks: Hooks, times: int) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", AGENT, hooks.event()],
        cwd=hooks.project,
        env=environment(**hooks.variables),
        stdout=subprocess.PIPE,
    ) as agent:
        assert agent.stdout is not None
        for _ in range(times):
            assert agent.stdout.readline() == b"told\n"
        agent.kill()

    hooks.are_gone()

    assert hooks.left() == []
