"""Conversations of opencode: what is read of them, where they are cut, and how they are copied."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents import events
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.naming import step_name
from holdfast.coding_agents.opencode import ids
from holdfast.coding_agents.opencode.copying import copied
from holdfast.coding_agents.opencode.entries import Conversation, conversation_of, entries_of
from holdfast.coding_agents.opencode.program import PROGRAM
from holdfast.coding_agents.opencode.transcript import TRANSCRIPT
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.said import messages_in
from holdfast.errors import TranscriptError

STORY = json.loads((Path(__file__).parent / "transcripts" / "opencode.json").read_text())["events"]
TOLD = [events.read(each, PROGRAM) for each in STORY]
MAIN = [each for each in TOLD if each.subagent_id is None]


def point_of(told: Told) -> Point:
    """Return the point of the checkpoint that the recorder makes."""
    state: dict[str, Any] = {"moment": str(told.moment)}
    names = ("tool", "prompt", "last_message", "call_id", "turn_id", "prompt_id", "subagent_id")
    for name in names:
        if getattr(told, name) is not None:
            state[name] = getattr(told, name)
    entries = TRANSCRIPT.read(told, JsonLines())
    state["conversation"] = {"format": TRANSCRIPT.format, "entries": entries}
    return Point.of_state(told.session, state)


POINTS = {step_name(each, PROGRAM): point_of(each) for each in TOLD}
NOTHING: Iterator[Any] = iter(())


def said(cut: Cut) -> list[tuple[str, str]]:
    """Return what a model is told, in short."""
    found: list[tuple[str, str]] = []
    for message in conversation_of(cut.entries).messages:
        role = message["info"]["role"]
        for part in message["parts"]:
            if part["type"] == "text":
                found.append((role, part["text"]))
            if part["type"] == "tool":
                state = part["state"]
                result = state.get("output", state.get("error", state["status"]))
                found.append((part["tool"], result.partition("\n")[0]))
    return found


WRITE = [("user", "Make it"), ("assistant", "I begin."), ("write", "Wrote file successfully.")]
SHELL = [*WRITE, ("bash", "(no output)"), ("assistant", "Both."), ("bash", "(no output)")]


def test_steps_are_called_as_who_watches_would_call_them() -> None:
    assert list(POINTS) == [
        "you: Make it",
        "write hello.txt",
        "bash echo half > half.txt; exit 3 (failed, 3)",
        "bash echo a > a.txt",
        "bash sleep 1; echo b > b.txt",
        "edit none.txt (failed)",
        "task: Help out",
        "write helper.txt",
        "agent: Helped.",
        "agent: Made.",
        "you: Now",
        "agent: Done.",
    ]


def test_an_agent_that_was_stopped_says_why() -> None:
    told = replace(MAIN[-1], error="Model not found: x/y.", last_message=None)

    assert step_name(told, PROGRAM) == "agent: stopped: Model not found: x/y."


def test_a_patch_is_called_after_its_files() -> None:
    files = [{"relativePath": "a.txt"}, {"relativePath": "b/c.txt"}, {"other": 1}]
    told = replace(MAIN[1], tool="apply_patch", output={"metadata": {"files": files}})

    assert step_name(told, PROGRAM) == "patch: a.txt, b/c.txt"


def test_a_command_that_was_ended_has_failed_without_an_exit_code() -> None:
    told = replace(MAIN[1], output={"metadata": {"exit": None}})

    assert PROGRAM.failure_of(told) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("you: Make it", []),
        ("write hello.txt", WRITE),
        ("bash echo half > half.txt; exit 3 (failed, 3)", SHELL[:4]),
        ("bash echo a > a.txt", SHELL),
        ("bash sleep 1; echo b > b.txt", [*SHELL, ("bash", "(no output)")]),
        (
            "edit none.txt (failed)",
            [*SHELL, ("bash", "(no output)"), ("edit", "File /project/none.txt not found")],
        ),
        ("write helper.txt", [("user", "Help out"), ("write", "Wrote file successfully.")]),
    ],
)
def test_a_conversation_is_cut_after_a_call_and_before_a_prompt(
    name: str, expected: list[tuple[str, str]]
) -> None:
    cut = TRANSCRIPT.cut(POINTS[name], NOTHING)

    assert said(cut) == expected
    assert cut.note is None


def test_the_prompt_after_an_end_is_cut_where_that_end_is() -> None:
    end = TRANSCRIPT.cut(POINTS["agent: Made."], NOTHING)
    prompt = TRANSCRIPT.cut(POINTS["you: Now"], NOTHING)

    assert said(end) == said(prompt)
    assert said(end)[-1] == ("assistant", "Made.")


def test_a_message_that_ends_in_a_call_is_as_opencode_has_it_then() -> None:
    cut = TRANSCRIPT.cut(POINTS["write hello.txt"], NOTHING)

    last = cut.entries[-1]
    assert last["info"]["finish"] == "tool-calls"
    assert last["info"]["time"]["completed"] == last["parts"][-1]["state"]["time"]["end"]


@pytest.mark.parametrize("name", list(POINTS))
def test_what_was_cut_is_cut_there_once_more_and_stays_as_it_is(name: str) -> None:
    point = POINTS[name]
    cut = TRANSCRIPT.cut(point, NOTHING)

    again = TRANSCRIPT.cut(replace(point, entries=cut.entries), NOTHING)

    assert again == cut


def test_a_call_is_found_in_what_was_known_later_with_its_neighbours_up_to_then() -> None:
    later = POINTS["agent: Done."].entries

    first = TRANSCRIPT.cut(replace(POINTS["bash echo a > a.txt"], entries=()), iter([later]))
    second = replace(POINTS["bash sleep 1; echo b > b.txt"], entries=())

    assert said(first) == SHELL
    assert said(TRANSCRIPT.cut(second, iter([later]))) == [*SHELL, ("bash", "(no output)")]


def test_a_prompt_is_found_in_what_was_known_later() -> None:
    point = replace(POINTS["you: Now"], entries=())

    cut = TRANSCRIPT.cut(point, iter([POINTS["agent: Done."].entries]))

    assert said(cut) == said(TRANSCRIPT.cut(POINTS["you: Now"], NOTHING))


def unfinished(point: Point) -> Point:
    """Return a point as it was told before opencode had written the result, and the text."""
    entries = json.loads(json.dumps(point.entries))
    text, call = entries[-1]["parts"][1:3]
    assert (text["type"], call["type"]) == ("text", "tool")
    text["text"] = ""
    del text["time"]["end"]
    call["state"] = {"status": "running", "input": {}, "time": {"start": 1}}
    return replace(point, entries=entries)


def test_a_result_and_a_text_that_came_later_are_taken_from_there() -> None:
    point = unfinished(POINTS["write hello.txt"])

    cut = TRANSCRIPT.cut(point, iter([point.entries, POINTS["agent: Made."].entries]))

    assert said(cut) == WRITE
    assert cut.note is None


def test_no_more_is_looked_at_than_is_needed() -> None:
    def later() -> Iterator[Any]:
        raise AssertionError("the checkpoint itself has all of it")
        yield

    for point in POINTS.values():
        TRANSCRIPT.cut(point, later())


def test_a_result_that_never_came_is_said() -> None:
    cut = TRANSCRIPT.cut(unfinished(POINTS["write hello.txt"]), NOTHING)

    assert said(cut)[-1] == ("write", "running")
    assert cut.note is not None
    assert "never written" in cut.note


def with_one_id(given: Sequence[Any]) -> list[Any]:
    """Return entries in which all calls have the same id, as some models give them."""
    entries: list[Any] = json.loads(json.dumps(given))
    for part in (part for message in entries[1:] for part in message["parts"]):
        if part["type"] == "tool":
            part["callID"] = "call_0"
    return entries


@pytest.mark.parametrize("name", ["write hello.txt", "edit none.txt (failed)"])
def test_calls_of_one_id_are_told_apart_by_their_messages(name: str) -> None:
    point = replace(POINTS[name], call_id="call_0", entries=with_one_id(POINTS[name].entries))
    later = iter([with_one_id(POINTS["agent: Done."].entries)])
    expected = said(TRANSCRIPT.cut(POINTS[name], NOTHING))

    assert said(TRANSCRIPT.cut(point, NOTHING)) == expected
    assert said(TRANSCRIPT.cut(replace(point, turn_id=None), NOTHING)) == expected
    assert said(TRANSCRIPT.cut(replace(point, entries=()), later)) == expected


def test_a_call_may_be_known_by_its_part() -> None:
    point = POINTS["write hello.txt"]
    part = point.entries[-1]["parts"][-1]

    assert said(TRANSCRIPT.cut(replace(point, call_id=part["id"]), NOTHING)) == WRITE


def test_a_compaction_is_a_message_like_others() -> None:
    point = POINTS["agent: Made."]
    first = point.entries[1]["info"]["id"]
    compaction = {
        "info": {"id": "msg_1ee8d7fff001AAAAAAAAAAAAAA", "role": "user", "time": {"created": 9}},
        "parts": [
            {
                "id": "prt_1ee8d7fff001AAAAAAAAAAAAAA",
                "type": "compaction",
                "auto": True,
                "tail_start_id": first,
            }
        ],
    }
    point = replace(point, entries=[*point.entries, compaction])

    cut = TRANSCRIPT.cut(point, NOTHING)
    copy = copied(conversation_of(cut.entries), "ses_new", Path("/project"), 5)

    renamed = copy["messages"][0]["info"]["id"]
    assert copy["messages"][-1]["parts"][0]["tail_start_id"] == renamed != first


@pytest.mark.parametrize(
    "entries",
    [
        ["x"],
        [{}],
        [{"session": 1}],
        [{"session": {}}, {"info": {"id": 1}, "parts": []}],
        [{"info": {"id": "m"}, "parts": "x"}],
        [{"info": {"id": "m"}, "parts": [None]}],
        [{"info": {"id": "m"}, "parts": [{"type": "tool"}]}],
        [{"info": [], "parts": []}],
    ],
)
def test_what_is_not_as_known_is_refused_with_what_was_found(entries: list[Any]) -> None:
    for moment in Moment:
        point = Point(session="s", moment=moment, call_id="c", prompt_id="p", entries=entries)
        with pytest.raises(TranscriptError, match="not as opencode is known to keep it"):
            TRANSCRIPT.cut(point, NOTHING)


@pytest.mark.parametrize("moment", list(Moment))
def test_a_conversation_that_was_not_kept_is_refused_and_files_alone_are_offered(
    moment: Moment,
) -> None:
    point = Point(session="ses_1", moment=moment, call_id="call_1", prompt_id="msg_1")

    with pytest.raises(TranscriptError, match=r"'ses_1'.*--files"):
        TRANSCRIPT.cut(point, NOTHING)


@pytest.mark.parametrize("given", [None, 1, "x", [], {}, {"info": 1, "messages": []}, {"info": {}}])
def test_an_event_without_a_conversation_has_none(given: Any) -> None:
    assert TRANSCRIPT.read(replace(MAIN[0], conversation=given), JsonLines()) is None


def test_secrets_in_a_conversation_are_hidden() -> None:
    told = MAIN[1]
    conversation = json.loads(json.dumps(told.conversation))
    secret = "ghp_" + "a" * 36
    conversation["messages"][0]["parts"][0]["text"] = f"use {secret}"

    entries = TRANSCRIPT.read(replace(told, conversation=conversation), JsonLines())

    assert secret not in json.dumps(entries)
    assert "use ***" in json.dumps(entries)


def test_what_comes_with_every_event_is_looked_through_again_only_where_it_changed() -> None:
    transcript = type(TRANSCRIPT)()
    told = MAIN[-1]
    first = transcript.read(told, JsonLines())
    assert first is not None

    conversation = json.loads(json.dumps(told.conversation))
    conversation["messages"][-1]["parts"].append({"id": "p", "text": "ghp_" + "b" * 36})
    again = transcript.read(replace(told, conversation=conversation), JsonLines())

    assert again is not None
    assert again[:-1] == first[:-1]
    assert all(one is other for one, other in zip(again[1:-1], first[1:-1], strict=True))
    assert again[-1]["parts"][-1]["text"] == "***"


def test_what_the_user_took_back_in_opencode_is_no_part_of_it() -> None:
    whole = MAIN[-1].conversation
    third = whole["messages"][2]

    def left(**revert: str) -> list[Any]:
        exported = {**whole, "info": {**whole["info"], "revert": revert}}
        entries = entries_of(exported)
        assert entries is not None
        return entries[1:]

    assert left(messageID=third["info"]["id"]) == whole["messages"][:2]
    part = third["parts"][1]["id"]
    assert left(messageID=third["info"]["id"], partID=part)[-1]["parts"] == third["parts"][:1]
    assert left(messageID="msg_unknown") == whole["messages"]


def test_a_copy_says_the_same_under_ids_of_its_own() -> None:
    cut = TRANSCRIPT.cut(POINTS["agent: Done."], NOTHING)
    session = conversation_of(cut.entries).session
    assert session is not None
    cut.entries[0] = {"session": {**session, "share": {"url": "u"}, "parentID": "p", "revert": {}}}

    copy = copied(conversation_of(cut.entries), "ses_new", Path("/elsewhere"), 7)

    info = copy["info"]
    assert (info["id"], info["directory"]) == ("ses_new", "/elsewhere")
    assert info["title"] == "A title (rewound)"
    assert info["time"] == {"created": session["time"]["created"], "updated": 7}
    assert not {"share", "parentID", "revert"} & set(info)
    assert said(Cut(entries=copy["messages"])) == said(cut)
    old, new = _ids(cut.entries[1:]), _ids(copy["messages"])
    assert not set(old) & set(new)
    assert [each[:16] for each in old] == [each[:16] for each in new]
    for message in copy["messages"]:
        parts = [message["info"], *message["parts"]]
        assert {each["sessionID"] for each in parts} == {"ses_new"}
        assert {each["messageID"] for each in message["parts"]} <= {message["info"]["id"]}
        if message["info"]["role"] == "assistant":
            assert message["info"]["parentID"] in new


def _ids(messages: list[Any]) -> list[str]:
    return [each["id"] for m in messages for each in (m["info"], *m["parts"])]


def test_a_copy_of_a_copy_has_its_mark_once() -> None:
    cut = TRANSCRIPT.cut(POINTS["agent: Done."], NOTHING)
    once = copied(conversation_of(cut.entries), "ses_1", Path("/p"), 7)

    twice = copied(Conversation(once["info"], once["messages"]), "ses_2", Path("/p"), 8)

    assert twice["info"]["title"] == "A title (rewound)"


def test_before_anything_was_said_a_copy_keeps_the_title_that_opencode_replaces() -> None:
    cut = TRANSCRIPT.cut(POINTS["you: Make it"], NOTHING)

    copy = copied(conversation_of(cut.entries), "ses_1", Path("/p"), 7)

    assert copy["messages"] == []
    assert copy["info"]["title"].startswith("New session - ")
    assert not cut.is_empty
    assert TRANSCRIPT.resume("ses_1", cut) == ["opencode", "--session", "ses_1"]


@pytest.mark.parametrize("odd", ["msg_1", "", "../x", "msg_1ee8d74f0001NJb6881dA2OJ8x\n", 5, None])
def test_ids_that_are_not_made_as_known_are_refused(odd: Any) -> None:
    entries = json.loads(json.dumps(POINTS["write hello.txt"].entries))
    entries[1]["parts"][0]["id"] = odd
    conversation = Conversation(entries[0]["session"], entries[1:])

    with pytest.raises(TranscriptError, match="not made as opencode makes them"):
        copied(conversation, "ses_1", Path("/p"), 7)


_TIME = st.sampled_from(["1ee8d74f0001", "1ee8d74f0002", "1ee8d74f1001", "ffffffffffff"])
_CHANCE = st.text("09AZaz", min_size=14, max_size=14)
_KIND = st.sampled_from(["msg_", "prt_"])
_ID = st.builds(lambda kind, time, chance: kind + time + chance, _KIND, _TIME, _CHANCE)


@given(st.sets(_ID, max_size=40))
def test_new_ids_are_new_and_in_the_order_of_the_old_ones(old: set[str]) -> None:
    names = ids.renamed(old)

    new = [names[each] for each in sorted(old)]
    assert new == sorted(set(new))
    assert not old & set(new)
    assert all(ids.is_known(each) for each in new)
    assert [each[:16] for each in new] == [each[:16] for each in sorted(old)]


def test_session_ids_are_as_opencode_makes_them_and_the_newer_comes_first() -> None:
    made = [ids.new_session_id() for _ in range(50)]

    assert all(ids.is_known(each) for each in made)
    assert len(set(made)) == 50
    assert made[-1][:16] <= made[0][:16]
    assert made[-1][:16] < STORY[0]["session"][:16]  # one that opencode made before


_STATUS = st.sampled_from(["pending", "running", "completed", "error"])


@st.composite
def _conversations(draw: st.DrawFn) -> tuple[list[Any], list[str]]:
    """Return entries of any lengths, and the ids of their calls."""
    counter = iter(range(0x1EE8D74F0001, 0x1EE8D74FF001))
    entries: list[Any] = [{"session": {"id": "ses_1", "title": "t", "time": {"created": 1}}}]
    calls = []
    for _ in range(draw(st.integers(1, 4))):
        parts: list[Any] = []
        for kind in draw(st.lists(st.sampled_from(["text", "tool", "step-start"]), max_size=5)):
            number = next(counter)
            part: dict[str, Any] = {"id": f"prt_{number:012x}{'A' * 14}", "type": kind}
            if kind == "text":
                part |= {"text": draw(st.text()), "time": {"start": 1, "end": 2}}
            if kind == "tool":
                calls.append(f"call_{number}")
                state = {"status": draw(_STATUS), "time": {"start": 1, "end": draw(st.integers())}}
                part |= {"callID": calls[-1], "tool": "bash", "state": state}
            parts.append(part)
        info = {"id": f"msg_{next(counter):012x}{'A' * 14}", "role": "assistant"}
        entries.append({"info": info, "parts": parts})
    return entries, calls


@given(_conversations(), st.data())
def test_a_cut_is_the_beginning_through_the_call_and_leaves_out_only_calls_without_a_result(
    made: tuple[list[Any], list[str]], data: st.DataObject
) -> None:
    entries, calls = made
    if not calls:
        return
    call = data.draw(st.sampled_from(calls))
    before = json.dumps(entries)

    cut = TRANSCRIPT.cut(
        Point(session="ses_1", moment=Moment.CALL, call_id=call, entries=entries), NOTHING
    )

    assert json.dumps(entries) == before
    *start, last = cut.entries
    assert start == entries[: len(start)]
    whole = entries[len(start)]
    assert last["info"]["id"] == whole["info"]["id"]
    kept = last["parts"]
    assert kept[-1]["type"] == "tool"
    assert call in [each.get("callID") for each in kept]
    through = whole["parts"][: whole["parts"].index(kept[-1]) + 1]
    left_out = [each for each in through if each not in kept]
    assert kept == [each for each in through if each not in left_out]
    assert all(each["state"]["status"] in ("pending", "running") for each in left_out)
    copy = copied(conversation_of(cut.entries), "ses_2", Path("/p"), 7)
    starts = [each[:16] for each in _ids(copy["messages"])]
    assert starts == [each[:16] for each in _ids(cut.entries[1:])]


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["info", "parts", "id", "type", "session", "state", "time", "callID"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.lists(_JSON, max_size=4), st.sampled_from(list(Moment)))
def test_any_entries_are_cut_copied_and_shown_or_refused(
    entries: list[Any], moment: Moment
) -> None:
    messages_in("custom", {"conversation": {"format": TRANSCRIPT.format, "entries": entries}})
    point = Point(session="s", moment=moment, call_id="c", prompt_id="p", entries=entries)
    try:
        cut = TRANSCRIPT.cut(point, NOTHING)
        copied(conversation_of(cut.entries), "ses_1", Path("/p"), 7)
    except TranscriptError:
        return


@given(_JSON)
def test_any_conversation_of_an_event_is_read(conversation: Any) -> None:
    try:
        TRANSCRIPT.read(replace(MAIN[0], conversation=conversation), JsonLines())
    except TranscriptError:
        return


def test_a_conversation_is_shown_as_messages() -> None:
    entries = TRANSCRIPT.cut(POINTS["edit none.txt (failed)"], NOTHING).entries
    shown = messages_in("custom", {"conversation": {"format": "opencode/1", "entries": entries}})

    assert [(each.role, each.text) for each in shown if each.text] == [
        ("user", "Make it"),
        ("assistant", "I begin."),
        ("tool", "Wrote file successfully."),
        ("tool", "(no output)"),
        ("assistant", "Both."),
        ("tool", "(no output)"),
        ("tool", "(no output)"),
        ("tool", "File /project/none.txt not found"),
    ]
    assert [call.name for each in shown for call in each.calls] == [
        *("write", "bash", "bash", "bash", "edit")
    ]


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """opencode's database, with the tables that are looked at."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("OPENCODE_DB", raising=False)
    file = tmp_path / "opencode" / "opencode.db"
    file.parent.mkdir()
    columns = "id, project_id, slug, directory, title, version, agent, model, permission, metadata"
    whole = MAIN[-1].conversation
    info = whole["info"]
    with sqlite3.connect(file) as made:
        made.execute(f"CREATE TABLE session ({columns}, time_created, time_updated, revert)")
        made.execute("CREATE TABLE message (id, session_id, time_created, data)")
        made.execute("CREATE TABLE part (id, message_id, session_id, data)")
        values = [info["id"], "global", "slug", "/project", info["title"], "1", "build", "{}", "[]"]
        times = list(info["time"].values())
        made.execute(
            f"INSERT INTO session VALUES ({','.join('?' * 13)})", [*values, None, *times, None]
        )
        for message in reversed(whole["messages"]):
            own = {**message["info"]}
            row = [own.pop("id"), own.pop("sessionID"), own["time"]["created"], json.dumps(own)]
            made.execute("INSERT INTO message VALUES (?, ?, ?, ?)", row)
            for part in reversed(message["parts"]):
                rest = {**part}
                row = [rest.pop(name) for name in ("id", "messageID", "sessionID")]
                made.execute("INSERT INTO part VALUES (?, ?, ?, ?)", [*row, json.dumps(rest)])
    made.close()
    return file


def test_what_opencode_has_now_is_read_from_its_database(database: Path) -> None:
    before = database.read_bytes()

    live = TRANSCRIPT.live(POINTS["you: Make it"])

    assert live is not None
    assert live[1:] == MAIN[-1].conversation["messages"]
    assert live[0]["session"]["title"] == "A title"
    assert database.read_bytes() == before


@pytest.mark.parametrize("session", ["ses_other", "--help", "../x", "ses_\0", ""])
def test_a_session_that_opencode_does_not_have_is_not_there(database: Path, session: str) -> None:
    assert TRANSCRIPT.live(Point(session=session, moment=Moment.END)) is None


def test_without_a_database_there_is_no_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))

    assert TRANSCRIPT.live(POINTS["you: Make it"]) is None


def test_a_database_that_is_not_as_known_is_refused(database: Path) -> None:
    with sqlite3.connect(database) as changed:
        changed.execute("DROP TABLE part")
    changed.close()

    with pytest.raises(TranscriptError, match="not as known"):
        TRANSCRIPT.live(POINTS["you: Make it"])


def program_that(tmp_path: Path, does: str) -> str:
    """Return a program that stands for opencode."""
    program = tmp_path / "my opencode"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    return str(program)


def test_opencode_itself_takes_the_conversation_in_within_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, project = tmp_path / "seen", tmp_path / "a project"
    project.mkdir()
    does = f'cp "$2" "{seen}"; pwd > "{seen}.pwd"; echo "$1 ses_new"'
    monkeypatch.setenv("HOLDFAST_OPENCODE", program_that(tmp_path, does))
    cut = TRANSCRIPT.cut(POINTS["write hello.txt"], NOTHING)

    assert TRANSCRIPT.write(cut, "ses_new", project) is None

    assert json.loads(seen.read_text())["info"]["id"] == "ses_new"
    assert Path(seen.with_suffix(".pwd").read_text().strip()) == project
    assert not list(project.iterdir())


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("echo no such thing >&2; exit 4", "exit code 4.*no such thing"),
        ("echo Imported session: ses_other", "exit code 0"),
        ("printf '\\033[31mred' >&2; exit 1", "exit code 1"),
    ],
)
def test_what_opencode_did_not_take_in_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, does: str, says: str
) -> None:
    monkeypatch.setenv("HOLDFAST_OPENCODE", program_that(tmp_path, does))

    with pytest.raises(TranscriptError, match=f"{says}.*--files") as raised:
        TRANSCRIPT.write(Cut(entries=[{"session": {}}]), "ses_new", tmp_path)
    assert "\033" not in str(raised.value)


def test_without_opencode_the_remedy_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("HOLDFAST_OPENCODE", raising=False)
    with pytest.raises(TranscriptError, match=r"on the PATH, or name it in HOLDFAST_OPENCODE"):
        TRANSCRIPT.write(Cut(entries=[{"session": {}}]), "ses_new", tmp_path)

    monkeypatch.setenv("HOLDFAST_OPENCODE", "/nowhere/opencode")
    with pytest.raises(TranscriptError, match="names '/nowhere/opencode'"):
        TRANSCRIPT.write(Cut(entries=[{"session": {}}]), "ses_new", tmp_path)
