"""What an event costs a coding agent: ``python -m benchmarks.hooks``.

In a project of 20,000 files a file is changed and the hook told, by turns with the resident helper,
without one, and in the way of 0.4. CPU is of the hook and of what it had the helper do.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

FOLDERS, FILES = 200, 100
BAR_CPU, BAR_WALL = 60.0, 100.0
"""Milliseconds."""

AS_BEFORE = """
import json, sys
from pathlib import Path
from holdfast.cli.access.opening import location_of, open_location
from holdfast.cli.parsing import command_of, parser_of
from holdfast.client.with_files import save_with_files
from holdfast.workspace import Workspace

options = parser_of(command_of("hook")).parse_args([])
told = json.loads(sys.stdin.buffer.read())
with (
    open_location(location_of(options), create=True) as client,
    Workspace(Path.cwd(), store=client) as workspace,
):
    save_with_files(
        client, workspace, agent_id="before", session_id="s", name="Edit", state=told, tags={}
    )
"""
HOOK = ("-m", "holdfast", "hook")


@dataclass
class Way:
    """One way to record, and what it took."""

    name: str
    arguments: tuple[str, ...]
    variables: dict[str, str] = field(default_factory=dict)
    cpu: list[float] = field(default_factory=list)
    wall: list[float] = field(default_factory=list)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=30)
    parser.add_argument("--files", type=int, default=FOLDERS * FILES)
    parser.add_argument("--dir", type=Path, help="where to make the project")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir, prefix="holdfast-hooks-") as place:
        measure(Path(place), options.events, options.files)


def measure(place: Path, events: int, files: int) -> None:
    """Let each way record in a project of its own."""
    ways = [
        Way("hook, with its helper", HOOK),
        Way("hook, HOLDFAST_HOOK_HELPER=off", HOOK, {"HOLDFAST_HOOK_HELPER": "off"}),
        Way("as before, in 0.4", ("-c", AS_BEFORE)),
    ]
    projects: dict[str, Path] = {}
    for way in ways:
        project = place / way.arguments[0].strip("-") / str(len(projects))
        fill(project, files)
        subprocess.run([sys.executable, "-m", "holdfast", "init"], cwd=project, check=True)
        projects[way.name] = project
        run(way, project, place, 0)  # the first looks at everything
        way.cpu.clear()
        way.wall.clear()
    for number in range(1, events + 1):
        for way in ways:
            run(way, projects[way.name], place, number)
    print(f"{files} files, medians of {events} events, one file changed before each\n")
    print(f"{'':<32}{'CPU':>10}{'wall':>10}")
    for way in ways:
        cpu, wall = statistics.median(way.cpu), statistics.median(way.wall)
        print(f"{way.name:<32}{cpu:>7.1f} ms{wall:>7.1f} ms")
    print(f"{'bars':<32}{BAR_CPU:>7.1f} ms{BAR_WALL:>7.1f} ms")
    for pid in helpers(projects[ways[0].name]):
        os.kill(pid, signal.SIGTERM)


def fill(project: Path, files: int) -> None:
    """Make a project of small files."""
    for number in range(files):
        folder = project / f"part{number // FILES}"
        if number % FILES == 0:
            folder.mkdir(parents=True)
        (folder / f"module{number}.py").write_text(f"# {number}\n" * 20)


def run(way: Way, project: Path, place: Path, number: int) -> None:
    """Change a file, tell the hook, and note what that took."""
    (project / "part0" / "module0.py").write_text(f"print({number})\n")
    transcript = place / f"{project.parent.name}{project.name}.jsonl"
    with open(transcript, "a") as file:
        for _ in range(200 if number == 0 else 2):
            file.write(json.dumps({"type": "assistant", "uuid": f"{number}", "text": "x" * 900}))
            file.write("\n")
    told = {
        "session_id": "s",
        "transcript_path": str(transcript),
        "cwd": str(project),
        "hook_event_name": "PostToolUse",
        "tool_name": "Edit",
        "tool_use_id": f"toolu_{number}",
        "tool_input": {"file_path": "part0/module0.py"},
        "tool_response": {"success": True},
    }
    before = {pid: cpu_of(pid) for pid in helpers(project)}
    begun = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, *way.arguments],
        cwd=project,
        stdin=subprocess.PIPE,
        env={**os.environ, **way.variables},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(told).encode())
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    way.wall.append(1000 * (time.perf_counter() - begun))
    assert process.returncode == 0, way.name
    after = {pid: cpu_of(pid) for pid in helpers(project)}
    spent = sum(after.values()) - sum(before.get(pid, 0.0) for pid in after)
    way.cpu.append(1000 * (usage.ru_utime + usage.ru_stime + spent))


def helpers(project: Path) -> list[int]:
    """Return the helpers of a project."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if b"holdfast.coding_agents.resident" in words and os.fsencode(project) in words:
                found.append(int(entry.name))
    return found


def cpu_of(pid: int) -> float:
    """Return the seconds that the threads of a process have computed."""
    total = 0
    for task in Path(f"/proc/{pid}/task").iterdir():
        total += int((task / "schedstat").read_text().split()[0])
    return total / 1e9


if __name__ == "__main__":
    main()
