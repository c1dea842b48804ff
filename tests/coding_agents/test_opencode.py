"""What is special about opencode: a plugin that is never in the way, git, subagents, a server."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from holdfast.coding_agents.opencode.settings import SETTINGS
from tests.coding_agents.kit import SECONDS, Edit, Reply, Script, Shell, Subagent, Tool, Write
from tests.coding_agents.programs.opencode import OpenCode

MAKE, THROWS, READS, HELPED, HANGS = "Make it.", "Throw.", "Read it.", "Have it made.", "Hang."
HELPER, GOES_ON = "Write the helper's file.", "Go on from here."

SCRIPT: Script = {
    MAKE: [
        Reply("I begin.", [Write("made.txt", "made\n")]),
        Reply("", [Shell("mkdir -p build empty/in && echo o > build/out.o && echo s > new.txt")]),
        Reply("It is made."),
    ],
    THROWS: [
        Reply("", [Edit("none.txt", "a", "b")]),
        Reply("", [Shell("echo after > after.txt")]),
        Reply("", [Edit("none.txt", "c", "d")]),
        Reply("It threw."),
    ],
    READS: [
        Reply("", [Tool("read", {"filePath": "kept.txt"}), Tool("glob", {"pattern": "*.txt"})]),
        Reply("It is read."),
    ],
    HELPED: [Reply("", [Subagent(HELPER)]), Reply("It was helped.")],
    HELPER: [Reply("", [Write("helper.txt", "helped\n")]), Reply("The file is there.")],
    HANGS: [
        Reply("", [Write("made.txt", "made\n")]),
        Reply("", [Shell("echo hangs > hangs.txt; sleep 600")]),
    ],
}


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[type[OpenCode]], OpenCode]]:
    programs: list[OpenCode] = []

    def make(of_class: type[OpenCode] = OpenCode) -> OpenCode:
        programs.append(of_class(tmp_path, SCRIPT))
        (programs[-1].project / "kept.txt").write_text("by the user\n")
        return programs[-1]

    yield make
    for program in programs:
        program.close()


@pytest.fixture
def program(made: Callable[..., OpenCode]) -> OpenCode:
    """opencode, with the plugin."""
    program = made()
    install(program)
    return program


def install(program: OpenCode, command: list[str] | None = None) -> None:
    """Put the plugin into the project, with another command if one is given."""
    program.holdfast("hook", "install", "opencode")
    if command is not None:
        SETTINGS.install(SETTINGS.file("project", program.project), command)


def hook_that(program: OpenCode, does: str) -> list[str]:
    """Return a command of a name that needs care, to be run in the place of the hook."""
    folder = program.home / "a \"quoted\" 'place'"
    folder.mkdir()
    script = folder / "my hook"
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)
    return [str(script), "an 'argument'"]


def steps(program: OpenCode, session: str | None = None) -> list[str]:
    """Return what the steps of a session are called, the first first."""
    session = session or main_session(program)
    found = program.holdfast("log", session)["checkpoints"]
    return [each["step_name"] for each in reversed(found)]


def main_session(program: OpenCode) -> str:
    """Return the session that has no parent."""
    sessions = program.holdfast("sessions")["sessions"]
    found: list[str] = [each["session_id"] for each in sessions if "." not in each["session_id"]]
    assert len(found) == 1, found
    return found[0]


def checkpoint(program: OpenCode, name: str) -> str:
    """Return the checkpoint of the first step of the main session that is called so."""
    found = program.holdfast("log", main_session(program))["checkpoints"]
    ids: list[str] = [each["checkpoint_id"] for each in found if each["step_name"] == name]
    return ids[-1]


def everything(folder: Path) -> dict[str, bytes | None]:
    """Return what is in a project, hidden files too, but for what is the programs' own."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if path.relative_to(folder).parts[0] not in (".git", ".holdfast", ".opencode")
    }


def test_a_call_that_throws_is_recorded_before_the_next_one_begins(program: OpenCode) -> None:
    asked = program.ask(THROWS)

    assert asked.code == 0, asked
    assert steps(program) == [
        f"you: {THROWS}",
        "edit none.txt (failed)",
        "bash echo after > after.txt",
        "edit none.txt (failed)",
        "agent: It threw.",
    ]
    back = program.holdfast("rewind", checkpoint(program, "edit none.txt (failed)"), "--yes")
    assert set(everything(program.project)) == {"kept.txt"}
    said = program.ask(GOES_ON, resume=back["resume"]).requests[0].said
    error = f"File {program.project}/none.txt not found"
    assert said[2:] == [("result", error), ("user", GOES_ON)]


class SameIds(OpenCode):
    """opencode with a model that gives the calls of every turn the same ids."""

    def call_id(self, body: Any, at: int) -> str:
        return f"call_{at}"


def test_calls_of_one_id_are_told_apart(made: Callable[..., OpenCode]) -> None:
    program = made(SameIds)
    install(program)
    told = program.ask(THROWS).requests

    assert steps(program)[1:4] == [
        "edit none.txt (failed)",
        "bash echo after > after.txt",
        "edit none.txt (failed)",
    ]
    back = program.holdfast("rewind", checkpoint(program, "bash echo after > after.txt"), "--yes")
    said = program.ask(GOES_ON, resume=back["resume"]).requests[0].said
    assert said == [*told[2].said, ("user", GOES_ON)]


def test_what_only_reads_makes_no_checkpoint(program: OpenCode) -> None:
    program.ask(READS)

    assert steps(program) == [f"you: {READS}", "agent: It is read."]


def test_a_subagent_has_its_own_conversation_beside_that_of_its_parent(program: OpenCode) -> None:
    program.ask(HELPED)

    session = main_session(program)
    beside = [
        each["session_id"]
        for each in program.holdfast("sessions")["sessions"]
        if each["session_id"].startswith(f"{session}.ses_")
    ]
    assert len(beside) == 1
    assert steps(program, beside[0]) == [
        f"task: {HELPER}",
        "write helper.txt",
        "agent: The file is there.",
    ]
    assert steps(program) == [f"you: {HELPED}", "task: Help out", "agent: It was helped."]


def test_the_one_of_the_project_goes_before_the_one_of_the_user(program: OpenCode) -> None:
    user = program.home / ".config/opencode/plugins/holdfast.js"
    seen = program.home / "seen"
    SETTINGS.install(user, hook_that(program, f'echo told >> "{seen}"'))

    program.ask(MAKE)

    assert len(steps(program)) == 4
    assert not seen.exists()


def test_a_first_start_without_a_network_records_too(program: OpenCode) -> None:
    for folder in (program.home / ".config/opencode", program.project / ".opencode"):
        (folder / "package-lock.json").unlink()
        (folder / "node_modules").rmdir()

    asked = program.ask(MAKE)

    assert asked.code == 0, asked
    assert len(steps(program)) == 4


def test_a_hook_that_is_not_there_is_not_in_the_way(made: Callable[..., OpenCode]) -> None:
    program = made()
    install(program, ["/nowhere/holdfast", "hook"])

    asked = program.ask(MAKE)

    assert (asked.code, asked.err) == (0, "")
    assert "It is made." in asked.out
    assert (program.project / "build/out.o").read_text() == "o\n"


def test_a_hook_that_fails_and_talks_is_not_in_the_way(made: Callable[..., OpenCode]) -> None:
    program = made()
    seen = program.home / "seen"
    does = f'echo noise; echo noise >&2; cat >> "{seen}"; echo "$1" >> "{seen}"; exit 2'
    install(program, hook_that(program, does))

    asked = program.ask(MAKE)

    assert (asked.code, asked.err) == (0, "")
    assert "noise" not in asked.out
    told = [json.loads(line) for line in seen.read_text().split("an 'argument'\n") if line]
    assert [each["event"] for each in told] == [
        "chat.message",
        "tool.execute.after",
        "tool.execute.after",
        "session.idle",
    ]
    assert {each["cwd"] for each in told} == {str(program.project)}


def test_a_hook_that_hangs_holds_the_agent_up_once_and_is_ended_with_it(
    made: Callable[..., OpenCode],
) -> None:
    program = made()
    pids = program.home / "pids"
    install(program, hook_that(program, f'echo $$ >> "{pids}"; exec sleep 600'))
    begun = time.monotonic()

    asked = program.ask(MAKE)

    assert asked.code == 0, asked
    assert "It is made." in asked.out
    assert time.monotonic() - begun < 40
    for pid in pids.read_text().split():
        assert not Path(f"/proc/{pid}").exists() or _is_ended(int(pid))


def _is_ended(pid: int) -> bool:
    return ") Z " in Path(f"/proc/{pid}/stat").read_text()


class Broken(OpenCode):
    """opencode, whose model refuses."""

    def _take(self, method: str, path: str, body: Any) -> tuple[int, str, bytes]:
        return 400, "application/json", b'{"error": {"message": "The model is closed."}}'


def test_an_agent_that_was_stopped_says_why(made: Callable[..., OpenCode]) -> None:
    program = made(Broken)
    install(program)

    program.ask(MAKE)

    first, last = steps(program)
    assert first == f"you: {MAKE}"
    assert last.startswith("agent: stopped: ")
    assert "The model is closed." in last


def test_a_kill_loses_nothing_that_was_recorded(program: OpenCode) -> None:
    running = subprocess.Popen(
        program.arguments(HANGS, None),
        cwd=program.project,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        wait_for((program.project / "hangs.txt").exists)
    finally:
        os.killpg(running.pid, 9)
        running.wait()

    assert steps(program) == [f"you: {HANGS}", "write made.txt"]
    back = program.holdfast("rewind", checkpoint(program, "write made.txt"), "--yes")
    assert not (program.project / "hangs.txt").exists()
    asked = program.ask(GOES_ON, resume=back["resume"])
    assert asked.requests[0].said == [
        ("user", HANGS),
        ("call", "write", {"filePath": "made.txt", "content": "made\n"}),
        ("result", "Wrote file successfully."),
        ("user", GOES_ON),
    ]


def wait_for(is_so: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + SECONDS
    while not is_so():
        assert time.monotonic() < end
        threading.Event().wait(0.05)


@pytest.mark.parametrize("in_git", [True, False])
def test_a_rewind_takes_back_what_opencode_itself_would_leave(
    program: OpenCode, in_git: bool
) -> None:
    project = program.project
    (project / ".gitignore").write_text("build/\n.env\n.holdfast/\n")
    (project / "build").mkdir()
    (project / "build" / "kept.o").write_text("kept\n")
    (project / ".env").write_text("KEY=by the user\n")
    (project / "empty").mkdir()
    if in_git:
        git(program, "init", "-q")
        git(program, "add", "kept.txt")
        git(program, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-qm", "first")
    before = everything(project)
    program.ask(MAKE)
    assert set(everything(project)) - set(before) == {
        *("made.txt", "new.txt", "empty/in", "build/out.o")
    }

    back = program.holdfast("rewind", checkpoint(program, f"you: {MAKE}"), "--yes")

    # What the project has git ignore is neither kept nor lost.
    assert everything(project) == {**before, "build/out.o": b"o\n"}
    asked = program.ask(GOES_ON, resume=back["resume"])
    assert asked.requests[0].said == [("user", GOES_ON)]
    assert steps(program, back["new_session_id"])[-1] == "agent: All right."


def git(program: OpenCode, *words: str) -> None:
    """Run git in the project."""
    subprocess.run(["git", *words], cwd=program.project, env=program.environment, check=True)


@contextmanager
def serving(program: OpenCode) -> Iterator[Callable[..., Any]]:
    """Run opencode as a server, as its terminal does, and give what asks it."""
    server = subprocess.Popen(
        [program.program, "serve", "--port", "0", "--hostname", "127.0.0.1"],
        cwd=program.project,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = next(line for line in server.stdout if "http://" in line).split()[-1]

        def asked(path: str, body: Any) -> Any:
            data = json.dumps(body).encode()
            kind = {"Content-Type": "application/json"}
            request = urllib.request.Request(url + path, data=data, headers=kind)
            with urllib.request.urlopen(request, timeout=SECONDS) as answer:
                return json.loads(answer.read())

        yield asked
    finally:
        server.terminate()
        server.wait()
        assert server.stdout is not None
        server.stdout.close()


def test_a_command_that_the_user_runs_is_a_step(program: OpenCode) -> None:
    with serving(program) as asked:
        session = asked("/session", {})["id"]
        command = {"agent": "build", "command": "echo mine > mine.txt"}
        asked(f"/session/{session}/shell", command)
        wait_for(lambda: is_recorded(program, session))

    assert "bash echo mine > mine.txt" in steps(program)


def is_recorded(program: OpenCode, session: str) -> bool:
    """Return whether the end of a session is recorded."""
    sessions = [each["session_id"] for each in program.holdfast("sessions")["sessions"]]
    return session in sessions and steps(program, session)[-1].startswith("agent: ")


def test_a_conversation_that_was_compacted_goes_on_from_its_summary(program: OpenCode) -> None:
    program.ask(MAKE)
    session = main_session(program)
    with serving(program) as asked:
        model = {"providerID": "scripted", "modelID": "one"}
        asked(f"/session/{session}/summarize", model)
    second = program.ask(READS, resume=["opencode", "--session", session])
    told = second.requests[-1].said
    assert ("agent", "A title") in told  # the summary that the model gave
    assert ("agent", "I begin.") not in told

    back = program.holdfast("rewind", checkpoint(program, "agent: It is read."), "--yes")
    asked_again = program.ask(GOES_ON, resume=back["resume"])

    assert asked_again.requests[0].said == [*told, ("agent", "It is read."), ("user", GOES_ON)]


def test_what_was_said_is_shown(program: OpenCode) -> None:
    program.ask(MAKE)

    shown = program.holdfast("show", checkpoint(program, "agent: It is made."), "--messages")

    text = json.dumps(shown)
    assert "I begin." in text
    assert "It is made." in text
    assert "echo o > build/out.o" in text
