"""What is special about Gemini CLI: no call ids, chats that it deletes, folders it has to trust."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.coding_agents.kit import Reply, Said, Script, Shell, Subagent, Write
from tests.coding_agents.programs.gemini_cli import MODEL, GeminiCli
from tests.coding_agents.terminal import Terminal
from tests.waiting import wait_until

WRITE, TWICE, SLOW, BOTH = "Write it.", "Do it twice.", "Be slow.", "Do both."
HELPER = "Help."
AGAIN = Shell("echo again >> again.txt")
SCRIPT: Script = {
    WRITE: [Reply("I write.", [Write("a.txt", "one\n")]), Reply("Written.")],
    TWICE: [Reply("", [AGAIN, AGAIN]), Reply("Done twice.")],
    SLOW: [
        Reply("", [Write("b.txt", "b\n"), Shell("echo $$ > pid && exec sleep 60")]),
        Reply("Never."),
    ],
    BOTH: [Reply("", [Subagent(HELPER)]), Reply("Both done.")],
    HELPER: [
        Reply("", [Write("helper.txt", "helped\n")]),
        Reply("", [Shell("echo more >> helper.txt")]),
        Reply("It is done."),
    ],
}
INTERRUPTED = "[The previous response was interrupted before it completed.]"


@pytest.fixture
def gemini(tmp_path: Path) -> Iterator[GeminiCli]:
    made = GeminiCli(tmp_path, SCRIPT)
    made.holdfast("hook", "install", "gemini-cli")
    yield made
    made.close()


def session_of(gemini: GeminiCli) -> str:
    return str(gemini.holdfast("sessions")["sessions"][0]["session_id"])


def steps(gemini: GeminiCli, session: str) -> dict[str, str]:
    """Return the checkpoints of a session by what they are called, the oldest first."""
    found = gemini.holdfast("log", session)["checkpoints"]
    return {f"{n} {each['step_name']}": each["checkpoint_id"] for n, each in enumerate(found[::-1])}


def rewound(gemini: GeminiCli, checkpoint_id: str) -> dict[str, Any]:
    found: dict[str, Any] = gemini.holdfast("rewind", checkpoint_id, "--yes")
    return found


def resumed(gemini: GeminiCli, back: dict[str, Any]) -> Said:
    """Go on from a rewind; return what the model was told of what was before."""
    asked = gemini.ask("Go on.", resume=back["resume"])
    assert asked.code == 0, asked
    assert asked.requests[0].said[-1] == ("user", "Go on.")
    return asked.requests[0].said[:-1]


def chats(gemini: GeminiCli) -> list[str]:
    return sorted(each.name for each in gemini.home.glob(".gemini/tmp/*/chats/session-*"))


def test_a_chat_that_the_program_deleted_is_gone_back_to_all_the_same(gemini: GeminiCli) -> None:
    told = gemini.ask(WRITE).requests[-1].said
    session = session_of(gemini)
    subprocess.run(
        [gemini.program, "--delete-session", "1"],
        cwd=gemini.project,
        env=gemini.environment,
        stdin=subprocess.DEVNULL,
        check=True,
        capture_output=True,
    )
    assert chats(gemini) == []

    back = rewound(gemini, steps(gemini, session)["2 agent: Written."])

    assert resumed(gemini, back) == [*told, ("agent", "Written.")]


def test_an_undo_goes_on_with_a_chat_that_is_gone_each_time(gemini: GeminiCli) -> None:
    told = gemini.ask(WRITE).requests[-1].said
    session, files = session_of(gemini), gemini.files()
    first = steps(gemini, session)["0 you: " + WRITE]
    rewound(gemini, first)
    for chat in gemini.home.glob(f".gemini/tmp/*/chats/session-*-{session[:8]}.jsonl"):
        chat.unlink()
    gemini.holdfast("undo", "--yes")
    gemini.holdfast("rewind", first, "--session", session, "--yes")
    assert gemini.files() != files

    back = gemini.holdfast("undo", "--yes")

    assert gemini.files() == files
    assert resumed(gemini, back) == [*told, ("agent", "Written.")]


def test_a_session_that_was_rewound_outlives_the_next_start(gemini: GeminiCli) -> None:
    """The program deletes the chats of sessions that were resumed as soon as another begins."""
    gemini.ask(WRITE)
    back = rewound(gemini, steps(gemini, session_of(gemini))["1 WriteFile a.txt"])
    first = resumed(gemini, back)

    gemini.ask("Something else.")

    assert resumed(gemini, back)[: len(first)] == first


def test_a_session_that_was_rewound_goes_on_in_a_terminal(gemini: GeminiCli) -> None:
    told = gemini.ask(WRITE).requests[-1].said
    back = rewound(gemini, steps(gemini, session_of(gemini))["1 WriteFile a.txt"])
    before = len(gemini.requests)
    command = [gemini.program, *back["resume"][1:], "--yolo", "-m", MODEL, "-i", "Go on."]

    with Terminal(command, gemini.project, gemini.environment) as terminal:
        terminal.shows("I write.")
        terminal.shows("All right.")

    assert gemini.requests[before].said == [*told, ("user", "Go on.")]


def test_only_a_turn_that_is_cut_is_said_to_be_interrupted(gemini: GeminiCli) -> None:
    gemini.ask(WRITE)
    points = steps(gemini, session_of(gemini))

    def said_by_the_program(checkpoint_id: str) -> bool:
        asked = gemini.ask("Go on.", resume=rewound(gemini, checkpoint_id)["resume"])
        return INTERRUPTED in json.dumps(asked.requests[0].body["contents"])

    assert said_by_the_program(points["1 WriteFile a.txt"])
    assert not said_by_the_program(points["2 agent: Written."])


def test_before_the_first_prompt_a_session_begins_that_joins_the_fork(gemini: GeminiCli) -> None:
    gemini.ask(WRITE)
    session = session_of(gemini)

    back = rewound(gemini, steps(gemini, session)[f"0 you: {WRITE}"])

    assert back["resume"] == ["gemini", "--session-id", back["new_session_id"]]
    assert back["prompt"] == WRITE
    assert gemini.files() == {}
    assert resumed(gemini, back) == []
    assert list(steps(gemini, back["new_session_id"]))[-1].endswith("agent: All right.")


def test_of_two_equal_calls_side_by_side_the_first_to_end_is_alone(gemini: GeminiCli) -> None:
    told = gemini.ask(TWICE).requests[-1].said
    one, two = [each for name, each in steps(gemini, session_of(gemini)).items() if "again" in name]
    call = ("call", "run_shell_command", {"command": AGAIN.command})

    first = resumed(gemini, rewound(gemini, one))
    second = resumed(gemini, rewound(gemini, two))

    assert first.count(call) == 1
    assert first[-1] in told
    assert sorted(map(str, second)) == sorted(map(str, told))
    assert gemini.files() == {"again.txt": b"again\nagain\n"}


def test_a_call_whose_result_was_never_written_is_gone_on_from(gemini: GeminiCli) -> None:
    """The program is killed while another call still runs."""
    running = subprocess.Popen(
        gemini.arguments(SLOW, None),
        cwd=gemini.project,
        env=gemini.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    wait_until(
        lambda: (gemini.project / "pid").exists() and len(_written(gemini)) == 1, "the first call"
    )
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    os.kill(int((gemini.project / "pid").read_text()), signal.SIGKILL)

    back = rewound(gemini, _written(gemini)[0])

    assert "never wrote" in back["note"]
    user, call, result = resumed(gemini, back)
    assert user == ("user", SLOW)
    assert call[:2] == ("call", "write_file")
    assert "b.txt" in result[1]


def _written(gemini: GeminiCli) -> list[str]:
    sessions = gemini.holdfast("sessions")["sessions"]
    if not sessions:
        return []
    found = steps(gemini, sessions[0]["session_id"])
    return [each for name, each in found.items() if name.endswith("WriteFile b.txt")]


def test_a_subagents_steps_have_its_files_and_the_conversation_from_before_it(
    gemini: GeminiCli,
) -> None:
    told = gemini.ask(WRITE).requests[-1].said
    session = session_of(gemini)
    gemini.ask(BOTH, resume=["gemini", "--resume", session])
    sessions = [each["session_id"] for each in gemini.holdfast("sessions")["sessions"]]
    beside = next(each for each in sessions if each.startswith(f"{session}."))
    points = steps(gemini, beside)
    assert list(points) == ["0 WriteFile helper.txt", "1 Shell echo more >> helper.txt"]

    back = rewound(gemini, points["0 WriteFile helper.txt"])

    assert gemini.files() == {"a.txt": b"one\n", "helper.txt": b"helped\n"}
    assert back["prompt"] == BOTH
    assert resumed(gemini, back) == [*told, ("agent", "Written.")]


def test_a_directory_that_the_program_has_never_seen_takes_a_conversation(
    gemini: GeminiCli, tmp_path: Path
) -> None:
    told = gemini.ask(WRITE).requests[-1].said
    done = gemini.holdfast(
        "rewind",
        steps(gemini, session_of(gemini))["1 WriteFile a.txt"],
        "--to",
        str(tmp_path / "New Project"),
        "--yes",
    )

    asked = gemini.ask("Go on.", resume=done["resume"], folder=tmp_path / "New Project")

    assert asked.code == 0, asked
    assert asked.requests[0].said[:-1] == told
    assert (gemini.home / ".gemini/tmp/new-project/chats").is_dir()


def test_a_folder_has_to_be_trusted_and_the_advice_says_so(tmp_path: Path) -> None:
    gemini = GeminiCli(tmp_path, SCRIPT)
    gemini.trusts = False
    try:
        advice = gemini.holdfast("hook", "install", "gemini-cli")["advice"]
        assert any("trusted" in each for each in advice)
        assert gemini.ask(WRITE).code != 0

        rules = {str(gemini.project): "TRUST_FOLDER"}
        (gemini.home / ".gemini" / "trustedFolders.json").write_text(json.dumps(rules))

        assert gemini.holdfast("hook", "install", "gemini-cli")["advice"] == []
        assert gemini.ask(WRITE).code == 0
        assert len(steps(gemini, session_of(gemini))) == 3
    finally:
        gemini.close()


def test_what_was_said_is_shown(gemini: GeminiCli) -> None:
    gemini.ask(WRITE)
    last = list(steps(gemini, session_of(gemini)).values())[-1]

    shown = json.dumps(gemini.holdfast("show", last, "--messages"))

    assert all(each in shown for each in (WRITE, "I write.", "write_file", "Written."))
