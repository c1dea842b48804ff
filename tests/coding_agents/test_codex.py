"""What is special about Codex: approval of hooks, patches, commands that go on, kills, forks."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from holdfast.coding_agents.codex.app_server import app_server
from tests.coding_agents.kit import (
    SECONDS,
    Asked,
    Reply,
    Script,
    Shell,
    Subagent,
    Tool,
    Write,
)
from tests.coding_agents.programs.codex import Codex
from tests.coding_agents.terminal import Terminal

MANY, SLOW, HELPED, HANGS = "Make many.", "Make it slowly.", "Have it made.", "Make it and hang."
BESIDE = "Make both at once."
HELPER = "Write the helper's file."
THREE_FILES = [
    *("*** Update File: a.txt", "@@", "-one", "+two"),
    *("*** Add File: d.txt", "+d", "*** Add File: e.txt", "+e"),
]

SCRIPT: Script = {
    MANY: [
        Reply("I begin.", [Write("a.txt", "one\n")]),
        Reply("", [Tool("apply_patch", {"lines": THREE_FILES})]),
        Reply("", [Tool("apply_patch", {"lines": ["*** Update File: gone.txt", "@@", "-x"]})]),
        Reply("", [Shell("echo half > half.txt; echo bad >&2; exit 3")]),
        Reply("", [Shell("cat a.txt"), Shell("echo b > b.txt")]),
        Reply("All is made."),
    ],
    SLOW: [
        Reply(
            "",
            [
                Tool(
                    "exec_command",
                    {
                        "cmd": "echo 1 > first.txt; sleep 2; echo 2 > second.txt; exit 4",
                        "yield_time_ms": 250,
                    },
                )
            ],
        ),
        Reply("", [Tool("write_stdin", {"chars": "", "yield_time_ms": 30_000})]),
        Reply("It is slow."),
    ],
    HELPED: [
        Reply("", [Shell("echo own > own.txt")]),
        Reply("", [Subagent(HELPER)]),
        Reply("It was helped."),
    ],
    HELPER: [
        Reply("", [Write("helper.txt", "helped\n")]),
        Reply("", [Shell("echo more > more.txt")]),
        Reply("The file is there."),
    ],
    BESIDE: [
        Reply(
            "",
            [
                Shell("until [ -s b.txt ]; do sleep 0.02; done; echo a > a.txt"),
                Shell("echo b > b.txt; until [ -e ../told ]; do sleep 0.02; done"),
            ],
        ),
        Reply("Both are made."),
    ],
    HANGS: [
        Reply("", [Shell("echo made > made.txt; echo said")]),
        Reply("", [Shell("echo hangs > hangs.txt; sleep 60")]),
    ],
}


class ApprovedCodex(Codex):
    """A Codex that runs only the hooks that its user has approved."""

    flags = ()


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Callable[[type[Codex]], Codex]]:
    programs: list[Codex] = []

    def make(of_class: type[Codex]) -> Codex:
        programs.append(of_class(tmp_path, SCRIPT))
        return programs[-1]

    yield make
    for program in programs:
        program.close()


@pytest.fixture
def codex(made: Callable[[type[Codex]], Codex]) -> Codex:
    """A Codex with the hook in its project."""
    program = made(Codex)
    program.holdfast("hook", "install", "codex")
    return program


def sessions(program: Codex) -> list[str]:
    """Return the sessions that were recorded, subagents' too."""
    return [each["session_id"] for each in program.holdfast("sessions")["sessions"]]


def steps(program: Codex, session: str) -> list[dict[str, Any]]:
    """Return the checkpoints of a session, the oldest first."""
    found: list[dict[str, Any]] = program.holdfast("log", session)["checkpoints"]
    return list(reversed(found))


def names(program: Codex, session: str) -> list[str]:
    return [each["step_name"] for each in steps(program, session)]


def main_session(program: Codex) -> str:
    return next(each for each in sessions(program) if "." not in each)


def point(program: Codex, session: str, name: str) -> str:
    """Return the checkpoint that is called something."""
    found = [each for each in steps(program, session) if each["step_name"].startswith(name)]
    assert len(found) == 1, names(program, session)
    return str(found[0]["checkpoint_id"])


def go_on(program: Codex, checkpoint: str) -> Asked:
    """Rewind to a checkpoint, and ask for more."""
    back = program.holdfast("rewind", checkpoint, "--yes")
    asked = program.ask("Go on from here.", resume=back["resume"])
    assert asked.code == 0, asked
    assert asked.requests[0].said[-1] == ("user", "Go on from here.")
    return asked


def after_each_call(program: Codex, command: str) -> Callable[[], object]:
    """Have something done as soon as the hook was told of a call; return what ends that."""
    file = program.project / ".codex/hooks.json"
    text = file.read_text()
    known = re.search(r'"PostToolUse".*?"command": "([^"]*)"', text, re.DOTALL)
    assert known is not None
    head, _, rest = text.partition('"PostToolUse"')
    rest = rest.replace(known[1], f"{known[1]}; {command}", 1)
    file.write_text(f'{head}"PostToolUse"{rest}')
    return lambda: file.write_text(text)


def config(program: Codex) -> str:
    return (program.home / ".codex/config.toml").read_text()


# --- approval -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scope", [(), ("--user",)])
def test_hooks_run_once_they_are_approved_and_not_before(
    made: Callable[[type[Codex]], Codex], scope: Sequence[str]
) -> None:
    program = made(ApprovedCodex)
    program.holdfast("init")
    before = config(program)
    program.holdfast("hook", "install", "codex", *scope)
    assert program.ask("Is it told?").code == 0
    assert sessions(program) == []
    assert config(program) == before

    program.holdfast("hook", "install", "codex", *scope, "--trust")
    assert program.ask("Is it told now?").code == 0

    assert names(program, main_session(program)) == ["you: Is it told now?", "agent: All right."]
    after = config(program)
    assert after.startswith(before.rstrip("\n"))
    assert {**tomllib.loads(after), "hooks": None} == {**tomllib.loads(before), "hooks": None}


def test_a_second_hook_of_the_user_s_waits_for_approval_of_its_own(
    made: Callable[[type[Codex]], Codex],
) -> None:
    program = made(ApprovedCodex)
    file = program.project / ".codex/hooks.json"
    file.parent.mkdir()
    file.write_text(
        '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "touch ../ran"}]}]}}'
    )

    program.holdfast("hook", "install", "codex", "--trust")
    assert program.ask("Is it told?").code == 0

    assert names(program, main_session(program)) == ["you: Is it told?", "agent: All right."]
    assert not (program.project.parent / "ran").exists()


# --- what is recorded ---------------------------------------------------------------------------


def test_every_step_has_a_name_that_says_what_it_did(codex: Codex) -> None:
    assert codex.ask(MANY).code == 0

    found = names(codex, main_session(codex))

    # What a patch changed before it failed is nothing; a command that only reads may change a file.
    assert found[:4] == [
        f"you: {MANY}",
        "patch: a.txt",
        "patch: a.txt and 2 more",
        "Bash echo half > half.txt; echo bad >&2; exit 3 (failed, 3)",
    ]
    assert sorted(found[4:-1]) == ["Bash cat a.txt", "Bash echo b > b.txt"]
    assert found[-1] == "agent: All is made."


def test_a_call_that_failed_is_told_as_such_to_who_goes_on(codex: Codex) -> None:
    assert codex.ask(MANY).code == 0
    session = main_session(codex)

    asked = go_on(codex, point(codex, session, "Bash echo half"))

    assert set(codex.files()) == {"a.txt", "d.txt", "e.txt", "half.txt"}
    kind, text = asked.requests[0].said[-2]
    assert kind == "result"
    assert "Process exited with code 3" in text
    assert "bad" in text


def test_a_command_that_went_on_in_the_background_comes_back_with_its_end(codex: Codex) -> None:
    assert codex.ask(SLOW).code == 0
    session = main_session(codex)
    assert [name[:10] for name in names(codex, session)] == [
        *("you: Make ", "Bash echo ", "agent: It "),
    ]
    assert names(codex, session)[1].endswith("(failed, 4)")

    asked = go_on(codex, point(codex, session, "Bash echo 1"))

    assert set(codex.files()) == {"first.txt", "second.txt"}
    kinds = [(each[0], each[1]) for each in asked.requests[0].said[1:-1]]
    assert [kind for kind, _ in kinds] == ["call", "result", "call", "result"]
    assert kinds[2][1] == "write_stdin"
    assert "Process exited with code 4" in kinds[3][1]


def test_a_call_that_has_done_its_work_and_still_runs_is_told_as_aborted(codex: Codex) -> None:
    after_each_call(codex, "touch ../told")
    told = codex.ask(BESIDE).requests[-1].said
    session = main_session(codex)
    assert [each[:10] for each in names(codex, session)[1:3]] == ["Bash until", "Bash echo "]

    first = go_on(codex, point(codex, session, "Bash until"))
    files = codex.files()
    last = go_on(codex, point(codex, session, "Bash echo"))

    assert files == codex.files() == {"a.txt": b"a\n", "b.txt": b"b\n"}
    _, one, other, one_output, _ = told
    assert first.requests[0].said[1:-1] == [one, other, ("result", "aborted"), one_output]
    assert last.requests[0].said[:-1] == told


def test_within_a_subagent_its_files_come_back_and_the_conversation_before_it(
    codex: Codex,
) -> None:
    assert codex.ask(HELPED).code == 0
    main = main_session(codex)
    (helper,) = [each for each in sessions(codex) if each.startswith(f"{main}.")]
    assert names(codex, main) == [
        f"you: {HELPED}",
        "Bash echo own > own.txt",
        "subagents waited for",
        "agent: It was helped.",
    ]
    assert names(codex, helper) == [
        f"you: {HELPER}",
        "patch: helper.txt",
        "Bash echo more > more.txt",
        "agent: The file is there.",
    ]

    asked = go_on(codex, point(codex, helper, "patch: helper.txt"))

    assert set(codex.files()) == {"own.txt", "helper.txt"}
    assert [each[0] for each in asked.requests[0].said] == ["user", "call", "result", "user"]
    assert asked.requests[0].said[0] == ("user", HELPED)


def test_the_conversation_is_shown(codex: Codex) -> None:
    assert codex.ask(MANY).code == 0

    shown = codex.holdfast("show", "@", "--messages")

    texts = [str(each) for each in shown["messages"]]
    assert MANY in texts[0]
    assert "All is made." in texts[-1]
    assert any("apply_patch" in each for each in texts)
    assert not any("environment_context" in each for each in texts)


def test_a_turn_that_its_user_interrupted_is_a_point_too(codex: Codex) -> None:
    stopped(codex, HANGS, (codex.project / "hangs.txt").exists, signal.SIGINT)
    session = main_session(codex)
    assert names(codex, session)[2:] == ["interrupted"]

    asked = go_on(codex, point(codex, session, "interrupted"))

    assert set(codex.files()) == {"made.txt", "hangs.txt"}
    assert asked.requests[0].said[4][0] == "result"
    assert "aborted by user" in asked.requests[0].said[4][1]


def test_a_thread_that_codex_forked_comes_back_whole(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in codex.environment.items():
        monkeypatch.setenv(name, value)
    assert codex.ask("Remember this.").code == 0
    with app_server(codex.project) as server:
        thread = server.ask("thread/fork", {"threadId": main_session(codex)})["thread"]["id"]
    assert codex.ask(MANY, resume=["codex", "resume", thread]).code == 0

    asked = go_on(codex, point(codex, thread, "patch: a.txt and"))

    assert set(codex.files()) == {"a.txt", "d.txt", "e.txt"}
    said = asked.requests[0].said
    assert said[:3] == [("user", "Remember this."), ("agent", "All right."), ("user", MANY)]
    assert [each[0] for each in said[3:]] == ["agent", "call", "result", "call", "result", "user"]


def test_what_codex_itself_took_back_stays_so(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in codex.environment.items():
        monkeypatch.setenv(name, value)
    assert codex.ask("Remember this.").code == 0
    thread = main_session(codex)
    resume = ["codex", "resume", thread]
    for prompt in ("Forget this.", "And this."):
        assert codex.ask(prompt, resume=resume).code == 0
        turn = codex.holdfast("show", point(codex, thread, f"you: {prompt}"), "--state", "turn_id")
        with app_server(codex.project) as server:
            server.ask("thread/resume", {"threadId": thread})
            server.ask("thread/revert", {"threadId": thread, "beforeTurnId": turn["value"]})
    assert codex.ask(MANY, resume=resume).code == 0

    asked = go_on(codex, point(codex, thread, "patch: a.txt and"))

    said = asked.requests[0].said
    assert said[:3] == [("user", "Remember this."), ("agent", "All right."), ("user", MANY)]
    assert [each[0] for each in said[3:]] == ["agent", "call", "result", "call", "result", "user"]


def test_a_conversation_that_was_compacted_comes_back_as_it_was_before_and_after(
    codex: Codex, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in codex.environment.items():
        monkeypatch.setenv(name, value)
    assert codex.ask(MANY).code == 0
    thread = main_session(codex)
    (rollout,) = (codex.home / ".codex/sessions").rglob(f"*{thread}.jsonl")
    with app_server(codex.project) as server:
        server.ask("thread/resume", {"threadId": thread})
        server.ask("thread/compact/start", {"threadId": thread})
        while '"ContextCompaction"' not in rollout.read_text():
            server.ask("thread/loaded/list", {})
    after = codex.ask("And now?", resume=["codex", "resume", thread])
    assert after.code == 0
    told = after.requests[-1].said

    now = go_on(codex, steps(codex, thread)[-1]["checkpoint_id"]).requests[0].said
    before = go_on(codex, point(codex, thread, "agent: All is made.")).requests[0].said

    assert not any(each[0] == "call" for each in told)
    assert now == [*told, ("agent", "All right."), ("user", "Go on from here.")]
    assert sum(each[0] == "call" for each in before) == 6
    assert before[-2:] == [("agent", "All is made."), ("user", "Go on from here.")]


def test_an_undo_goes_on_though_the_rollout_was_deleted(codex: Codex) -> None:
    """Codex remembers where the rollout of an id was: the command has to name another one."""
    told = codex.ask(MANY).requests[-1].said
    session, files = main_session(codex), codex.files()
    codex.holdfast("rewind", point(codex, session, "you: "), "--yes")
    for rollout in codex.home.rglob(f"*{session}*.jsonl"):
        rollout.unlink()

    said = subprocess.run(
        [sys.executable, "-m", "holdfast", "undo", "--yes"],
        cwd=codex.project,
        env=codex.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert codex.files() == files
    printed = re.search("^go on with: (.*)$", said, re.MULTILINE)
    assert printed is not None, said
    _, *words = shlex.split(printed[1])
    command = [codex.program, *words, "--dangerously-bypass-hook-trust"]
    with Terminal(command, codex.project, codex.environment) as terminal:
        terminal.shows("All is made.")
        terminal.shows("GPT-5.5 default")  # it has read the session
        terminal.press("Go on from here.")
        terminal.shows("Go on from here.")
        terminal.press("\r")
        terminal.shows("All right.")
    expected = [*told, ("agent", "All is made."), ("user", "Go on from here.")]
    assert codex.requests[-1].said == expected


def test_a_user_goes_on_in_the_terminal(codex: Codex) -> None:
    assert codex.ask(MANY).code == 0
    session = main_session(codex)
    before = len(codex.requests)

    for name, shown in ((f"you: {MANY}", "Ask Codex to do"), ("patch: a.txt and", MANY)):
        back = codex.holdfast("rewind", point(codex, session, name), "--yes")
        command = [codex.program, *back["resume"][1:], "--dangerously-bypass-hook-trust"]
        with Terminal(command, codex.project, codex.environment) as terminal:
            terminal.shows(shown)
            terminal.shows("GPT-5.5 default")  # it has read the session
            terminal.press("Go on from here.")
            terminal.shows("Go on from here.")
            terminal.press("\r")
            terminal.shows("All right.")
    first, second = (
        each.said
        for each in codex.requests[before:]
        if each.said[-1] == ("user", "Go on from here.")
    )
    assert first == [("user", "Go on from here.")]
    assert [each[0] for each in second] == [
        *("user", "agent", "call", "result", "call", "result", "user"),
    ]


# --- kills --------------------------------------------------------------------------------------


def stopped(program: Codex, prompt: str, is_time: Callable[[], bool], sign: signal.Signals) -> None:
    """Send a signal to Codex, and kill what it started with it, as soon as it is time."""
    process = subprocess.Popen(
        program.arguments(prompt, None),
        cwd=program.project,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        for _ in range(SECONDS * 20):
            if is_time():
                break
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.05)
        assert is_time()
        all_of_it = [*below(process.pid), process.pid] if sign == signal.SIGKILL else [process.pid]
        for pid in all_of_it:
            os.kill(pid, sign)
        process.wait(SECONDS)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def below(pid: int) -> list[int]:
    """Return the processes that one has started, those of these first."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    return [found for child in children for found in (*below(child), child)]


def test_a_codex_that_was_killed_in_the_middle_goes_on_from_its_last_step(codex: Codex) -> None:
    stopped(codex, HANGS, (codex.project / "hangs.txt").exists, signal.SIGKILL)
    session = main_session(codex)
    assert names(codex, session) == [f"you: {HANGS}", "Bash echo made > made.txt; echo said"]

    asked = go_on(codex, point(codex, session, "Bash echo made"))

    assert codex.files() == {"made.txt": b"made\n"}
    said = asked.requests[0].said
    assert [each[0] for each in said] == ["user", "call", "result", "user"]
    assert said[2] == codex.requests[1].said[2]
    assert names(codex, session)[2:] == ["before rewind"]


@pytest.mark.parametrize("requests", [1, 3, 5])
def test_whenever_codex_is_killed_its_last_step_comes_back(codex: Codex, requests: int) -> None:
    stopped(codex, MANY, lambda: len(codex.requests) >= requests, signal.SIGKILL)
    session = main_session(codex)
    *_, last = steps(codex, session)
    called = sum("call_id" in each["metadata"] for each in steps(codex, session))

    asked = go_on(codex, last["checkpoint_id"])

    said = asked.requests[0].said
    results = sum(each[0] == "result" for each in said)
    # A patch that fails is told to the model, and to no hook.
    assert results in (called, called + 1)
    longest = codex.requests[requests - 1].said
    assert said[:-1][: len(longest)] == longest[: len(said) - 1]


def test_a_result_that_codex_was_killed_before_writing_is_told_to_the_model(
    codex: Codex,
) -> None:
    # As soon as it was told, Codex is no more: the result is not in its own file.
    undo = after_each_call(codex, "kill -9 $PPID")

    assert codex.ask(HANGS).code != 0
    undo()
    session = main_session(codex)
    asked = go_on(codex, point(codex, session, "Bash echo made"))

    assert codex.files() == {"made.txt": b"made\n"}
    assert asked.requests[0].said[2] == ("result", "Process exited with code 0\nOutput:\nsaid\n")
