"""The real programs and the helper of their hooks: killed at random, nothing lost or left."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coding_agents.kit import RealProgram, Reply, Script, Shell
from tests.coding_agents.programs import CLASSES, real_program
from tests.waiting import wait_until

PROMPT = "Count to six."
CALLS = 6
HELPER = b"holdfast.coding_agents.resident"
HOOK = b"hook"

COUNTING: Script = {
    PROMPT: [
        *(Reply("", [Shell(f"echo {number} > count.txt")]) for number in range(CALLS)),
        Reply("It is counted."),
    ]
}


@pytest.fixture(params=list(CLASSES))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    """Every program, with the hook installed; no helper may be left of it."""
    made = real_program(request.param)(tmp_path, COUNTING)
    made.holdfast("hook", "install", made.name)
    yield made
    made.close()
    wait_until(lambda: not processes(made, HELPER), "the end of the helper")


def processes(program: RealProgram, word: bytes) -> list[int]:
    """Return the processes of Holdfast that a program's hooks, or their helper, are."""
    found = []
    home = os.fsencode(f"HOME={program.home}")
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                is_its = home in (entry / "environ").read_bytes().split(b"\0")
            except OSError:  # it has ended
                continue
            if is_its and word in words and any(b"holdfast" in each for each in words):
                found.append(int(entry.name))
    return found


def recorded(program: RealProgram) -> list[str]:
    """Return the names of all steps of the session, the oldest first."""
    session = program.holdfast("sessions")["sessions"][0]["session_id"]
    return [each["step_name"] for each in program.holdfast("log", session)["checkpoints"]][::-1]


def kill_now_and_then(program: RealProgram, word: bytes, end: threading.Event) -> None:
    """Kill hooks or their helper at random moments, until the end."""
    chance = random.Random(program.name)
    while not end.wait(chance.uniform(0.05, 0.4)):
        for pid in processes(program, word):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def test_a_helper_that_is_killed_at_random_costs_no_event(program: RealProgram) -> None:
    end = threading.Event()
    killer = threading.Thread(target=kill_now_and_then, args=(program, HELPER, end))
    killer.start()
    asked = program.ask(PROMPT)
    end.set()
    killer.join()

    assert asked.code == 0, asked
    names = recorded(program)
    assert len([name for name in names if "count.txt" in name]) == CALLS, names
    assert names[0] == f"you: {PROMPT}"


def test_hooks_that_are_killed_at_random_do_not_stop_the_agent(program: RealProgram) -> None:
    end = threading.Event()
    killer = threading.Thread(target=kill_now_and_then, args=(program, HOOK, end))
    killer.start()
    asked = program.ask(PROMPT)
    end.set()
    killer.join()

    assert asked.code == 0, asked
    assert (program.project / "count.txt").read_text() == f"{CALLS - 1}\n"


def test_a_program_that_is_killed_leaves_no_process(program: RealProgram) -> None:
    with subprocess.Popen(
        program.arguments(PROMPT, None),
        cwd=program.project,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as running:
        wait_until(lambda: (program.project / "count.txt").exists(), "the first call")
        wait_until(lambda: processes(program, HELPER), "a helper")
        os.killpg(running.pid, signal.SIGKILL)

    wait_until(
        lambda: not processes(program, HELPER) + processes(program, HOOK), "the end of all of it"
    )


@pytest.mark.parametrize("words", [("--later",), ("--from", "newer")])
def test_a_hook_that_is_written_wrongly_does_not_stop_the_agent(
    program: RealProgram, words: tuple[str, ...]
) -> None:
    """As settings are that a newer Holdfast wrote."""
    changed = 0
    for file in [*program.home.rglob("*"), *program.project.rglob("*")]:
        if file.is_file() and file.suffix in (".json", ".js", ".ts", ".toml"):
            text = file.read_text("utf-8", "replace")
            if "hook --from" in text or '"hook", "--from"' in text:
                spoilt = text.replace("hook --from", f"hook {' '.join(words)} --from")
                both = "".join(f'"{word}", ' for word in words)
                file.write_text(spoilt.replace('"hook", "--from"', f'"hook", {both}"--from"'))
                changed += 1
    assert changed

    asked = program.ask(PROMPT)

    assert asked.code == 0, asked
    assert (program.project / "count.txt").read_text() == f"{CALLS - 1}\n"
