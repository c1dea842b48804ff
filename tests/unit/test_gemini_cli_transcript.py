"""Chats of Gemini CLI: what is read of them, where they are cut, and how they are written."""

from __future__ import annotations

import json
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents import events, programs
from holdfast.coding_agents.gemini_cli import projects
from holdfast.coding_agents.gemini_cli.program import PROGRAM
from holdfast.coding_agents.gemini_cli.transcript import TRANSCRIPT
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.programs.gemini_chat import chat_of
from holdfast.core.conversation.reading import conversation_in
from holdfast.core.conversation.said import messages_in
from holdfast.errors import TranscriptError

STORY = json.loads((Path(__file__).parent / "transcripts" / "gemini_cli.json").read_text())
SESSION = STORY["chat"][0]["sessionId"]
ABOUT = {"sessionId": "s1", "projectHash": "0", "startTime": "t0", "lastUpdated": "t0"}


@dataclass(frozen=True)
class Step:
    """A checkpoint as the recorder makes it."""

    told: Told
    name: str
    point: Point


def steps_of(story: dict[str, Any], folder: Path) -> list[Step]:
    """Record a story: each event while the chat is as it was when it was told."""
    files, found = JsonLines(), []
    chat = folder / "chat.jsonl"
    for event in story["events"]:
        lines = story["chat"][: event["lines"]]
        chat.write_text("".join(json.dumps(each) + "\n" for each in lines))
        told = events.read({**event, "transcript_path": str(chat)}, PROGRAM)
        told = PROGRAM.completed(told, files)
        state = {
            name: masked(getattr(told, name))
            for name in ("tool", "input", "output", "prompt", "last_message")
            if getattr(told, name) is not None
        }
        state["moment"] = str(told.moment)
        entries = TRANSCRIPT.read(told, files)
        state["conversation"] = {"format": TRANSCRIPT.format, "entries": entries}
        state["transcript"] = {"path": str(chat)}
        found.append(Step(told, step_name(told, PROGRAM), Point.of_state(told.session, state)))
    return found


def cut_at(steps: Sequence[Step], at: int, live: Sequence[Any] = ()) -> Cut:
    later = [each.point.entries for each in steps[at + 1 :]]
    return TRANSCRIPT.cut(steps[at].point, iter([*later, live]))


def said(cut: Cut) -> list[tuple[str, ...]]:
    """What the program sends to the model when it resumes a chat."""
    found: list[tuple[str, ...]] = []
    for message in cut.entries[1:]:
        content = message["content"]
        parts: list[Any] = [{"text": content}] if isinstance(content, str) else content
        calls = message.get("toolCalls", [])
        if message["type"] == "user":
            if not parts[0].get("text", "").startswith("<session_context>"):
                found += [("user", *map(str, each.values())) for each in parts]
            continue
        found += [("agent", each["text"]) for each in parts if each.get("text")]
        if not any("functionCall" in each for each in parts):
            parts = [{"functionCall": each} for each in calls]
        found += [
            ("call", *_short(each["functionCall"])) for each in parts if "functionCall" in each
        ]
        for call in calls:
            for part in call["result"]:
                response = part["functionResponse"]
                text = response["response"].get("output", response["response"].get("error"))
                found.append(("result", text.split("PGID: ")[-1].strip().partition("\n")[0]))
    return found


def _short(call: dict[str, Any]) -> tuple[str, str]:
    args = call["args"]
    return call["name"], str(args.get("command") or args.get("file_path") or args.get("prompt"))


@pytest.fixture
def steps(tmp_path: Path) -> list[Step]:
    return steps_of(STORY, tmp_path)


SAME = ("call", "run_shell_command", "echo same >> c.txt")
WRITTEN = [
    ("user", "Make the page better"),
    ("agent", "I will write it."),
    ("call", "write_file", "/project/page.html"),
    (
        "result",
        "Successfully created and wrote to new file: /project/page.html. Here is the updated code:",
    ),
]


class TestNames:
    def test_steps_are_named_in_the_words_of_the_program_and_of_the_user(
        self, steps: list[Step]
    ) -> None:
        assert [each.name for each in steps] == [
            "you: Make the page better",
            "WriteFile page.html",
            "Shell echo log > test.log; exit 3 (failed, 3)",
            "Edit page.html",
            "Shell echo same >> c.txt",
            "ReadFile nope.txt (failed)",
            "Shell echo same >> c.txt",
            "ReadFile page.html",
            "Shell sleep 0.3; echo slow > slow.txt; exit 4 (failed, 4)",
            "WriteFile notes.txt",
            "Complete Task",
            "subagent generalist: Write the notes",
            "agent: All done.",
            "you: Remove it",
            "Shell rm page.html",
            "agent: Removed.",
        ]

    @pytest.mark.parametrize(
        ("output", "failure"),
        [
            ("Output: ok\nProcess Group PGID: 7", None),
            ("Output: Exit Code: 3\nProcess Group PGID: 7", None),
            ("Output: a\nExit Code: 3\nb\nProcess Group PGID: 7", None),
            ("<untrusted_context>\nOutput: a\nExit Code: 12\n</untrusted_context>", "12"),
            ("Output: a\nExit Code: 1\nBackground PIDs: 5, 6\nProcess Group PGID: 7", "1"),
            ("Output: a\nSignal: SIGKILL\nProcess Group PGID: 7", ""),
            ("Command was cancelled by user before it could complete.", ""),
            (None, None),
            ([{"text": "Output: a\nExit Code: 2"}], "2"),
            ([{"inlineData": {}}], None),
        ],
    )
    def test_a_command_failed_if_the_program_says_so_behind_what_it_printed(
        self, output: Any, failure: str | None
    ) -> None:
        told = Told(
            program="gemini-cli",
            session="s1",
            event="AfterTool",
            moment=Moment.CALL,
            tool="run_shell_command",
            output={"llmContent": output},
        )
        assert PROGRAM.failure_of(told) == failure


class TestCut:
    def test_before_the_first_prompt_a_session_begins_under_the_id(self, steps: list[Step]) -> None:
        cut = cut_at(steps, 0)
        assert cut.is_empty
        assert TRANSCRIPT.resume("ID", cut) == ["gemini", "--session-id", "ID"]

    def test_a_call_is_followed_by_its_result_and_nothing_else(self, steps: list[Step]) -> None:
        cut = cut_at(steps, 1)
        assert said(cut) == WRITTEN
        assert cut.note is None
        assert TRANSCRIPT.resume("ID", cut) == ["gemini", "--resume", "ID"]

    def test_each_later_call_adds_itself(self, steps: list[Step]) -> None:
        assert said(cut_at(steps, 2))[4:] == [
            ("call", "run_shell_command", "echo log > test.log; exit 3"),
            ("result", said(cut_at(steps, 2))[-1][1]),
        ]
        assert said(cut_at(steps, 3))[6:8] == [
            ("agent", "Now the edit."),
            ("call", "replace", "/project/page.html"),
        ]

    def test_of_calls_side_by_side_those_that_ended_later_were_not_made_yet(
        self, steps: list[Step]
    ) -> None:
        before = said(cut_at(steps, 3))
        reads = [
            ("call", "read_file", "/project/page.html"),
            ("call", "read_file", "/project/nope.txt"),
        ]
        first, _, second, _, slow = (said(cut_at(steps, at))[len(before) :] for at in range(4, 9))
        results = [
            step.told.output["llmContent"].split("PGID: ")[1].partition("\n")[0]
            for step in (steps[4], steps[6])
        ]
        assert [each for each in first if each[0] == "call"] == [SAME]
        assert first[-1] == ("result", results[0])
        assert [each for each in second if each[0] == "call"] == [SAME, SAME, reads[1]]
        assert {each[1] for each in second} >= set(results)
        slow_call = ("call", "run_shell_command", "sleep 0.3; echo slow > slow.txt; exit 4")
        assert [each for each in slow if each[0] == "call"] == [SAME, SAME, *reads, slow_call]

    def test_a_call_whose_arguments_the_user_changed_is_known_by_its_result(
        self, steps: list[Step]
    ) -> None:
        mark = steps[1].point.entries[-1]["$holdfast"]
        changed = {"$holdfast": {**mark, "args": {"file_path": "/project/other.html"}}}
        point = replace(steps[1].point, entries=[*steps[1].point.entries[:-1], changed])
        cut = TRANSCRIPT.cut(point, iter([STORY["chat"]]))
        assert said(cut) == WRITTEN
        assert cut.note is None

    def test_a_call_that_only_read_and_was_not_recorded_stays(self, steps: list[Step]) -> None:
        recorded = [each for each in steps if not each.name.startswith("ReadFile")]
        calls = [each for each in said(cut_at(recorded, 4)) if each[0] == "call"]
        assert [each[1] for each in calls[3:]] == ["run_shell_command", "read_file", "read_file"]

    def test_a_step_of_a_subagent_leads_to_before_it_was_asked(self, steps: list[Step]) -> None:
        cut = cut_at(steps, 9)
        assert said(cut)[-1] == ("agent", "A subagent does the rest.")
        assert "subagent" in (cut.note or "")
        assert said(cut_at(steps, 11))[-2] == ("call", "invoke_agent", "Write the notes")

    def test_an_end_has_the_last_message(self, steps: list[Step]) -> None:
        assert said(cut_at(steps, 12))[-1] == ("agent", "All done.")

    def test_a_later_prompt_is_left_to_be_worded_anew(self, steps: list[Step]) -> None:
        assert said(cut_at(steps, 13)) == said(cut_at(steps, 12))

    def test_what_a_resume_of_the_program_wrote_again_stands_once(self, steps: list[Step]) -> None:
        was, now = said(cut_at(steps, 12)), said(cut_at(steps, 15))
        assert now == [
            *was,
            ("user", "Remove it"),
            ("agent", "I remove it."),
            ("call", "run_shell_command", "rm page.html"),
            ("result", now[-2][1]),
            ("agent", "Removed."),
        ]

    def test_a_result_that_is_only_in_the_live_chat_is_found(self, steps: list[Step]) -> None:
        live = STORY["chat"]
        assert said(cut_at(steps[:2], 1, live)) == WRITTEN

    def test_a_result_that_was_never_written_is_as_the_hook_was_told_it(
        self, steps: list[Step]
    ) -> None:
        cut = cut_at(steps[:2], 1)
        assert said(cut) == WRITTEN
        assert "never wrote" in (cut.note or "")

    def test_a_failure_that_was_never_written_is_a_failure(self, steps: list[Step]) -> None:
        cut = cut_at(steps[5:6], 0)
        response = cut.entries[-1]["toolCalls"][0]["result"][0]["functionResponse"]["response"]
        assert response == {"error": "File not found: /project/nope.txt"}

    def test_a_result_that_nobody_knows_is_left_out(self, steps: list[Step]) -> None:
        cut = TRANSCRIPT.cut(replace(steps[1].point, entries=steps[1].point.entries[:-1]), iter([]))
        assert said(cut) == WRITTEN[:2]
        assert "ends before it" in (cut.note or "")

    def test_messages_that_were_rewound_are_not_in_it(self) -> None:
        entries = [
            ABOUT,
            *({"id": each, "type": "user", "content": each} for each in "abc"),
            {"$rewindTo": "b"},
            {"id": "d", "type": "user", "content": "d"},
        ]
        assert [each["id"] for each in _end(entries).entries[1:]] == ["a", "d"]

    def test_what_is_set_of_the_chat_is_kept_as_it_is(self) -> None:
        entries = [
            {**ABOUT, "future": 1},
            {"id": "a", "type": "user", "content": "a", "other": [1]},
            {
                "$set": {
                    "summary": "about",
                    "messages": [{"id": "b", "type": "user", "content": "b"}],
                }
            },
            {"id": "i", "type": "info", "content": "note"},
        ]
        assert _end(entries).entries == [
            {**ABOUT, "future": 1, "summary": "about"},
            {"id": "b", "type": "user", "content": "b"},
            {"id": "i", "type": "info", "content": "note"},
        ]

    def test_text_that_came_with_results_stays(self) -> None:
        answer = {"functionResponse": {"id": "c1", "name": "x", "response": {"output": "1"}}}
        call = {"id": "c1", "name": "x", "args": {}, "result": [answer]}
        entries = [
            ABOUT,
            {"id": "g", "type": "gemini", "content": "", "toolCalls": [call]},
            {"id": "u", "type": "user", "content": [answer, {"text": "and hurry"}]},
        ]
        assert _end(entries).entries[2]["content"] == [{"text": "and hurry"}]

    def test_what_belongs_to_a_result_stays_with_it(self) -> None:
        answers = [
            {"functionResponse": {"id": each, "name": "read_file", "response": {"output": each}}}
            for each in ("c1", "c2")
        ]
        picture = {"inlineData": {"mimeType": "image/png", "data": "AA=="}}
        both = [answers[0], picture, answers[1]]  # as a resume of the program writes it
        calls: list[Any] = [
            {"id": each, "name": "read_file", "args": {}, "result": both} for each in ("c1", "c2")
        ]
        cut = _end([ABOUT, {"id": "g", "type": "gemini", "content": "", "toolCalls": calls}])
        results = [each["result"] for each in cut.entries[1]["toolCalls"]]
        assert results == [[answers[0], picture], [answers[1]]]

    def test_what_the_user_says_while_a_call_runs_stays(self, steps: list[Step]) -> None:
        hint = {"id": "h", "type": "user", "content": [{"text": "and hurry"}]}
        *entries, mark = steps[1].point.entries
        point = replace(steps[1].point, entries=[*entries, hint, mark])
        cut = TRANSCRIPT.cut(point, iter([STORY["chat"]]))
        assert said(cut) == [*WRITTEN, ("user", "and hurry")]


def _end(entries: list[Any]) -> Cut:
    return TRANSCRIPT.cut(Point(session="s1", moment=Moment.END, entries=entries), iter([]))


HOSTILE = st.lists(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        *("id", "type", "content", "toolCalls", "result", "$set", "text"),
                        *("messages", "$rewindTo", "$holdfast", "sessionId"),
                        "functionResponse",
                    ]
                ),
                inner | st.sampled_from(["gemini", "user"]),
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    max_size=6,
)


class TestHostile:
    @pytest.mark.parametrize(
        ("entries", "says"),
        [
            ([], "no conversation of s1 was kept"),
            ([{"type": "user", "uuid": "1"}], "no chat of Gemini CLI"),
            (["garbage", 5, None, []], "no chat of Gemini CLI"),
            ([ABOUT, {"$truncateTo": "x"}], r"\$truncateTo"),
            ([ABOUT, {"id": "g", "type": "gemini", "toolCalls": 5}], "tool calls of message 'g'"),
            ([ABOUT, {"id": "g", "type": "gemini", "toolCalls": [{"id": 1}]}], "message 'g'"),
        ],
    )
    def test_what_is_not_as_known_is_refused_with_what_was_found(
        self, entries: list[Any], says: str
    ) -> None:
        with pytest.raises(TranscriptError, match=says):
            _end(entries)

    def test_lines_that_are_no_records_are_skipped_as_the_program_does(self) -> None:
        entries = [ABOUT, "half a li", 7, [], {"x": 1}, {"id": "a", "type": "user", "content": "a"}]
        assert len(_end(entries).entries) == 2

    @given(HOSTILE, st.sampled_from(Moment))
    def test_whatever_a_chat_holds_it_is_cut_or_refused(
        self, entries: list[Any], moment: Moment
    ) -> None:
        point = Point(session="s1", moment=moment, entries=[ABOUT, *entries], tool="x", input={})
        try:
            cut = TRANSCRIPT.cut(point, iter([[ABOUT, *entries], entries]))
        except TranscriptError:
            return
        assert cut.is_empty or cut.entries[0]["sessionId"]


@dataclass
class MadeUp:
    """A chat as the program writes it, with what the hooks saw."""

    records: list[Any]
    points: list[tuple[Point, list[str], list[str]]]
    """With the messages before, and the calls that had ended, oldest first."""


@st.composite
def made_up(draw: st.DrawFn) -> MadeUp:
    records: list[Any] = [ABOUT]
    made = MadeUp(records, [])
    before: list[str] = []
    for turn in range(draw(st.integers(1, 4))):
        records.append({"id": f"u{turn}", "type": "user", "content": [{"text": f"prompt {turn}"}]})
        before.append(f"u{turn}")
        message = {"id": f"g{turn}", "type": "gemini", "content": draw(st.sampled_from(["", "ok"]))}
        records.append(message)
        count = draw(st.integers(0, 4))
        calls = [
            _call(f"c{turn}.{i}", draw(st.integers(0, 1)), draw(st.integers(0, 1)))
            for i in range(count)
        ]
        ended: list[str] = []
        for i in draw(st.permutations(range(count))):
            call = calls[i]
            ended.append(_shape(call))
            response = call["result"][0]["functionResponse"]["response"]["output"]
            told = Told(
                program="gemini-cli",
                session="s1",
                event="AfterTool",
                moment=Moment.CALL,
                tool=call["name"],
                input=call["args"],
                output={"llmContent": response},
                transcript="-",
            )
            entries = TRANSCRIPT.read(told, _Fixed(records))
            assert entries is not None
            point = Point(
                session="s1",
                moment=Moment.CALL,
                entries=entries,
                tool=told.tool,
                input=told.input,
            )
            made.points.append((point, list(before), list(ended)))
        if calls:
            records.append({**message, "toolCalls": calls})
            results = [part for call in calls for part in call["result"]]
            records.append({"id": f"r{turn}", "type": "user", "content": results})
        before.append(f"g{turn}")
        if draw(st.booleans()):
            records.append(_resumed(records))
    return made


def _resumed(records: list[Any]) -> Any:
    """What the program writes when it resumes: results doubled, and those of all in each call."""
    messages = []
    for message in chat_of(records).messages.values():
        calls = message.get("toolCalls", [])
        results = [
            part
            for call in calls
            for part in call["result"]
            if part["functionResponse"]["id"] == call["id"]
        ]
        messages.append({**message, "toolCalls": [{**call, "result": results} for call in calls]})
        if calls:
            answer = {"id": f"{message['id']}_response", "type": "user", "content": results}
            messages.append(answer)
    return {"$set": {"messages": messages}}


class _Fixed(JsonLines):
    def __init__(self, records: list[Any]) -> None:
        super().__init__()
        self._records = list(records)

    def read(self, path: str) -> list[Any] | None:
        return list(self._records)


def _call(call_id: str, command: int, result: int) -> dict[str, Any]:
    response = {"id": call_id, "name": "run", "response": {"output": f"result {result}"}}
    args = {"command": f"do {command}"}
    return {"id": call_id, "name": "run", "args": args, "result": [{"functionResponse": response}]}


def _shape(call: dict[str, Any]) -> str:
    """What tells a call from another: equal calls with equal results are the same to the model."""
    said = call["result"][0]["functionResponse"]["response"]["output"]
    return f"{call['args']['command']} {said}"


@given(made_up())
def test_a_cut_has_exactly_what_had_ended_when_its_hook_ran(made: MadeUp) -> None:
    for at, (point, before, ended) in enumerate(made.points):
        later: Iterator[Sequence[Any]] = iter(
            [*(each.entries for each, _, _ in made.points[at + 1 :]), made.records]
        )
        cut = TRANSCRIPT.cut(point, later)
        *earlier, last = cut.entries[1:]
        assert [each["id"] for each in earlier] == before
        assert sorted(map(_shape, last["toolCalls"])) == sorted(ended)
        assert all(
            len(call["result"]) == 1 for each in earlier for call in each.get("toolCalls", [])
        )
        assert cut.note is None


class TestRead:
    def test_a_chat_that_is_gone_is_none(self, steps: list[Step], tmp_path: Path) -> None:
        (tmp_path / "chat.jsonl").unlink()
        assert TRANSCRIPT.read(steps[1].told, JsonLines()) is None
        assert TRANSCRIPT.live(steps[1].point) is None

    def test_a_live_chat_of_another_session_is_not_taken_for_it(self, steps: list[Step]) -> None:
        assert TRANSCRIPT.live(steps[1].point) is not None
        assert TRANSCRIPT.live(replace(steps[1].point, session="other")) is None


MAIN = {"id": "m", "type": "gemini", "content": "", "timestamp": "2026-01-01T00:00:01.000Z"}
ASKED = {"id": "u", "type": "user", "content": "Write", "timestamp": "2026-01-01T00:00:02.000Z"}
WORKING = {"id": "w", "type": "gemini", "content": "", "timestamp": "2026-01-01T00:00:03.000Z"}


class TestSubagents:
    @pytest.fixture
    def told(self, tmp_path: Path) -> Told:
        self.write(tmp_path / "chat.jsonl", ABOUT, MAIN)
        return Told(
            program="gemini-cli",
            session="s1",
            event="AfterTool",
            moment=Moment.CALL,
            tool="write_file",
            transcript=str(tmp_path / "chat.jsonl"),
        )

    def write(self, path: Path, *records: Any) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(json.dumps(each) + "\n" for each in records))

    def test_a_call_while_a_subagent_waits_for_one_is_the_subagents(
        self, told: Told, tmp_path: Path
    ) -> None:
        chat = tmp_path / "s1" / "sub1.jsonl"
        self.write(chat, {**ABOUT, "sessionId": "sub1"}, ASKED, WORKING)
        found = PROGRAM.completed(told, JsonLines())
        assert (found.subagent_id, found.transcript) == ("sub1", str(chat))
        entries = TRANSCRIPT.read(found, JsonLines())
        assert entries is not None
        assert entries[-1]["$holdfast"]["message"] == "w"
        point = Point(
            session="s1.sub1",
            moment=Moment.CALL,
            entries=entries,
            subagent_id="sub1",
            transcript=found.transcript,
        )
        assert TRANSCRIPT.live(point) == entries[:-1]

    @pytest.mark.parametrize(
        "records",
        [
            [ASKED],
            [ASKED, {**WORKING, "toolCalls": []}],
            [ASKED, {**WORKING, "timestamp": "2026-01-01T00:00:00.000Z"}],
            [ASKED, {**WORKING, "timestamp": 5}],
            [],
        ],
        ids=["thinks", "has ended", "is of before", "has no time", "is empty"],
    )
    def test_a_call_while_no_subagent_waits_is_the_main_agents(
        self, told: Told, tmp_path: Path, records: list[Any]
    ) -> None:
        self.write(tmp_path / "s1" / "sub1.jsonl", {**ABOUT, "sessionId": "sub1"}, *records)
        assert PROGRAM.completed(told, JsonLines()) == told

    def test_the_end_of_a_subagent_is_the_main_agents(self, told: Told, tmp_path: Path) -> None:
        self.write(tmp_path / "s1" / "sub1.jsonl", ABOUT, ASKED, WORKING)
        told = replace(told, tool="invoke_agent")
        assert PROGRAM.completed(told, JsonLines()) == told

    @pytest.mark.parametrize("session", ["../../etc", "a/b", "", "x\0y", "."])
    def test_a_session_that_is_no_name_is_never_looked_for(
        self, told: Told, tmp_path: Path, session: str
    ) -> None:
        self.write(tmp_path / "sub1.jsonl", ABOUT, ASKED, WORKING)
        told = replace(told, session=session)
        assert PROGRAM.completed(told, JsonLines()) == told


class TestWrite:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        home = tmp_path / "home"
        monkeypatch.setenv("GEMINI_CLI_HOME", str(home))
        return home / ".gemini"

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "My Project!"
        folder.mkdir()
        return folder

    def test_a_new_chat_is_where_the_program_looks_for_it(
        self, steps: list[Step], folder: Path, home: Path
    ) -> None:
        new = TRANSCRIPT.new_id()
        UUID(new)
        path = TRANSCRIPT.write(cut_at(steps, 3), new, folder)
        assert path is not None
        assert path.parent == home / "tmp" / "my-project" / "chats"
        now = datetime.now(UTC).strftime("session-%Y-%m-%dT%H-%M-")
        assert "session-2026" < path.name < now  # never the minute in which it is resumed
        assert path.name.endswith(f"-{new}.jsonl")
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        about, *messages = map(json.loads, path.read_text().splitlines())
        assert about["sessionId"] == new
        assert about["projectHash"] == projects.hash_of(folder)
        assert about["kind"] == "main"
        assert about["lastUpdated"] > STORY["chat"][0]["lastUpdated"]
        assert messages == cut_at(steps, 3).entries[1:]
        assert [each.name for each in path.parent.iterdir()] == [path.name]

    def test_nothing_is_written_of_a_chat_in_which_nothing_was_said(
        self, steps: list[Step], folder: Path, home: Path
    ) -> None:
        assert TRANSCRIPT.write(cut_at(steps, 0), "ID", folder) is None
        assert not home.exists()

    def test_a_chat_that_is_there_is_never_written_over(
        self, steps: list[Step], folder: Path
    ) -> None:
        path = TRANSCRIPT.write(cut_at(steps, 1), "ID", folder)
        assert path is not None
        before = path.read_bytes()
        for _ in range(2):  # a minute may pass in between
            try:
                TRANSCRIPT.write(cut_at(steps, 2), "ID", folder)
            except TranscriptError:
                break
        assert path.read_bytes() == before

    @pytest.mark.parametrize("session", ["../x", "a/b", "", "a\0"])
    def test_an_id_that_is_no_name_is_refused(
        self, steps: list[Step], folder: Path, session: str
    ) -> None:
        with pytest.raises(TranscriptError, match="is no id"):
            TRANSCRIPT.write(cut_at(steps, 1), session, folder)

    def test_half_a_pair_of_surrogates_is_written_as_it_was(self, folder: Path) -> None:
        cut = _end([ABOUT, {"id": "a", "type": "user", "content": "\ud83d"}])
        path = TRANSCRIPT.write(cut, "ID", folder)
        assert path is not None
        assert json.loads(path.read_text().splitlines()[1])["content"] == "\ud83d"


class TestProjects:
    @pytest.fixture(autouse=True)
    def home(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.setenv("GEMINI_CLI_HOME", str(tmp_path / "home"))
        base = tmp_path / "home" / ".gemini"
        base.mkdir(parents=True)
        return base

    def _project(self, tmp_path: Path, name: str = "work") -> Path:
        folder = tmp_path / name
        folder.mkdir()
        return folder

    def _mark(self, folder: Path, owner: Path | str) -> None:
        folder.mkdir(parents=True)
        (folder / ".project_root").write_text(str(owner))

    def test_a_registered_name_is_taken(self, tmp_path: Path, home: Path) -> None:
        folder = self._project(tmp_path)
        registry = {"projects": {str(folder): "other-name"}}
        (home / "projects.json").write_text(json.dumps(registry))
        assert projects.folder_of(folder) == home / "tmp" / "other-name"

    @pytest.mark.parametrize(
        "registry", ["{", "[]", '{"projects": {"FOLDER": "../../evil"}}', '{"projects": 5}']
    )
    def test_a_registry_that_is_not_as_known_is_as_if_it_were_not_there(
        self, tmp_path: Path, home: Path, registry: str
    ) -> None:
        folder = self._project(tmp_path)
        (home / "projects.json").write_text(registry.replace("FOLDER", str(folder)))
        assert projects.folder_of(folder) == home / "tmp" / "work"

    def test_a_name_that_is_marked_as_anothers_is_not_taken(
        self, tmp_path: Path, home: Path
    ) -> None:
        folder = self._project(tmp_path)
        (home / "projects.json").write_text(json.dumps({"projects": {str(folder): "work"}}))
        self._mark(home / "history" / "work", "/another")
        assert projects.folder_of(folder) == home / "tmp" / "work-1"

    @pytest.mark.parametrize("kind", ["tmp", "history"])
    def test_a_folder_that_is_marked_is_found_without_a_registry(
        self, tmp_path: Path, home: Path, kind: str
    ) -> None:
        folder = self._project(tmp_path)
        self._mark(home / kind / "strange", folder)
        assert projects.folder_of(folder) == home / "tmp" / "strange"

    def test_a_project_that_was_never_seen_gets_a_name_that_nothing_has(
        self, tmp_path: Path, home: Path
    ) -> None:
        folder = self._project(tmp_path, "Größe__2")
        self._mark(home / "tmp" / "gr-e-2", "/another")
        (home / "projects.json").write_text(json.dumps({"projects": {"/third": "gr-e-2-1"}}))
        found = projects.folder_of(folder)
        assert found == home / "tmp" / "gr-e-2-2"
        assert (found / ".project_root").read_text() == str(folder)
        assert projects.folder_of(folder) == found

    def test_a_link_to_a_project_is_that_project(self, tmp_path: Path) -> None:
        folder = self._project(tmp_path)
        link = tmp_path / "link"
        link.symlink_to(folder)
        assert projects.folder_of(link) == projects.folder_of(folder)
        assert projects.hash_of(link) == projects.hash_of(folder)


class TestMessages:
    def test_a_chat_is_shown_as_what_was_said(self, steps: list[Step]) -> None:
        shown = messages_of(steps[15])
        assert [each for each in shown if each[0] != "tool"][:3] == [
            ("user", "Make the page better"),
            ("assistant", "I will write it."),
            ("assistant", ""),
        ]
        assert shown[-1] == ("assistant", "Removed.")
        assert len([each for each in shown if each[0] == "tool"]) == 10

    def test_the_call_that_has_just_ended_is_shown_with_its_result(self, steps: list[Step]) -> None:
        assert [each[0] for each in messages_of(steps[1])] == ["user", "assistant", "tool"]
        assert messages_of(steps[5])[-1] == ("tool", "File not found: /project/nope.txt")

    @given(HOSTILE)
    def test_whatever_a_chat_holds_it_is_shown_or_not(self, entries: list[Any]) -> None:
        state = {"conversation": {"format": "gemini-cli/1", "entries": [ABOUT, *entries]}}
        found = conversation_in("custom", state)
        assert found is None or isinstance(found.messages, list)


def messages_of(step: Step) -> list[tuple[str, str]]:
    state = {"conversation": {"format": "gemini-cli/1", "entries": list(step.point.entries)}}
    return [(each.role, each.text) for each in messages_in("custom", state)]


def test_the_program_is_known_by_its_name() -> None:
    assert programs.transcript("gemini-cli") is TRANSCRIPT
