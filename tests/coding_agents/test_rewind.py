"""The whole way, with the real programs: work, rewind to every point, go on.

The model keeps a picture of the files with every request it is sent. What a rewind has to bring
back is the picture that the first request behind that point came with, and the conversation is what
that request told.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.coding_agents.kit import (
    Edit,
    Files,
    RealProgram,
    Reply,
    Request,
    Said,
    Script,
    Shell,
    Subagent,
    Write,
)
from tests.coding_agents.programs import CLASSES, real_program

FIRST, SECOND, HELPER = "Make hello.txt.", "Now change it.", "Write the helper's file."
SIDE_BY_SIDE = ("a.txt", "b.txt")
"""What two calls write that are made at once: their commands and their results name it."""

STORY: Script = {
    FIRST: [
        Reply("I begin.", [Write("hello.txt", "one\nzwei é\n")]),
        Reply("", [Shell("mkdir -p out/empty && echo made > out/made.txt && echo x >> hello.txt")]),
        Reply("Now a check.", [Shell("echo half > half.txt; exit 3")]),
        Reply("It is made."),
    ],
    SECOND: [
        Reply("", [Edit("hello.txt", "one", "two")]),
        Reply(
            "Both at once.", [Shell(f"echo made > {name} && ls {name}") for name in SIDE_BY_SIDE]
        ),
        Reply("", [Subagent(HELPER)]),
        Reply("", [Shell("rm -r out")]),
        Reply("It is changed."),
    ],
    HELPER: [Reply("", [Write("helper.txt", "helped\n")]), Reply("The file is there.")],
}


@pytest.fixture(params=list(CLASSES))
def program(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RealProgram]:
    """Every program, with the hook installed as the page says."""
    made = real_program(request.param)(tmp_path, STORY)
    (made.project / "kept.txt").write_text("by the user\n")
    made.holdfast("hook", "install", made.name)
    yield made
    made.close()


def tell(program: RealProgram) -> dict[str, Any]:
    """Have the program do the whole story; return its session."""
    first = program.ask(FIRST)
    assert first.code == 0, first
    session = program.holdfast("sessions")["sessions"][0]["session_id"]
    second = program.ask(SECOND, resume=program_resume(program, session))
    assert second.code == 0, second
    sessions: list[dict[str, Any]] = program.holdfast("sessions")["sessions"]
    return next(each for each in sessions if each["session_id"] == session)


def program_resume(program: RealProgram, session: str) -> list[str]:
    """Return the command by which the program itself goes on with a session."""
    from holdfast.coding_agents.programs import transcript
    from holdfast.coding_agents.transcript import Cut

    known = transcript(program.name)
    assert known is not None
    return known.resume(session, Cut(entries=[{}]))


def main_requests(program: RealProgram) -> list[Request]:
    """Return what the model was sent, but for what the subagent asked."""
    return [each for each in program.requests if not any(HELPER in _user(s) for s in each.said)]


def _user(each: tuple[Any, ...]) -> str:
    return each[1] if each[0] == "user" else ""


def results(said: Said) -> int:
    """Return how many calls a conversation has the results of."""
    return sum(each[0] == "result" for each in said)


def points(program: RealProgram, session: str) -> list[dict[str, Any]]:
    """Return the checkpoints of a session, the oldest first."""
    found: list[dict[str, Any]] = program.holdfast("log", session)["checkpoints"]
    return list(reversed(found))


def test_every_point_of_a_session_comes_back_with_its_files_and_its_conversation(
    program: RealProgram,
) -> None:
    session = tell(program)["session_id"]
    told = main_requests(program)
    end = program.files()
    log = points(program, session)

    # The story takes a while to be told, so all that is looked at is looked at here.
    check_subagent(program, session, log)
    check_undo(program, log[1])
    assert log[0]["step_name"] == f"you: {FIRST}"
    calls = 0
    seen = 0
    for point in log:
        name = point["step_name"]
        beside = None
        if name.startswith("you: "):
            at = next(each for each in told if each.said[-1] == ("user", name[5:]))
            expected, files = at.said[:-1], at.files
        elif name.startswith("agent: "):
            # What follows is the next prompt, or nothing.
            later = [e for e in told if results(e.said) == calls and e.said[-1][0] == "user"]
            behind = [e for e in later if ("agent", name[7:]) in e.said]
            expected = behind[0].said[:-1] if behind else [*told[-1].said, ("agent", name[7:])]
            files = behind[0].files if behind else end
        else:
            calls += 1
            at = next(each for each in told if results(each.said) >= calls)
            expected, files = at.said, at.files
            if results(at.said) > calls:  # the other of two at once was recorded later
                (beside,) = (each for each in SIDE_BY_SIDE if each not in name)
        seen += 1
        check(program, point, expected, files, beside)
    assert (calls, seen) == (8, 12)


def check(
    program: RealProgram,
    point: dict[str, Any],
    expected: Said,
    files: Files,
    beside: str | None = None,
) -> None:
    """Rewind to a point, look at the files, go on, and look at what the model is sent.

    ``beside`` is what a call writes that may still have run then. Which of two calls ends first,
    and what the other has done by then, no program promises: its work may be there before it has
    ended. What is promised is that it is told as done only where all of its work is there.
    """
    where = f"{program.name}: {point['step_name']}"
    back = program.holdfast("rewind", point["checkpoint_id"], "--yes")
    found = program.files()
    assert without(found, beside) == without(files, beside), where

    asked = program.ask("Go on from here.", resume=back["resume"])

    assert asked.code == 0, (where, asked)
    said = asked.requests[0].said
    assert said[-1] == ("user", "Go on from here."), (where, said)
    if beside is not None and (found != files or said[:-1] != expected):
        expected = program.unfinished(expected, beside)
    assert said[:-1] == expected, where
    joined = points(program, back["new_session_id"])
    assert joined[-1]["step_name"] == "agent: All right.", where
    assert point["checkpoint_id"] in {each["parent_id"] for each in joined}, where


def without(files: Files, name: str | None) -> Files:
    """Return files but for one."""
    return {each: content for each, content in files.items() if each != name}


def check_subagent(program: RealProgram, session: str, log: list[dict[str, Any]]) -> None:
    """Look for the session that the subagent has beside its parent's."""
    sessions = program.holdfast("sessions")["sessions"]
    beside = [each for each in sessions if each["session_id"].startswith(session + ".")]

    assert len(beside) == 1
    steps = points(program, beside[0]["session_id"])
    assert any("helper.txt" in each["step_name"] for each in steps)
    assert steps[0]["parent_id"] in {each["checkpoint_id"] for each in log}


def check_undo(program: RealProgram, point: dict[str, Any]) -> None:
    """Rewind, and undo that: the user's own edit and all that was said are there again."""
    mine = program.project / "mine.txt"
    mine.write_text("edited beside the agent\n")
    before = program.files()
    told = main_requests(program)[-1].said

    program.holdfast("rewind", point["checkpoint_id"], "--yes")
    assert program.files() != before
    back = program.holdfast("undo", "--yes")

    assert program.files() == before
    asked = program.ask("Go on from here.", resume=back["resume"])
    assert asked.requests[0].said[: len(told)] == told
    mine.unlink()
