"""A conversation of Claude Code is cut at any point so that the program can go on from there."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.claude_code.transcript import TRANSCRIPT
from holdfast.coding_agents.told import Moment
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.frameworks.claude_entries import results_in
from holdfast.errors import TranscriptError
from tests.unit.claude_code_transcripts import (
    Entry,
    assert_whole,
    calls_of,
    recorded,
    transcripts,
)

RECORDED = (
    *("side_by_side-2.1.197", "side_by_side-2.1.327"),
    *("compacted-2.1.197", "compacted-2.1.327", "background-2.1.327"),
)


def cut(
    moment: Moment, entries: Sequence[Any], later: Sequence[Sequence[Any]] = (), **more: Any
) -> Cut:
    return TRANSCRIPT.cut(
        Point(session="s", moment=moment, entries=entries, tool="Bash", **more), iter(later)
    )


def prompts_of(entries: Sequence[Entry]) -> list[str]:
    found = [each.get("promptId") for each in entries if each["type"] == "user"]
    return list(dict.fromkeys(each for each in found if each))


# As the program wrote them


@pytest.mark.parametrize("name", RECORDED)
def test_every_call_that_was_recorded_can_be_gone_back_to(name: str) -> None:
    entries = recorded(name)
    ended: set[str] = set()

    for call_id in calls_of(entries):
        found = cut(Moment.CALL, [], [entries], call_id=call_id)

        ended.add(call_id)
        assert_whole(found.entries)
        assert results_in(found.entries[-1]) == [call_id]
        assert set(calls_of(found.entries)) == ended
        assert found.note is None


@pytest.mark.parametrize("version", ["2.1.197", "2.1.327"])
def test_calls_that_had_not_ended_are_not_told_of(version: str) -> None:
    entries = recorded(f"side_by_side-{version}")
    slow, quick = calls_of(entries)[-1], calls_of(entries)[0]

    found = cut(Moment.CALL, entries, call_id=quick).entries

    assert calls_of(found) == [quick]
    assert slow not in str(found)


@pytest.mark.parametrize("name", RECORDED)
def test_a_prompt_is_gone_back_to_before_it_was_said(name: str) -> None:
    entries = recorded(name)

    for prompt_id in prompts_of(entries):
        found = cut(Moment.PROMPT, [], [entries], prompt_id=prompt_id).entries

        assert_whole(found)
        assert prompt_id not in {each.get("promptId") for each in found}


@pytest.mark.parametrize("name", RECORDED)
def test_before_the_first_prompt_nothing_was_said(name: str) -> None:
    entries = recorded(name)

    assert cut(Moment.PROMPT, [], [entries], prompt_id=prompts_of(entries)[0]).is_empty
    assert cut(Moment.PROMPT, [], prompt_id="never written").is_empty


@pytest.mark.parametrize("version", ["2.1.197", "2.1.327"])
def test_what_stands_before_a_compaction_stays_for_the_program_to_take_from(version: str) -> None:
    entries = recorded(f"compacted-{version}")
    boundary = next(each for each in entries if each.get("subtype") == "compact_boundary")
    preserved = boundary["compactMetadata"]["preservedSegment"]
    before, after = calls_of(entries)

    found = {each.get("uuid") for each in cut(Moment.CALL, entries, call_id=after).entries}
    assert {boundary["uuid"], *preserved.values()} <= found

    found = {each.get("uuid") for each in cut(Moment.CALL, entries, call_id=before).entries}
    assert boundary["uuid"] not in found


def test_what_the_program_says_when_work_in_the_background_ends_is_a_prompt() -> None:
    entries = recorded("background-2.1.327")
    notice = prompts_of(entries)[1]

    found = cut(Moment.PROMPT, [], [entries], prompt_id=notice).entries

    assert "task-notification" not in str(found)
    assert "Done." in str(found[-2:])


def test_lines_of_the_moment_are_left_out_and_unknown_ones_stay() -> None:
    entries = recorded("side_by_side-2.1.327")
    entries.insert(2, {"type": "content-replacement", "sessionId": "s", "replacements": []})

    found = cut(Moment.CALL, entries, call_id=calls_of(entries)[0]).entries

    kinds = {each["type"] for each in found}
    assert kinds == {"user", "assistant", "attachment", "content-replacement"}


def test_what_the_user_took_back_in_the_program_itself_is_not_told_of() -> None:
    first, taken = _turn(0, "All right.", None), _turn(1, "Wrong.", "a0")
    again = _turn(2, "Better.", "a0")
    entries = [*first, *taken, *again]

    end = cut(Moment.END, entries, prompt_id="p2", last_message="Better.")
    begin = cut(Moment.PROMPT, [*first, *taken], [entries], prompt_id="p2")
    before = cut(Moment.END, entries[:4], [entries], prompt_id="p1", last_message="Wrong.")

    assert end.entries == [*first, *again]
    assert begin.entries == first
    assert before.entries == [*first, *taken]


# What was not written yet


def test_a_result_that_was_not_written_yet_is_found_in_what_was_kept_later() -> None:
    entries = recorded("side_by_side-2.1.197")
    call_id = calls_of(entries)[2]
    place = next(i for i, each in enumerate(entries) if call_id in results_in(each))

    early = cut(Moment.CALL, entries[:place], [entries[:place], entries], call_id=call_id)

    assert early == cut(Moment.CALL, entries, call_id=call_id)


def test_a_result_that_was_never_written_is_said_to_be_missing() -> None:
    entries = recorded("side_by_side-2.1.197")
    call_id = calls_of(entries)[0]
    place = next(i for i, each in enumerate(entries) if call_id in results_in(each))

    found = cut(Moment.CALL, entries[:place], call_id=call_id)

    assert_whole(found.entries)
    assert call_id not in calls_of(found.entries)
    assert found.note == (
        f"the result of Bash ({call_id}) was never written: the conversation ends before that call"
    )


def test_a_call_that_is_nowhere_is_refused_with_its_id() -> None:
    with pytest.raises(TranscriptError, match=r"toolu_none.* is in none of the 20 lines"):
        cut(Moment.CALL, recorded("side_by_side-2.1.197"), call_id="toolu_none")
    with pytest.raises(TranscriptError, match="told no id of its call of Bash"):
        cut(Moment.CALL, recorded("side_by_side-2.1.197"))


def test_the_last_message_is_found_where_the_same_words_end_every_turn() -> None:
    first = _turn(0, "All right.", None)
    second = _turn(1, "All right.", first[-1]["uuid"])
    told = {"prompt_id": "p1", "last_message": "All right."}

    late = cut(Moment.END, first, [first, [*first, *second]], **told)

    assert late.entries == [*first, *second]


def test_an_end_that_was_never_written_is_what_was_known_then() -> None:
    first = _turn(0, "All right.", None)

    found = cut(Moment.END, first[:1], prompt_id="p0", last_message="All right.")

    assert found.entries == first[:1]


def test_an_answer_in_several_blocks_is_kept_whole() -> None:
    prompt, first = _turn(0, "All right.", None)
    second = {**first, "uuid": "b0", "parentUuid": "a0"}
    second["message"] = {**first["message"], "content": [{"type": "text", "text": "And done."}]}
    entries = [prompt, first, second]

    for said in ("And done.", "All right.\n\nAnd done.", "All right."):
        found = cut(Moment.END, [prompt], [entries], prompt_id="p0", last_message=said)
        assert found.entries == entries


def _turn(number: int, end: str, before: str | None) -> list[Entry]:
    prompt: Entry = {
        "type": "user",
        "uuid": f"u{number}",
        "parentUuid": before,
        "promptId": f"p{number}",
    }
    prompt["message"] = {"role": "user", "content": "Go on."}
    said = {"id": f"m{number}", "role": "assistant", "content": [{"type": "text", "text": end}]}
    answer = {"type": "assistant", "uuid": f"a{number}", "parentUuid": f"u{number}"}
    return [prompt, {**answer, "message": said}]


# Made up


@given(transcripts(), st.data())
def test_any_call_is_cut_the_same_whenever_it_is_looked_for(
    entries: list[Entry], data: st.DataObject
) -> None:
    calls = calls_of(entries)
    known = entries[: data.draw(st.integers(0, len(entries)))]
    for call_id in calls:
        found = cut(Moment.CALL, known, [entries], call_id=call_id)

        assert_whole(found.entries)
        assert results_in(found.entries[-1]) == [call_id]
        assert found == cut(Moment.CALL, entries, call_id=call_id)
        assert found == cut(Moment.CALL, found.entries, call_id=call_id)


@given(transcripts())
def test_every_turn_can_be_gone_back_to_at_its_begin_and_at_its_end(entries: list[Entry]) -> None:
    before: list[Entry] = []
    for number, prompt_id in enumerate(prompts_of(entries)):
        begin = cut(Moment.PROMPT, before, [entries], prompt_id=prompt_id)
        told = {"prompt_id": prompt_id, "last_message": f"Done {number}."}
        end = cut(Moment.END, before, [entries], **told)

        assert_whole(begin.entries)
        assert_whole(end.entries)
        assert begin.is_empty == (number == 0)
        assert end.entries[-1]["message"]["content"][0]["text"] == f"Done {number}."
        before = end.entries


@given(transcripts(), st.data())
def test_a_transcript_with_lines_missing_is_cut_so_that_it_is_whole(
    entries: list[Entry], data: st.DataObject
) -> None:
    gone = data.draw(st.sets(st.integers(0, len(entries) - 1), max_size=5))
    left = [each for i, each in enumerate(entries) if i not in gone]
    for call_id in calls_of(left):
        try:
            found = cut(Moment.CALL, left, call_id=call_id)
        except TranscriptError:
            continue
        if not any(each.get("subtype") == "compact_boundary" for each in entries):
            assert_whole(found.entries)


# Hostile

_ODD: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "u1", "u2", "c1", "c2", 0, [], {}, ["u1"], {"id": "m1"}, True, "\ud800", "\x00"]
)
_KINDS: list[Any] = [
    "user",
    "assistant",
    "attachment",
    "system",
    "summary",
    "progress",
    None,
    [],
    7,
]
_BLOCK: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(["tool_use", "tool_result", "text", 3, None])},
    optional={"id": _ODD, "tool_use_id": _ODD, "content": _ODD, "text": _ODD, "input": _ODD},
)
_ENTRY: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"type": st.sampled_from(_KINDS)},
    optional={
        "uuid": _ODD,
        "parentUuid": _ODD,
        "isSidechain": _ODD,
        "promptId": _ODD,
        "subtype": st.sampled_from(["compact_boundary", None, []]),
        "toldByHook": _ODD,
        "message": _ODD
        | st.fixed_dictionaries({"content": _ODD | st.lists(_BLOCK)}, optional={"id": _ODD}),
    },
)
_LINES = st.lists(_ENTRY | _ODD, max_size=8)


@given(st.sampled_from(Moment), _LINES, st.lists(_LINES, max_size=2), st.sampled_from(["u1", "c1"]))
def test_lines_of_any_shape_are_cut_or_refused(
    moment: Moment, entries: list[Any], later: list[list[Any]], own: str
) -> None:
    try:
        found = cut(moment, entries, later, call_id=own, prompt_id=own, last_message="c1")
    except TranscriptError:
        return
    assert all(isinstance(each, dict) and "toldByHook" not in each for each in found.entries)


def test_lines_that_are_not_as_known_are_refused_with_what_they_are() -> None:
    with pytest.raises(
        TranscriptError, match=r"of 2 lines none has a type and a uuid.*type 'turn'"
    ):
        cut(Moment.CALL, [{"type": "turn", "id": 1}, "text"], call_id="c")


def test_lines_that_follow_each_other_in_a_circle_come_to_an_end() -> None:
    first, second = _turn(0, "All right.", "a0")
    found = cut(Moment.OTHER, [first, second]).entries

    assert [each["uuid"] for each in found] == ["u0", "a0"]


def test_a_long_conversation_is_cut_in_no_time_that_grows_faster() -> None:
    entries: list[Entry] = []
    for number in range(5_000):
        entries += _turn(number, "All right.", f"gone{number}" if number % 2 else f"a{number - 1}")

    found = cut(Moment.PROMPT, [], [entries], prompt_id="p4999").entries

    assert len(found) == 2 * 4_999
