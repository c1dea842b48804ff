"""The hook, installed as the page says: events of the real programs arrive, and it stands so."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coding_agents.kit import RealProgram, Reply, Script, Shell, Subagent, Write
from tests.coding_agents.programs import CLASSES, real_program

PROMPT, HELPER = "Make hello.txt.", "Write the helper's file."
STORY: Script = {
    PROMPT: [
        Reply("", [Write("hello.txt", "one\n")]),
        Reply("", [Shell("exit 3")]),
        Reply("", [Subagent(HELPER)]),
        Reply("It is made."),
    ],
    HELPER: [Reply("The file is there.")],
}


@pytest.fixture
def made(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    """A program in a project of its own."""
    program = real_program(getattr(request, "param", "claude-code"))(tmp_path, STORY)
    yield program
    program.close()


@pytest.mark.parametrize("made", list(CLASSES), indirect=True)
def test_events_of_every_program_arrive(made: RealProgram) -> None:
    made.holdfast("hook", "install", made.name)

    assert made.ask(PROMPT).code == 0

    said = made.holdfast("hook", "status", made.name)["programs"][0]
    assert said["works"], said
    assert said["last_event"]["count"] >= 4
    names = [each["step_name"] for each in made.holdfast("log", "--all")["checkpoints"]]
    assert f"you: {PROMPT}" in names
    assert any("failed" in name for name in names), names


@pytest.mark.parametrize("scope", [[], ["--local"], ["--user"]])
def test_claude_code_reads_the_hook_wherever_it_is(made: RealProgram, scope: list[str]) -> None:
    made.holdfast("hook", "install", made.name, *scope)

    assert made.ask(PROMPT).code == 0

    assert made.holdfast("hook", "status", made.name)["ok"]


def test_a_hook_that_is_in_two_places_records_every_step_once(made: RealProgram) -> None:
    made.holdfast("hook", "install", made.name)
    made.holdfast("hook", "install", made.name, "--user")

    assert made.ask(PROMPT).code == 0

    names = [each["step_name"] for each in made.holdfast("log", "--all")["checkpoints"]]
    assert len(names) == len(set(names)), names


def test_a_hook_whose_environment_is_gone_is_not_in_the_way(made: RealProgram) -> None:
    file = Path(made.holdfast("hook", "install", made.name)["path"])
    command = made.holdfast("hook", "install", made.name)["command"]
    gone = shlex.join(["/gone/bin/holdfast", *command[1:]])
    file.write_text(file.read_text().replace(shlex.join(command), gone))

    done = made.ask(PROMPT)

    assert done.code == 0
    assert json.loads(done.out)["result"] == "It is made."
    assert (made.project / "hello.txt").read_text() == "one\n"


def test_events_that_claude_code_does_not_know_leave_its_settings_in_force(
    made: RealProgram,
) -> None:
    """So that a hook for a newer one does no harm in an older one."""
    file = Path(made.holdfast("hook", "install", made.name)["path"])
    settings = json.loads(file.read_text())
    settings["hooks"]["AnEventOfNextYear"] = settings["hooks"]["Stop"]
    file.write_text(json.dumps(settings))

    assert made.ask(PROMPT).code == 0

    assert made.holdfast("hook", "status", made.name)["ok"]
