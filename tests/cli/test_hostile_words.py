"""Words, events and transcripts that mean harm: a clean error, and an end."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from holdfast import SyncClient
from holdfast.cli.access.naming import relative
from holdfast.coding_agents.json_lines import position
from tests.cli.everything import faults, run

DEEP = "[" * 100_000
EVENTS: list[str] = [
    "",
    "nonsense",
    "\x00",
    DEEP,
    '{"session_id": "s", "tool_input": ' + "[" * 400 + "]" * 400 + "}",
    json.dumps({"session_id": "s\x00"}),
    json.dumps({"session_id": "s" * 5000}),
    json.dumps({"session_id": ["s"]}),
    json.dumps({"session_id": "s", "cwd": "\x00"}),
    json.dumps({"session_id": "s", "cwd": "x" * 5000}),
    json.dumps({"session_id": "s", "cwd": 5}),
    json.dumps({"session_id": "s", "transcript_path": "~nouser/x"}),
    json.dumps({"session_id": "s", "transcript_path": "\x00"}),
    json.dumps({"session_id": "s", "transcript_path": "/dev/zero"}),
    json.dumps({"session_id": "s", "transcript_path": "/"}),
    json.dumps({"session_id": "s", "transcript_path": ["x"]}),
    json.dumps({"session_id": "s", "hook_event_name": "\x1b]0;owned\x07", "tool_name": "\x1b[2J"}),
    json.dumps({"session_id": "s", "tool_name": "\ud800", "tool_input": {"command": "\ud800\x00"}}),
    json.dumps({"session_id": "s", "tool_name": 5, "tool_input": {"file_path": {"a": 1}}}),
    json.dumps({"session_id": "s", "tool_name": "x" * 100_000, "prompt": "\u202e" * 100_000}),
    '{"session_id": "s", "tool_input": ' + "9" * 5000 + "}",
    '{"session_id": "s", "tool_input": NaN}',
    '{"session_id": "\\u001b[31m", "cwd": "~nouser"}',
]


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_DEBUG", "1")
    monkeypatch.delenv("HOLDFAST_URL", raising=False)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)


@pytest.mark.parametrize("event", EVENTS, ids=range(len(EVENTS)))
@pytest.mark.parametrize("how", [[], ["--json"], ["--from", "cursor"], ["--from", "generic"]])
def test_no_event_stands_in_the_way_of_an_agent(event: str, how: list[str]) -> None:
    done = run(["hook", *how], event)

    assert faults(done, range(2)) == []
    assert done.err.count("\n") <= 1


@pytest.mark.parametrize(
    "arguments", [["--bogus"], ["--from", "nobody"], ["--map", "x"], ["record", "nobody"]]
)
def test_a_hook_that_is_written_wrongly_does_not_forbid_the_tool(arguments: list[str]) -> None:
    done = run(["hook", *arguments], "{}")

    assert (done.code, done.out) == (1, "")


def test_a_transcript_that_is_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)

    for path in (fifo, tmp_path, Path("/dev/zero"), Path("/dev/null"), tmp_path / "none"):
        assert position(str(path)) == {"path": str(path), "bytes": None, "lines": None}


def test_a_transcript_is_counted_as_far_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "transcript.jsonl"
    file.write_bytes(b"{}\n{}\n{")

    assert position(str(file)) == {"path": str(file), "bytes": 7, "lines": 2}


ODD_WORDS = [
    "-" * 50_000,
    "~" * 50_000,
    "a~" + "9" * 50_000,
    "@" * 50_000,
    "a-~" * 20_000,
    "x" * 50_000,
    "\x1b[31m",
    "nul\x00",
    "fix-4\x1b[2J",
]


@pytest.mark.parametrize("word", ODD_WORDS, ids=range(len(ODD_WORDS)))
def test_no_word_takes_long_or_is_shown_as_it_is(word: str, tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "h.db") as client:
        for name in ("fix-42\x1b[2J", "fix-43\x1b[2J"):
            client.save("a\x1b[1m", execution_state={"k\x1b": 1}, session_id=name, step_name=name)
    ways = [("show", "--"), ("log", "--"), ("diff", "--"), ("show", "--state"), ("log", "-n")]
    for name, how in ways:
        done = run([name, "--store", "h.db", how, word])
        assert faults(done) == []
        assert len(done.err) < 2000


def test_several_sessions_and_suggestions_are_named_without_steering(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "h.db") as client:
        for name in ("fix-42\x1b[2J", "fix-43\x1b[2J"):
            client.save("a", execution_state={}, session_id=name)

    several = run(["log", "--store", "h.db", "fix"])
    close = run(["log", "--store", "h.db", "fix-42\x1b[2K"])

    assert several.code == 4
    assert "fix-42\\x1b[2J" in several.err
    assert close.code == 3
    assert "did you mean fix-42\\x1b[2J" in close.err


@pytest.mark.parametrize(
    ("given", "parts"),
    [
        ("@-", ("@", "-")),
        ("fix-42@~3", ("fix-42@", "~3")),
        ("3f9a~1~2", ("3f9a", "~1~2")),
        ("step12~", ("step12", "~")),
        ("a-~2", ("a-", "~2")),
        ("fix-42", None),
        ("--", None),
        ("~2", None),
        ("12", None),
    ],
)
def test_what_goes_back_is_told_from_its_end(given: str, parts: Any) -> None:
    assert relative(given) == parts


def test_integers_of_any_size_are_shown(tmp_path: Path) -> None:
    with SyncClient.sqlite(tmp_path / "h.db") as client:
        state = {"n": 10**5000, "in": [(-(10**5000),)], 10**4400: {"messages": 1}}
        client.save("a", execution_state=state, session_id="s")

    for how in ([], ["--json"], ["--state"], ["--state", "n"], ["--messages"]):
        done = run(["show", "--store", "h.db", *how])
        assert done.code == 0, done.err
    assert "0x" in run(["show", "--store", "h.db"]).out


def test_what_nobody_has_thought_of_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise KeyError("\x1b[31m")

    monkeypatch.delenv("HOLDFAST_DEBUG")
    monkeypatch.setattr("holdfast.cli.commands.log.open_lazily", broken)

    done = run(["log"])

    assert done.code == 1
    assert done.err.startswith("holdfast: KeyError: ")
    assert "HOLDFAST_DEBUG=1" in done.err
    assert done.err.count("\n") == 1
