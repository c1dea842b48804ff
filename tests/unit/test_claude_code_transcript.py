"""Conversations of Claude Code are read with care, and written where the program looks for them."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.claude_code.places import slug
from holdfast.coding_agents.claude_code.transcript import TRANSCRIPT
from holdfast.coding_agents.events import read
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.programs import program
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.frameworks.claude_entries import results_in
from holdfast.core.conversation.said import messages_in
from holdfast.errors import TranscriptError
from tests.unit.claude_code_transcripts import Entry, assert_whole, calls_of, recorded

ID = "5b0c2f6e-6a53-4a5e-8a43-0f7d3a4a1c11"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of settings that nobody else has."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "settings"))
    return tmp_path / "settings"


def told(moment: Moment, transcript: Path | None, **more: Any) -> Told:
    path = None if transcript is None else str(transcript)
    given = {"program": "claude-code", "session": ID, "event": "e", "transcript": path}
    return Told(moment=moment, **{**given, **more})


def file_with(tmp_path: Path, entries: list[Any]) -> Path:
    path = tmp_path / f"{ID}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in entries))
    return path


# Reading


def test_what_is_kept_is_what_the_program_needs_to_go_on(tmp_path: Path) -> None:
    entries = recorded("side_by_side-2.1.327")
    path = file_with(tmp_path, [*entries, "text", 3, {"no": "type"}])

    found = TRANSCRIPT.read(told(Moment.OTHER, path), JsonLines())

    assert found == [each for each in entries if "uuid" in each]


@pytest.mark.parametrize(
    ("told_of", "content", "is_error"),
    [
        ({"output": {"stdout": "made", "stderr": ""}}, "made", None),
        ({"error": "Exit code 3\noops"}, "Exit code 3\noops", True),
        ({"output": {"type": "create", "filePath": "/a"}}, "/a is written.", None),
        ({"output": {"type": "text", "file": {"content": "one"}}}, "one", None),
        ({"output": {"status": "async_launched"}}, "It works in the background.", None),
        ({"output": {"new": 1}}, '{"new": 1}', None),
    ],
)
def test_a_result_that_is_not_written_yet_is_kept_as_it_was_told(
    tmp_path: Path, told_of: dict[str, Any], content: str, is_error: bool | None
) -> None:
    entries = recorded("side_by_side-2.1.197")
    call_id = calls_of(entries)[0]
    place = next(i for i, each in enumerate(entries) if call_id in results_in(each))
    path = file_with(tmp_path, entries[:place])

    at = told(Moment.CALL, path, call_id=call_id, **told_of)
    found = TRANSCRIPT.read(at, JsonLines())

    assert found is not None
    (block,) = found[-1]["message"]["content"]
    assert (block["tool_use_id"], block["content"]) == (call_id, content)
    assert block.get("is_error") == is_error
    said = messages_in("custom", {"conversation": {"format": "claude-code/1", "entries": found}})
    assert said[-1].text == content

    point = Point(session=ID, moment=Moment.CALL, call_id=call_id, tool="Bash", entries=found)
    cut = TRANSCRIPT.cut(point, iter([]))
    assert_whole(cut.entries)
    assert results_in(cut.entries[-1]) == [call_id]
    assert cut.note is not None
    assert "never wrote down the result of Bash" in cut.note
    assert TRANSCRIPT.cut(point, iter([entries])).note is None


@pytest.mark.parametrize("is_made", [True, False])
def test_a_call_that_is_not_written_yet_either_is_kept_as_it_was_told(
    tmp_path: Path, is_made: bool
) -> None:
    """At a first call the file itself may not be there yet."""
    entries = recorded("side_by_side-2.1.197")
    call_id = calls_of(entries)[0]
    place = next(i for i, each in enumerate(entries) if call_id in results_in(each))
    path = file_with(tmp_path, []) if is_made else tmp_path / "late.jsonl"

    at = told(Moment.CALL, path, call_id=call_id, tool="Grep", input={}, output="none")
    found = TRANSCRIPT.read(at, JsonLines())

    state = {"conversation": {"format": "claude-code/1", "entries": found}}
    assert [each.role for each in messages_in("custom", state)] == ["assistant", "tool"]
    point = Point(session=ID, moment=Moment.CALL, call_id=call_id, tool="Grep", entries=found or ())
    cut = TRANSCRIPT.cut(point, iter([entries[:place]]))
    assert_whole(cut.entries)
    assert cut.entries[0]["message"]["content"] == "par"
    assert cut.entries[-1]["message"]["content"][0]["content"] == "none"
    with pytest.raises(TranscriptError, match="is in none of the 2 lines"):
        TRANSCRIPT.cut(point, iter([]))


def test_a_last_message_that_is_not_written_yet_is_kept_as_it_was_told(tmp_path: Path) -> None:
    entries = recorded("side_by_side-2.1.197")
    place = next(i for i, each in enumerate(entries) if "Par done." in str(each))
    prompt_id = entries[2]["promptId"]
    at = {"prompt_id": prompt_id, "last_message": "Par done."}

    early = TRANSCRIPT.read(
        told(Moment.END, file_with(tmp_path, entries[:place]), **at), JsonLines()
    )
    late = TRANSCRIPT.read(told(Moment.END, file_with(tmp_path, entries), **at), JsonLines())

    assert early is not None
    assert late is not None
    assert "toldByHook" in early[-1]
    assert not any("toldByHook" in each for each in late)
    point = Point(session=ID, moment=Moment.END, entries=early, **at)
    of_hook, of_program = (TRANSCRIPT.cut(point, iter(x)).entries for x in ([], [entries]))
    assert of_program[-1]["uuid"] == entries[place]["uuid"]
    assert of_hook[-1]["message"]["content"] == of_program[-1]["message"]["content"]
    assert of_hook[-1]["message"]["model"] == of_program[-1]["message"]["model"]


def test_what_was_told_stays_until_the_program_has_written_it(tmp_path: Path) -> None:
    entries = recorded("side_by_side-2.1.197")
    first, second = calls_of(entries)[:2]
    place = next(i for i, each in enumerate(entries) if second in results_in(each))
    path = file_with(tmp_path, entries[:place])
    files = JsonLines()

    def tool_results(at: Told) -> list[str]:
        return calls_of(TRANSCRIPT.read(at, files) or [])

    assert tool_results(told(Moment.CALL, path, call_id=second, output="b")) == [first, second]
    assert tool_results(told(Moment.END, path, last_message="Done.")) == [first, second]
    with path.open("a") as file:
        file.write(json.dumps(entries[place]) + "\n")
    found = TRANSCRIPT.read(told(Moment.OTHER, path), files)
    assert found is not None
    assert found[-1] == entries[place]


def test_a_last_message_is_told_of_behind_a_call_whose_result_is_not_written_yet(
    tmp_path: Path,
) -> None:
    entries = recorded("side_by_side-2.1.197")[:7]  # the last is a call
    path = file_with(tmp_path, entries)

    found = TRANSCRIPT.read(told(Moment.END, path, last_message="Done."), JsonLines())

    said = messages_in("custom", {"conversation": {"format": "claude-code/1", "entries": found}})
    assert said[-1].text == "Done."


def test_secrets_are_hidden_in_what_is_kept(tmp_path: Path) -> None:
    entries = recorded("side_by_side-2.1.197")
    secret = "ghp_" + "a1B2" * 10
    call_id = calls_of(entries)[0]
    place = next(i for i, each in enumerate(entries) if call_id in results_in(each))
    entries[2]["message"]["content"] = f"use {secret}"
    path = file_with(tmp_path, entries[:place])

    at = told(Moment.CALL, path, call_id=call_id, output=f"it was {secret}")
    found = TRANSCRIPT.read(at, JsonLines())

    assert found is not None
    assert secret not in json.dumps(found)
    assert found[-1]["message"]["content"][0]["content"] == "it was ***"


def test_a_subagent_has_a_file_beside_that_of_its_parent(tmp_path: Path) -> None:
    parent = file_with(tmp_path, recorded("side_by_side-2.1.197"))
    beside = tmp_path / ID / "subagents"
    beside.mkdir(parents=True)
    own: Entry = {
        "type": "user",
        "uuid": "u",
        "parentUuid": None,
        "isSidechain": True,
        "agentId": "a1",
    }
    own["message"] = {"role": "user", "content": "write a note"}
    (beside / "agent-a1.jsonl").write_text(json.dumps(own) + "\n")

    assert TRANSCRIPT.read(told(Moment.OTHER, parent, subagent_id="a1"), JsonLines()) == [own]
    point = Point(session=ID, moment=Moment.OTHER, transcript=str(parent), subagent_id="a1")
    assert TRANSCRIPT.live(point) == [own]


@pytest.mark.parametrize("subagent_id", ["../../x", "a/b", "", "a\x00b", ".", "a" * 200])
def test_an_id_that_could_lead_elsewhere_has_no_file(tmp_path: Path, subagent_id: str) -> None:
    parent = file_with(tmp_path, recorded("side_by_side-2.1.197"))

    assert TRANSCRIPT.read(told(Moment.END, parent, subagent_id=subagent_id), JsonLines()) is None


def test_a_transcript_that_is_not_there_or_no_file_is_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.jsonl")

    for path in (None, tmp_path / "fifo.jsonl", tmp_path):
        assert TRANSCRIPT.read(told(Moment.CALL, path, call_id="c"), JsonLines()) is None
    assert TRANSCRIPT.read(told(Moment.PROMPT, tmp_path / "none.jsonl"), JsonLines()) is None
    gone = Point(session=ID, moment=Moment.CALL, transcript=str(tmp_path / "none.jsonl"))
    assert TRANSCRIPT.live(gone) is None


# Writing


def written(path: Path | None) -> list[Entry]:
    assert path is not None
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_new_session_is_written_where_the_program_looks_for_it(
    tmp_path: Path, settings: Path
) -> None:
    project = tmp_path / "my.page"
    project.mkdir()
    entries = recorded("side_by_side-2.1.197")

    path = TRANSCRIPT.write(Cut(entries=entries), ID, project)

    assert path == settings / "projects" / slug(str(project)) / f"{ID}.jsonl"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    found = written(path)
    assert {each["sessionId"] for each in found} == {ID}
    assert {each["cwd"] for each in found if "cwd" in each} == {str(project)}
    rest = [{**each, "sessionId": 0, "cwd": 0} for each in entries]
    assert [{**each, "sessionId": 0, "cwd": 0} for each in found] == rest
    assert [list(each) for each in found] == [list(each) for each in entries]
    assert list(path.parent.iterdir()) == [path]


def test_what_was_said_further_below_is_further_below_there_too(
    tmp_path: Path, settings: Path
) -> None:
    entries = [
        {"type": "user", "uuid": str(i), "cwd": cwd, "sessionId": "s"}
        for i, cwd in enumerate(["/old", "/old/below", "/older", "/elsewhere"])
    ]

    found = written(TRANSCRIPT.write(Cut(entries=entries), ID, tmp_path))

    cwds = [each["cwd"] for each in found]
    assert cwds == [str(tmp_path), f"{tmp_path}/below", "/older", "/elsewhere"]


def test_no_file_that_is_there_is_touched(tmp_path: Path, settings: Path) -> None:
    cut = Cut(entries=[{"type": "user", "uuid": "u"}])
    path = TRANSCRIPT.write(cut, ID, tmp_path)
    assert path is not None
    path.write_text("the user's\n")

    with pytest.raises(TranscriptError, match=f"{ID}.jsonl is there already"):
        TRANSCRIPT.write(cut, ID, tmp_path)

    assert path.read_text() == "the user's\n"
    assert list(path.parent.iterdir()) == [path]


def test_before_anything_was_said_the_program_begins_under_the_new_id(
    tmp_path: Path, settings: Path
) -> None:
    nothing = Cut(entries=[])

    assert TRANSCRIPT.write(nothing, ID, tmp_path) is None
    assert not settings.exists()
    assert TRANSCRIPT.resume(ID, nothing) == ["claude", "--session-id", ID]
    assert TRANSCRIPT.resume(ID, Cut(entries=[{}])) == ["claude", "--resume", ID]


def test_half_a_character_is_written_so_that_it_can_be_read(tmp_path: Path, settings: Path) -> None:
    entry = {"type": "user", "uuid": "u", "message": {"content": "half \ud83d, whole \U0001f600"}}

    assert written(TRANSCRIPT.write(Cut(entries=[entry]), ID, tmp_path)) == [entry]


def test_the_directory_of_a_project_has_the_name_that_the_program_gives_it() -> None:
    assert slug("/home/ada/my.page_2") == "-home-ada-my-page-2"
    assert slug("/tmp/ä/e\u0301/😀") == "-tmp-------"
    long = "/tmp/" + "/".join(["directory"] * 25)
    assert slug(long) == long.replace("/", "-")[:200] + "-iszmgm"


@given(st.text())
def test_any_path_has_a_name_of_letters_digits_and_dashes(path: str) -> None:
    assert all(c == "-" or (c.isascii() and c.isalnum()) for c in slug(path))
    assert len(slug(path)) <= 207


# Names


@pytest.mark.parametrize(
    ("event", "name"),
    [
        ({"hook_event_name": "UserPromptSubmit", "prompt": "Make it\nnow"}, "you: Make it"),
        (
            {
                "hook_event_name": "UserPromptSubmit",
                "prompt": "<task-notification>\n<task-id>a</task-id>\n"
                '<summary>Agent "write a note" finished</summary>\n</task-notification>',
            },
            'agent: Agent "write a note" finished',
        ),
        (
            {
                "hook_event_name": "PostToolUseFailure",
                "tool_name": "Bash",
                "tool_input": {"command": "npm test", "description": "Run the tests"},
                "error": "Exit code 3\nnot ok",
            },
            "Bash npm test (failed, 3)",
        ),
        (
            {
                "hook_event_name": "PostToolUseFailure",
                "tool_name": "Edit",
                "tool_input": {"file_path": "/home/ada/page/a.html"},
                "error": "String to replace not found in file.",
            },
            "Edit a.html (failed)",
        ),
        (
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Agent",
                "tool_input": {"description": "write a note", "prompt": "Write…"},
                "tool_response": {"status": "completed"},
            },
            "Agent write a note",
        ),
        (
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Agent",
                "tool_input": {"description": "write a note", "prompt": "Write…"},
                "tool_response": {"status": "async_launched"},
            },
            "Agent write a note (in the background)",
        ),
        (
            {
                "hook_event_name": "PostToolUse",
                "tool_name": "Skill",
                "tool_input": {"skill": "deploy"},
            },
            "Skill deploy",
        ),
        ({"hook_event_name": "Stop", "last_assistant_message": "Done."}, "agent: Done."),
        (
            {"hook_event_name": "SubagentStop", "agent_id": "a", "last_assistant_message": "Yes"},
            "agent: Yes",
        ),
        ({"hook_event_name": "StopFailure", "error": "rate_limit"}, "agent: stopped (rate_limit)"),
    ],
)
def test_a_step_is_called_what_its_user_would_call_it(event: dict[str, Any], name: str) -> None:
    known = program("claude-code")
    found = read({"session_id": ID, "cwd": "/home/ada/page", **event}, known)

    assert step_name(found, known) == name


def test_the_program_s_own_helpers_are_no_subagents_of_the_user() -> None:
    known = program("claude-code")
    event = {"session_id": ID, "hook_event_name": "SubagentStop", "agent_id": "a"}

    assert known.is_ignored(read({**event, "agent_type": ""}, known))
    assert not known.is_ignored(read({**event, "agent_type": "general-purpose"}, known))
