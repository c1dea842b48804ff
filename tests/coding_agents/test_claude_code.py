"""What is special about Claude Code, in the real program."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.coding_agents.kit import Asked, Reply, Script, Shell, Subagent, Tool, Write
from tests.coding_agents.programs.claude_code import ClaudeCode
from tests.coding_agents.terminal import Terminal

AGAIN = "Go on from here."
SECRET = "ghp_" + "a1B2" * 10

STORY: Script = {
    "Make the page.": [
        Reply("I begin.", [Write("page.html", "<h1>One</h1>\n")]),
        Reply("", [Shell("echo left > left.txt; rm page.html; echo oops >&2; exit 3")]),
        Reply("The page is made."),
    ],
    "Look at both.": [
        Reply("Both.", [Shell("sleep 1; ls"), Shell("cat kept.txt"), Tool("Read", {})]),
        Reply("Seen."),
    ],
    "Have it done.": [Reply("", [Subagent("Write the note.")]), Reply("It is done.")],
    "Have it done meanwhile.": [
        Reply(
            "",
            [
                Tool(
                    "Agent",
                    {
                        "description": "the note",
                        "prompt": "Write the note.",
                        "subagent_type": "general-purpose",
                        "run_in_background": True,
                    },
                )
            ],
        ),
        Reply("It is begun."),
    ],
    "Write the note.": [
        Reply("", [Write("note.txt", "a note\n")]),
        Reply("", [Shell("cat nothing.txt")]),
        Reply("The note is there."),
    ],
    "Use the key.": [Reply(f"The key {SECRET}.", [Shell(f"echo {SECRET}")]), Reply("Used.")],
}


@pytest.fixture
def claude(tmp_path: Path) -> Iterator[ClaudeCode]:
    """Claude Code with the hook installed."""
    yield from started(tmp_path)


def started(directory: Path, kind: type[ClaudeCode] = ClaudeCode) -> Iterator[ClaudeCode]:
    program = kind(directory, STORY)
    (program.project / "kept.txt").write_text("by the user\n")
    program.holdfast("hook", "install", program.name)
    yield program
    program.close()


def asked(claude: ClaudeCode, prompt: str, resume: list[str] | None = None, **more: Any) -> Asked:
    done = claude.ask(prompt, resume, **more)
    assert done.code == 0, done
    return done


def sessions(claude: ClaudeCode) -> list[str]:
    return [each["session_id"] for each in claude.holdfast("sessions")["sessions"]]


def log(claude: ClaudeCode, session: str) -> dict[str, str]:
    """Return the checkpoints of a session by their names, the oldest first."""
    found = claude.holdfast("log", session)["checkpoints"]
    return {each["step_name"]: each["checkpoint_id"] for each in reversed(found)}


def said_at(claude: ClaudeCode, checkpoint: str) -> list[tuple[str, str]]:
    found = claude.holdfast("show", checkpoint, "--messages")["messages"]
    return [(each["role"], each["text"] or each["calls"][0]["name"]) for each in found]


def rewound(claude: ClaudeCode, checkpoint: str, *more: str) -> Any:
    return claude.holdfast("rewind", checkpoint, "--yes", *more)


def test_a_command_that_fails_is_a_step_of_its_own_with_what_it_left(claude: ClaudeCode) -> None:
    asked(claude, "Make the page.")
    (session,) = sessions(claude)
    steps = log(claude, session)

    names = list(steps)
    assert names[:2] == ["you: Make the page.", "Write page.html"]
    assert names[2].startswith("Bash echo left > left.txt")
    assert names[2].endswith("(failed, 3)")
    assert names[3:] == ["agent: The page is made."]
    assert said_at(claude, steps[names[2]])[-2:] == [
        ("assistant", "Bash"),
        ("tool", "Exit code 3\noops"),
    ]
    rewound(claude, steps["Write page.html"])
    assert claude.files() == {"kept.txt": b"by the user\n", "page.html": b"<h1>One</h1>\n"}


def test_every_checkpoint_shows_the_conversation_up_to_what_it_is_named_after(
    claude: ClaudeCode,
) -> None:
    asked(claude, "Make the page.")
    steps = log(claude, sessions(claude)[0])
    prompt, write, failed, end = steps.values()

    assert said_at(claude, prompt) == []
    assert [role for role, _ in said_at(claude, write)[-2:]] == ["assistant", "tool"]
    assert said_at(claude, write)[-2] == ("assistant", "Write")
    assert said_at(claude, end)[:3] == [
        ("user", "Make the page."),
        ("assistant", "I begin."),
        ("assistant", "Write"),
    ]
    assert said_at(claude, end)[-1] == ("assistant", "The page is made.")
    changed = claude.holdfast("diff", write, failed)["messages"]
    assert [each["role"] for each in changed["added"]][-2:] == ["assistant", "tool"]


def test_of_calls_side_by_side_those_that_had_not_ended_are_not_told_of(claude: ClaudeCode) -> None:
    asked(claude, "Look at both.")
    steps = log(claude, sessions(claude)[0])
    quick = next(each for name, each in steps.items() if name.startswith("Bash cat kept.txt"))

    back = rewound(claude, quick)
    said = asked(claude, AGAIN, back["resume"]).requests[0].said

    calls = [each[2] for each in said if each[0] == "call"]
    assert {"command": "cat kept.txt"} in calls
    assert {"command": "sleep 1; ls"} not in calls
    assert ("result", "by the user") in said
    assert sum(each[0] == "result" for each in said) == len(calls)


def test_a_subagent_has_a_session_with_its_own_conversation(claude: ClaudeCode) -> None:
    asked(claude, "Have it done.")
    parent, child = sorted(sessions(claude), key=len)
    steps = log(claude, child)

    names = list(steps)
    assert child.startswith(parent + ".")
    assert names[0] == "Write note.txt"
    assert names[-1] == "agent: The note is there."
    said = said_at(claude, steps["agent: The note is there."])
    assert said[0] == ("user", "Write the note.")
    assert said[-1] == ("assistant", "The note is there.")
    assert list(log(claude, parent))[1] == "Agent help"


def test_a_subagent_in_the_background_is_named_so_and_told_of_when_it_ends(
    claude: ClaudeCode,
) -> None:
    asked(claude, "Have it done meanwhile.")
    parent, child = sorted(sessions(claude), key=len)

    assert "Agent the note (in the background)" in log(claude, parent)
    assert not any("<task-notification>" in name for name in log(claude, parent))
    steps = log(claude, child)
    assert "Write note.txt" in steps
    launched = rewound(claude, log(claude, parent)["Agent the note (in the background)"])
    said = asked(claude, AGAIN, launched["resume"]).requests[0].said
    told = [each for each in said if "<task-notification>" not in str(each)]  # that it is gone
    assert [each[0] for each in told] == ["user", "call", "result", "user"]
    assert told[-1] == ("user", AGAIN)


def test_a_conversation_goes_on_in_another_directory(claude: ClaudeCode, tmp_path: Path) -> None:
    before = asked(claude, "Make the page.").requests
    steps = log(claude, sessions(claude)[0])
    other = tmp_path / "other.place"

    back = rewound(claude, steps["Write page.html"], "--to", str(other))
    done = asked(claude, AGAIN, back["resume"], folder=other)

    assert done.requests[0].said == [*before[1].said, ("user", AGAIN)]
    assert (other / "page.html").read_text() == "<h1>One</h1>\n"
    assert json.loads(done.out)["session_id"] == back["new_session_id"]


def test_secrets_are_hidden_in_what_is_kept_and_work_goes_on(claude: ClaudeCode) -> None:
    asked(claude, "Use the key.")
    steps = log(claude, sessions(claude)[0])

    kept = json.dumps([claude.holdfast("show", each) for each in steps.values()])
    assert SECRET not in kept
    assert "***" in kept
    store = b"".join(each.read_bytes() for each in (claude.project / ".holdfast").glob("*.db*"))
    assert SECRET.encode() not in store
    back = rewound(claude, steps["agent: Used."])
    assert ("agent", "Used.") in asked(claude, AGAIN, back["resume"]).requests[0].said


def test_a_conversation_that_was_compacted_is_rewound_on_either_side(claude: ClaudeCode) -> None:
    whole = asked(claude, "Make the page.").requests
    (session,) = sessions(claude)
    asked(claude, "/compact", ["claude", "--resume", session])
    compacted = asked(claude, "Use the key.", ["claude", "--resume", session]).requests
    steps = log(claude, session)

    assert sessions(claude) == [session]  # what sums up is no subagent
    before = rewound(claude, steps["Write page.html"])
    said = asked(claude, AGAIN, before["resume"]).requests[0].said
    assert said == [*whole[1].said, ("user", AGAIN)]
    after = rewound(claude, steps["you: Use the key."])
    said = asked(claude, AGAIN, after["resume"]).requests[0].said
    assert said == [*compacted[0].said[:-1], ("user", AGAIN)]


def test_a_result_that_the_program_was_killed_before_writing_is_told_all_the_same(
    claude: ClaudeCode,
) -> None:
    kill = {"type": "command", "command": "sleep 2; kill -9 $PPID"}
    hooks = {"hooks": {"PostToolUse": [{"matcher": "Write", "hooks": [kill]}]}}
    (claude.project / ".claude" / "settings.local.json").write_text(json.dumps(hooks))

    assert claude.ask("Make the page.").code != 0
    (claude.project / ".claude" / "settings.local.json").unlink()
    steps = log(claude, sessions(claude)[0])
    back = rewound(claude, steps["Write page.html"])
    said = asked(claude, AGAIN, back["resume"]).requests[0].said

    assert [each[0] for each in said] == ["user", "agent", "call", "result", "user"]
    assert "page.html" in said[3][1]


def test_a_session_that_was_rewound_is_rewound_again(claude: ClaudeCode) -> None:
    first = asked(claude, "Make the page.").requests
    steps = log(claude, sessions(claude)[0])
    back = rewound(claude, steps["Write page.html"])
    second = asked(claude, "Use the key.", back["resume"]).requests
    steps = log(claude, back["new_session_id"])
    names = list(steps)
    assert names[:2] == ["rewound to Write page.html", "you: Use the key."]

    again = rewound(claude, steps[names[2]])
    said = asked(claude, AGAIN, again["resume"]).requests[0].said
    assert said == [*_masked(second[1].said), ("user", AGAIN)]

    to_the_begin = rewound(claude, steps["rewound to Write page.html"])
    said = asked(claude, AGAIN, to_the_begin["resume"]).requests[0].said
    assert said == [*first[1].said, ("user", AGAIN)]
    assert claude.files() == {"kept.txt": b"by the user\n", "page.html": b"<h1>One</h1>\n"}


def _masked(said: Any) -> Any:
    found: list[tuple[Any, ...]] = [
        tuple(json.loads(json.dumps(part).replace(SECRET, "***")) for part in each) for each in said
    ]
    return found


class _Elsewhere(ClaudeCode):
    """Keeps its settings in a place of the user's choice."""

    def variables(self) -> dict[str, str]:
        return {**super().variables(), "CLAUDE_CONFIG_DIR": str(self.home / "of claude")}


def test_a_project_with_a_long_path_and_settings_elsewhere_are_found(tmp_path: Path) -> None:
    directory = tmp_path / "ä long" / "/".join(["directory"] * 18)
    for claude in started(directory, _Elsewhere):
        asked(claude, "Make the page.")
        back = rewound(claude, log(claude, sessions(claude)[0])["Write page.html"])

        said = asked(claude, AGAIN, back["resume"]).requests[0].said

        assert [each[0] for each in said] == ["user", "agent", "call", "result", "user"]
        assert not (claude.home / ".claude").exists()


def test_at_a_terminal_the_conversation_goes_on_too(claude: ClaudeCode) -> None:
    before = asked(claude, "Make the page.").requests
    back = rewound(claude, log(claude, sessions(claude)[0])["Write page.html"])
    sent = len(claude.requests)
    known = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "bypassPermissionsModeAccepted": True,
        "customApiKeyResponses": {"approved": ["dummy"], "rejected": []},
        "projects": {str(claude.project): {"hasTrustDialogAccepted": True}},
    }
    (claude.home / ".claude.json").write_text(json.dumps(known))

    command = [claude.program, *back["resume"][1:], "--dangerously-skip-permissions"]
    with Terminal(command, claude.project, claude.environment) as terminal:
        terminal.shows("bypass permissions on")
        assert "Write(page.html)" in terminal.text
        terminal.press(AGAIN)
        terminal.shows(AGAIN)
        terminal.press("\r")
        terminal.wait(lambda: len(claude.requests) > sent)

    assert claude.requests[sent].said == [*before[1].said, ("user", AGAIN)]
