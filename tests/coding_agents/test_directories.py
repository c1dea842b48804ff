"""Going on in another directory, with the real programs: it belongs to the same store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.coding_agents.kit import RealProgram, Reply, Script, Shell, Write
from tests.coding_agents.programs import CLASSES, real_program

FIRST, OTHER = "Make hello.txt.", "Try it another way."
STORY: Script = {
    FIRST: [
        Reply("I begin.", [Write("hello.txt", "one\n")]),
        Reply("", [Shell("echo two >> hello.txt")]),
        Reply("It is made."),
    ],
}


@pytest.fixture(params=list(CLASSES))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    """Every program, with the hook installed and something done."""
    made = real_program(request.param)(tmp_path, STORY)
    made.holdfast("hook", "install", made.name)
    assert made.ask(FIRST).code == 0
    yield made
    made.close()


def written(program: RealProgram) -> str:
    """Return the point at which the file was written."""
    found = program.holdfast("log")["checkpoints"][-2]
    assert found["step_name"].endswith("hello.txt")
    return str(found["checkpoint_id"])


def trust(program: RealProgram, folder: Path) -> None:
    """Trust a directory, which Codex asks its user for before it runs hooks that lie there."""
    if program.name == "codex":
        with (program.home / ".codex" / "config.toml").open("a") as file:
            file.write(f'\n[projects."{folder}"]\ntrust_level = "trusted"\n')


def test_files_and_conversation_go_on_in_a_new_directory(program: RealProgram) -> None:
    before = program.files()
    told = next(each for each in program.requests if each.said[-1][0] == "result")
    second = program.project.parent / "second try"

    back = program.holdfast("rewind", written(program), "--to", str(second), "--yes")
    trust(program, second)
    asked = program.ask("Go on from here.", resume=back["resume"], folder=second)

    assert asked.code == 0, asked
    assert asked.requests[0].said == [*told.said, ("user", "Go on from here.")]
    assert program.files(second) == {"hello.txt": b"one\n"}
    assert program.files() == before
    joined = program.holdfast("log", back["new_session_id"], folder=second)["checkpoints"]
    assert joined[0]["step_name"] == "agent: All right."
    assert joined[-1]["parent_id"] == back["target"]
    assert not (second / ".holdfast").exists()


def test_a_new_session_in_the_directory_of_a_fork_begins_at_the_fork(program: RealProgram) -> None:
    third = program.project.parent / "third"
    fork = program.holdfast("fork", written(program), "--as", "other", "--to", str(third))

    trust(program, third)
    assert program.ask(OTHER, folder=third).code == 0

    sessions = program.holdfast("sessions")["sessions"]
    newest = program.holdfast("log", sessions[0]["session_id"])["checkpoints"]
    assert newest[-1]["step_name"] == f"you: {OTHER}"
    assert newest[-1]["parent_id"] == fork["checkpoint_id"]
    assert not (third / ".holdfast").exists()


def test_a_conversation_that_was_removed_is_written_again_by_an_undo(program: RealProgram) -> None:
    head = program.holdfast("log")["checkpoints"][0]["checkpoint_id"]
    if "transcript" not in program.holdfast("show", head)["state"]:
        return  # it keeps conversations in a database of its own
    told = program.requests[-1].said
    before = program.files()
    program.holdfast("rewind", written(program), "--yes")
    kept = Path(program.holdfast("show", head, "--state", "transcript.path")["value"])

    kept.unlink()
    back = program.holdfast("undo", "--yes")
    asked = program.ask("Go on from here.", resume=back["resume"])

    assert asked.code == 0, asked
    assert asked.requests[0].said == [
        *told,
        ("agent", "It is made."),
        ("user", "Go on from here."),
    ]
    assert program.files() == before
