"""Hooks as an agent runs them, with a helper that is theirs alone."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from holdfast import SyncClient
from holdfast.client.with_files import snapshot_of
from holdfast.coding_agents.hook_log import HookLog, HookReport
from holdfast.model import CheckpointInfo
from holdfast.workspace import Workspace
from tests.cli.kit import Done, Holdfast, environment
from tests.waiting import wait_until

HELPER = b"holdfast.coding_agents.resident"
SESSION = "c0ffee"


PATIENT = """
from holdfast.coding_agents.resident import asking, starting
asking.SILENCE = asking.LONGEST = starting.SECONDS = 300.0
"""
"""A busy machine makes a test slower, not wrong."""


class Hooks:
    """The hooks of a project."""

    def __init__(self, project: Path, runtime: Path, faults: Path) -> None:
        self.project = project
        self.runtime = runtime
        self.faults = faults
        self.variables = {
            "HOLDFAST_HOOK_HELPER": "on",
            "XDG_RUNTIME_DIR": str(runtime),
            "XDG_STATE_HOME": str(runtime.with_name("state")),
            "PYTHONPATH": os.pathsep.join([str(faults), *filter(None, sys.path)]),
        }

    def event(self, name: str = "PostToolUse", call: str | None = None, **more: Any) -> str:
        """An event as Claude Code tells it."""
        told = {"session_id": SESSION, "cwd": str(self.project), "hook_event_name": name, **more}
        if name == "PostToolUse":
            told |= {"tool_name": "Bash", "tool_input": {"command": "make"}}
        return json.dumps(told if call is None else {**told, "tool_use_id": call})

    def start(self, *words: str, **variables: str) -> subprocess.Popen[bytes]:
        """Start a hook; it waits for its event."""
        return subprocess.Popen(
            [sys.executable, "-m", "holdfast", "hook", *words],
            cwd=self.project,
            env=environment(**{**self.variables, **variables}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def __call__(self, event: str | None = None, *words: str, **variables: str) -> Done:
        """Run a hook to its end."""
        with self.start(*words, **variables) as process:
            given = (self.event() if event is None else event).encode()
            out, err = process.communicate(given)
        assert b"Traceback" not in err, err.decode()
        return Done(process.returncode, out.decode(), err.decode())

    def ok(self, event: str | None = None, *words: str, **variables: str) -> None:
        """Run a hook, and see that it said nothing and went well."""
        done = self(event, *words, **variables)
        assert (done.code, done.out, done.err) == (0, "", "")

    def holdfast(self, *words: str) -> Done:
        """Run any command in the project."""
        return Holdfast(self.project)(*words, **self.variables)

    @property
    def report(self) -> HookReport:
        """What the log says."""
        return HookLog.of(self.project).report()

    @property
    def problem(self) -> str:
        """What went wrong last."""
        return self.report.problems[0].text

    def helpers(self) -> list[int]:
        """The processes of helpers that are of this test."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:  # it has ended
                    continue
                places = (os.fsencode(self.runtime), os.fsencode(self.project))
                if HELPER in words and any(word.startswith(places) for word in words):
                    found.append(int(entry.name))
        return found

    def left(self) -> list[str]:
        """The files that helpers have left."""
        return [name for _, _, names in os.walk(self.runtime) for name in names]

    def end(self) -> None:
        """Let every helper end, and see that nothing is left."""
        for pid in self.helpers():
            os.kill(pid, signal.SIGCONT)
            os.kill(pid, signal.SIGTERM)
        self.are_gone()

    def are_gone(self) -> None:
        """Wait until no helper is there."""
        wait_until(lambda: not self.helpers(), "the end of the helper")

    @contextmanager
    def client(self) -> Iterator[SyncClient]:
        with SyncClient.sqlite(self.project / ".holdfast" / "holdfast.db") as client:
            yield client

    def recorded(self) -> list[CheckpointInfo]:
        """Every checkpoint, the oldest first."""
        with self.client() as client:
            return client.find(limit=10**6)[::-1]

    def files(self) -> dict[str, dict[str, bytes]]:
        """The files that the checkpoint of each call holds."""
        found: dict[str, dict[str, bytes]] = {}
        with self.client() as client, Workspace(self.project, client) as workspace:
            for info in client.find(limit=10**6):
                snapshot = snapshot_of(client, info)
                assert snapshot is not None
                call = info.metadata["call_id"]
                assert call not in found, f"{call} was recorded twice"
                found[call] = {
                    entry.path: workspace.read(snapshot, entry.path)
                    for entry in workspace.ls(snapshot)
                    if entry.kind == "file"
                }
        return found

    def fault(self, script: str, is_patient: bool = True) -> None:
        """Run this at the start of every hook and helper; by default they have time."""
        (self.faults / "sitecustomize.py").write_text((PATIENT if is_patient else "") + script)


@contextmanager
def hooks_of(project: Path) -> Iterator[Hooks]:
    """The hooks of a project; when all is done nothing may be left of a helper."""
    with TemporaryDirectory(prefix="hf-", dir="/tmp") as place:  # sockets have short names
        runtime, faults = Path(place) / "run", Path(place) / "faults"
        runtime.mkdir(mode=0o700)
        faults.mkdir()
        hooks = Hooks(project, runtime, faults)
        hooks.fault("")
        try:
            yield hooks
            hooks.end()
            assert hooks.left() == []
        finally:
            for pid in hooks.helpers():
                os.kill(pid, signal.SIGKILL)
