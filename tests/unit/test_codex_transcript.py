"""Rollouts of Codex, recorded with 0.169 and shortened: cut, and written as new threads."""

import json
import os
import stat
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.coding_agents.codex import rollout, rollout_files
from holdfast.coding_agents.codex.transcript import TRANSCRIPT
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.errors import TranscriptError

ROLLOUTS = Path(__file__).parent / "transcripts" / "codex"
NEW = "01a1ee99-0000-7000-8000-000000000001"

Records = list[dict[str, Any]]


def recorded(name: str) -> Records:
    """A rollout as Codex left it."""
    return [json.loads(line) for line in (ROLLOUTS / f"{name}.jsonl").read_text().splitlines()]


def items(records: Sequence[Any]) -> list[str]:
    """What a model would be sent, in short."""
    found = []
    for record in records:
        if record["type"] == "response_item":
            item = record["payload"]
            text = "".join(part["text"] for part in item.get("content", []))
            if item["type"] != "message":
                found.append(f"{item['type'].rpartition('_')[2]} {item['call_id']}")
            elif item["role"] != "developer" and not text.startswith("<environment"):
                found.append(f"{item['role']}: {text}")
    return found


def at(records: Records, **wanted: str) -> int:
    """The first record whose payload says something."""
    return next(
        number
        for number, record in enumerate(records)
        if all(record["payload"].get(name) == value for name, value in wanted.items())
    )


def ended(records: Records, call: str) -> int:
    """How many records there were when a hook was told that a call has ended."""
    return 1 + next(
        number for number, record in enumerate(records) if rollout.item_of(record).get("id") == call
    )


def cut(moment: Moment, entries: Sequence[Any], *later: Sequence[Any], **more: Any) -> Cut:
    point = Point(session="s", moment=moment, entries=entries, **more)
    return TRANSCRIPT.cut(point, iter(later))


def after_call(records: Records, call: str, **more: Any) -> Cut:
    return cut(Moment.CALL, records[: ended(records, call)], records, call_id=call, **more)


CALLS = recorded("calls")
TURNS = recorded("turns")
TURN_IDS = [
    record["payload"]["turn_id"] for record in TURNS if rollout.event(record) == "task_started"
]


# --- after a call -------------------------------------------------------------------------------


def test_a_call_is_cut_behind_its_output_which_is_written_after_the_hook() -> None:
    known = CALLS[: ended(CALLS, "call_003")]
    assert "output call_003" not in items(known)

    made = after_call(CALLS, "call_003")

    assert items(made.entries)[-2:] == ["call call_003", "output call_003"]
    assert made.entries[: len(known)] == known
    assert made.note is None


def test_of_calls_side_by_side_those_that_had_ended_have_their_outputs() -> None:
    first = after_call(CALLS, "call_007")
    last = after_call(CALLS, "call_006")

    assert items(first.entries)[-3:] == ["call call_006", "call call_007", "output call_007"]
    assert first.note is not None
    assert "1 other call had not ended" in first.note
    assert items(last.entries)[-2:] == ["output call_006", "output call_007"]
    assert last.note is None


def test_a_command_that_went_on_in_the_background_is_cut_behind_the_call_that_saw_its_end() -> None:
    made = after_call(TURNS, "call_001")

    assert items(made.entries)[-4:] == [
        *("call call_001", "output call_001"),
        *("call call_002", "output call_002"),
    ]


def test_the_first_that_has_the_output_is_asked_and_no_other() -> None:
    known = CALLS[: ended(CALLS, "call_003")]

    def later() -> Any:
        yield known
        yield CALLS[: at(CALLS, call_id="call_004") + 1]
        raise AssertionError("one too many was read")

    point = Point(session="s", moment=Moment.CALL, entries=known, call_id="call_003")

    assert items(TRANSCRIPT.cut(point, later()).entries)[-1] == "output call_003"


def test_an_output_that_codex_was_killed_before_writing_is_as_the_hook_was_told() -> None:
    known = CALLS[: ended(CALLS, "call_003")]

    made = cut(
        Moment.CALL,
        known,
        known,
        call_id="call_003",
        tool="Bash",
        output="bad\n",
        error={"exit_code": 3},
    )

    output = made.entries[-1]["payload"]
    assert output == {
        "type": "function_call_output",
        "call_id": "call_003",
        "output": "Process exited with code 3\nOutput:\nbad\n",
    }
    assert made.note is not None
    assert "call_003" in made.note


def test_a_patch_that_was_not_written_down_is_as_the_hook_was_told() -> None:
    known = CALLS[: ended(CALLS, "call_001")]

    made = cut(Moment.CALL, known, call_id="call_001", tool="apply_patch", output="Success.")

    assert made.entries[-1]["payload"]["type"] == "custom_tool_call_output"
    assert made.entries[-1]["payload"]["output"] == "Success."


def test_a_call_of_which_nothing_is_known_is_left_to_codex() -> None:
    known = CALLS[: ended(CALLS, "call_003")]

    made = cut(Moment.CALL, known, call_id="call_003")

    assert made.entries == known
    assert made.note is not None


def test_a_conversation_that_the_hook_could_not_read_is_cut_in_what_came_later() -> None:
    made = cut(Moment.CALL, [], CALLS, call_id="call_002")

    assert items(made.entries)[-1] == "output call_002"


def test_a_call_that_is_nowhere_is_refused() -> None:
    with pytest.raises(TranscriptError, match="does not have the call call_99"):
        cut(Moment.CALL, CALLS, CALLS, call_id="call_99")


# --- before a prompt ----------------------------------------------------------------------------


def told_of_prompt(turn: str) -> int:
    """How many records there were when a hook was told of the first prompt of a turn."""
    return next(
        number
        for number, record in enumerate(TURNS)
        if rollout.turn_of(record) == turn
        and rollout.prompt_text(record) is not None
        and not str(rollout.prompt_text(record)).startswith("<")
    )


def test_before_the_first_prompt_there_is_nothing_but_the_session() -> None:
    made = cut(Moment.PROMPT, TURNS[: told_of_prompt(TURN_IDS[0])], turn_id=TURN_IDS[0])

    assert [record["type"] for record in made.entries] == ["session_meta"]


def test_before_a_later_prompt_its_turn_has_not_begun() -> None:
    made = cut(
        Moment.PROMPT,
        TURNS[: told_of_prompt(TURN_IDS[1])],
        turn_id=TURN_IDS[1],
        prompt="do yield",
    )

    assert items(made.entries) == ["user: first", "assistant: ok first"]
    assert rollout.event(made.entries[-1]) == "task_complete"


@pytest.mark.parametrize("is_known", [True, False])
def test_a_prompt_in_the_middle_of_a_turn_leaves_what_the_turn_has_done(is_known: bool) -> None:
    began, said = at(CALLS, type="task_started"), at(CALLS, call_id="call_002")
    turn = CALLS[began]["payload"]["turn_id"]
    steer = {
        "type": "response_item",
        "payload": {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_text", "text": "Make it"}],  # as the turn began, too
            "internal_chat_message_metadata_passthrough": {"turn_id": turn},
        },
    }
    all_of_it = [*CALLS[:said], steer, *CALLS[said:]]

    made = cut(
        Moment.PROMPT,
        CALLS[:said] if is_known else [],
        all_of_it,
        turn_id=turn,
        prompt="Make it",
    )

    assert items(made.entries) == ["user: Make it", "call call_001", "output call_001"]


def test_a_prompt_that_is_written_already_is_not_in_the_cut() -> None:
    there = told_of_prompt(TURN_IDS[1]) + 2

    made = cut(Moment.PROMPT, TURNS[:there], turn_id=TURN_IDS[1], prompt="do yield")

    assert items(made.entries) == ["user: first", "assistant: ok first"]


def test_a_turn_that_is_nowhere_is_refused() -> None:
    with pytest.raises(TranscriptError, match="does not have the turn t9"):
        cut(Moment.PROMPT, [], TURNS, turn_id="t9", prompt="?")


# --- at an end ----------------------------------------------------------------------------------


def test_an_end_is_behind_the_last_message_and_closes_the_turn() -> None:
    end = at(TURNS, type="task_complete")

    made = cut(Moment.END, TURNS[:end], TURNS, turn_id=TURN_IDS[0])

    assert made.entries == TURNS[: end + 1]


def test_an_interruption_is_kept_with_what_codex_says_of_it() -> None:
    end = at(TURNS, type="turn_aborted")

    made = cut(Moment.END, TURNS[:end], TURNS, turn_id=TURN_IDS[2])

    assert made.entries == TURNS[: end + 1]
    assert items(made.entries)[-1].startswith("user: <turn_aborted>")


def test_an_end_that_the_hook_could_not_read_is_found_by_its_turn() -> None:
    made = cut(Moment.END, [], TURNS, turn_id=TURN_IDS[0])

    assert items(made.entries) == ["user: first", "assistant: ok first"]


def test_a_compacted_conversation_is_kept_with_what_stands_for_its_beginning() -> None:
    made = cut(Moment.END, TURNS, turn_id=TURN_IDS[-1])

    assert made.entries == TURNS
    assert [record["type"] for record in made.entries].count("compacted") == 1


# --- what is not as known -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "found"),
    [
        ([], "found nothing"),
        ([{"type": "event_msg", "payload": {}}], "found 'event_msg'"),
        ([{"type": "session_meta", "payload": {}}], "found 'session_meta'"),
        ([{"type": "session_meta", "payload": {"id": 7}}], "found 'session_meta'"),
        ([{"kind": "new"}], "record 1 of the rollout is not as Codex writes it"),
        ([7], "record 1 of the rollout is not as Codex writes it"),
        ([*CALLS[:3], None], "record 4 of the rollout"),
    ],
)
def test_what_is_no_rollout_is_refused_with_what_was_found(entries: Any, found: str) -> None:
    with pytest.raises(TranscriptError, match=found):
        cut(Moment.END, entries)


def test_a_line_that_was_torn_when_codex_was_killed_is_passed_over() -> None:
    torn = '{"timestamp":"2026-11-18T11:38:42.411Z","ordi'

    made = cut(Moment.END, [*CALLS[:5], torn, *CALLS[5:]])

    assert made.entries == CALLS
    assert made.note == "1 line of the rollout that could not be read left out"


_ID: st.SearchStrategy[Any] = st.sampled_from(["call_1", "call_2", "t1", "t2", "", None, 7, [], {}])
_ITEM = st.fixed_dictionaries(
    {
        "type": st.sampled_from(
            [
                *("function_call", "function_call_output", "custom_tool_call", "message", "other"),
                *("custom_tool_call_output", "item_completed", "task_started", "task_complete", 7),
            ]
        )
    },
    optional={
        "call_id": _ID,
        "turn_id": _ID,
        "id": _ID,
        "name": st.sampled_from(["write_stdin", "exec_command", 5]),
        "role": st.sampled_from(["user", "assistant", None]),
        "content": st.lists(st.fixed_dictionaries({"text": _ID}), max_size=2) | _ID,
        "item": st.fixed_dictionaries({}, optional={"id": _ID, "type": _ID}) | _ID,
        "internal_chat_message_metadata_passthrough": _ID,
        "history_base": _ID,
    },
)
_RECORD = st.fixed_dictionaries(
    {"type": st.sampled_from(["response_item", "event_msg", "turn_context", "new"])},
    optional={"payload": _ITEM | _ID, "ordinal": st.integers(0, 9) | _ID},
)
_BEGIN = {"type": "session_meta", "ordinal": 0, "payload": {"id": "t0", "cwd": "/project"}}
_ROLLOUT = st.lists(_RECORD, max_size=12).map(lambda rest: [_BEGIN, *rest])


@given(
    whole=_ROLLOUT,
    known=st.integers(0, 13),
    moment=st.sampled_from(list(Moment)),
    call=st.sampled_from(["call_1", "call_2", None]),
    turn=st.sampled_from(["t1", "t2", None]),
)
def test_a_cut_is_of_what_was_known_and_of_outputs_that_came_later(
    whole: Records, known: int, moment: Moment, call: str | None, turn: str | None
) -> None:
    entries = whole[:known]
    try:
        made = cut(moment, entries, whole, call_id=call, turn_id=turn, output="told")
    except TranscriptError:
        return

    assert made.entries[0] == _BEGIN
    shared = min(len(made.entries), len(entries))
    assert made.entries[:shared] == entries[:shared]
    if entries:
        added = made.entries[len(entries) :]
        assert all(rollout.output_of(each) or rollout.event(each) for each in added)
    if moment is Moment.CALL and call is not None and entries:
        outputs = [rollout.output_of(each) for each in made.entries]
        assert call in outputs or made.note is not None
    assert json.loads(json.dumps(made.entries)) == made.entries


# --- written as a new thread --------------------------------------------------------------------


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    return tmp_path / "codex"


def written(records: Sequence[Any], folder: str = "/project") -> tuple[Path, Records]:
    path = TRANSCRIPT.write(Cut(entries=list(records)), NEW, Path(folder))
    assert path is not None
    return path, [json.loads(line) for line in path.read_text().splitlines()]


def test_a_thread_is_written_where_codex_looks_for_it_for_its_owner_alone(home: Path) -> None:
    path, made = written(CALLS)

    day = path.parent.relative_to(home / "sessions").as_posix()
    assert path.name.startswith(f"rollout-{day.replace('/', '-')}T")
    assert path.name.endswith(f"-{NEW}.jsonl")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == [path.name]
    assert len(made) == len(CALLS)
    assert TRANSCRIPT.resume(NEW, Cut(entries=made)) == ["codex", "resume", NEW]


def test_nothing_is_left_of_the_old_id_but_what_was_said(home: Path) -> None:
    old = CALLS[0]["payload"]["id"]
    said = json.loads(json.dumps(CALLS[7]))
    said["payload"]["content"][0]["text"] = old
    said["payload"]["id"] = old
    command = {
        "type": "event_msg",
        "payload": {
            "type": "item_completed",
            "thread_id": old,
            "item": {"id": old, "arguments": {"session_id": old}, "text": old},
        },
    }

    _, made = written([*CALLS, said, command])

    assert all(old not in json.dumps(record) for record in made[:-2])
    assert made[-2]["payload"] == said["payload"]
    assert made[-1]["payload"]["thread_id"] == NEW
    assert made[-1]["payload"]["item"] == {"id": NEW, "arguments": {"session_id": old}, "text": old}


def test_items_of_the_model_and_fields_that_are_not_known_stay_as_they_are(home: Path) -> None:
    new = {"type": "hologram", "payload": {"of": ["a", {"thread": 1}]}, "more": True}

    _, made = written([*CALLS, new])

    before = [record["payload"] for record in CALLS if record["type"] == "response_item"]
    after = [record["payload"] for record in made if record["type"] == "response_item"]
    assert after == before
    assert made[-1] == new


def test_records_are_numbered_without_gaps(home: Path) -> None:
    _, made = written(after_call(CALLS, "call_007").entries)

    assert [record["ordinal"] for record in made] == list(range(len(made)))


def test_a_thread_moves_with_its_project(home: Path) -> None:
    _, made = written(CALLS, "/elsewhere")

    assert made[0]["payload"]["cwd"] == "/elsewhere"
    assert made[0]["payload"]["runtime_workspace_roots"] == ["/elsewhere"]
    contexts = [record for record in made if record["type"] == "turn_context"]
    assert {record["payload"]["cwd"] for record in contexts} == {"/elsewhere"}


def test_what_a_subagent_has_done_can_be_gone_on_with_by_a_user(home: Path) -> None:
    _, made = written(recorded("subagent"))

    meta = made[0]["payload"]
    assert (meta["id"], meta["session_id"]) == (NEW, NEW)
    assert (meta["source"], meta["thread_source"]) == ("cli", "user")
    assert "parent_thread_id" not in meta


def test_a_session_that_is_there_is_never_written_over(home: Path) -> None:
    now = datetime(2026, 11, 18, 12, 0, 0)
    path = rollout_files.write(CALLS, NEW, now)
    path.write_text("mine")

    with pytest.raises(TranscriptError, match="is there already"):
        rollout_files.write(CALLS, NEW, now)

    assert path.read_text() == "mine"
    assert os.listdir(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["", "..", "../../x", "a\0b", NEW.upper(), NEW + "\n", "*"])
def test_an_id_that_is_none_becomes_no_path(home: Path, name: str) -> None:
    with pytest.raises(TranscriptError, match="Codex names its sessions by UUIDs"):
        TRANSCRIPT.write(Cut(entries=CALLS), name, Path("/project"))

    assert not home.exists()


def test_half_a_character_is_written_too(home: Path) -> None:
    odd = {"type": "response_item", "payload": {"type": "message", "text": "\ud83d"}}

    _, made = written([CALLS[0], odd])

    assert made[1]["payload"]["text"] == "\ud83d"


def test_where_nothing_is_known_codex_begins_anew() -> None:
    nothing = Cut(entries=[])

    assert TRANSCRIPT.write(nothing, NEW, Path("/project")) is None
    assert TRANSCRIPT.resume(NEW, nothing) == ["codex"]


def test_ids_tell_their_time_and_are_never_the_same() -> None:
    made = [TRANSCRIPT.new_id() for _ in range(100)]

    assert sorted(set(made)) == made


# --- threads that Codex forked ------------------------------------------------------------------


def place(home: Path, name: str, records: Records | None = None) -> Path:
    """Put a rollout where Codex keeps it."""
    records = recorded(name) if records is None else records
    folder = home / "sessions/2026/11/18"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-2026-11-18T11-00-00-{records[0]['payload']['id']}.jsonl"
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    return path


def read(path: Path) -> list[Any] | None:
    end = Told(program="codex", session="s", event="Stop", moment=Moment.END, transcript=str(path))
    return TRANSCRIPT.read(end, JsonLines())


def test_a_fork_is_read_from_the_beginning_that_it_shares(home: Path) -> None:
    place(home, "turns")

    entries = read(place(home, "fork"))

    assert entries is not None
    made = cut(Moment.END, entries)
    assert items(made.entries) == [
        *items(TURNS),
        "user: in fork",
        "assistant: ok in fork",
    ]
    assert made.entries[0]["payload"]["id"] == recorded("fork")[0]["payload"]["id"]
    _, again = written(made.entries)
    assert "history_base" not in again[0]["payload"]
    assert [record["ordinal"] for record in again] == list(range(len(again)))


def test_a_part_is_found_behind_the_thread_that_it_is_of(home: Path) -> None:
    part = "01a1ee83-5000-7000-8000-000000000002"
    whole = place(home, "turns")
    whole.rename(whole.with_name(whole.name.replace(".jsonl", f"_{part}.jsonl")))
    fork = recorded("fork")
    fork[0]["payload"]["history_base"]["thread_id"] = part

    entries = read(place(home, "fork", fork))

    assert items(cut(Moment.END, entries or []).entries)[: len(items(TURNS))] == items(TURNS)


def test_a_fork_does_not_share_what_came_after_it(home: Path) -> None:
    later = {"type": "event_msg", "ordinal": 64, "payload": {"type": "of the other"}}
    place(home, "turns", [*TURNS, later])

    assert later not in (read(place(home, "fork")) or [])


def test_a_fork_whose_beginning_is_gone_is_refused_by_name(home: Path) -> None:
    entries = read(place(home, "fork"))

    assert entries == recorded("fork")
    with pytest.raises(TranscriptError, match=f"forked by Codex from {TURNS[0]['payload']['id']}"):
        cut(Moment.END, entries)


@pytest.mark.parametrize(
    "base",
    [
        {"thread_id": "../../../../etc/passwd", "end_ordinal_exclusive": 3},
        {"thread_id": "*", "end_ordinal_exclusive": 3},
        {"thread_id": "ffffffff-ffff-7fff-ffff-ffffffffffff", "end_ordinal_exclusive": 3},
        {"thread_id": 7},
        {},
    ],
)
def test_a_beginning_that_cannot_be_is_not_looked_for(home: Path, base: Any) -> None:
    fork = recorded("fork")
    fork[0]["payload"]["history_base"] = base

    entries = read(place(home, "fork", fork))

    assert entries == fork
    with pytest.raises(TranscriptError):
        cut(Moment.END, entries)


def test_a_fork_of_itself_ends(home: Path) -> None:
    fork = recorded("fork")
    fork[0]["payload"]["history_base"]["thread_id"] = fork[0]["payload"]["id"]
    fork_id = fork[0]["payload"]["id"]

    with pytest.raises(TranscriptError, match=fork_id):
        cut(Moment.END, read(place(home, "fork", fork)) or [])


def test_a_rollout_that_is_gone_has_no_entries(tmp_path: Path) -> None:
    gone = Point(session="s", moment=Moment.END, transcript=str(tmp_path / "gone.jsonl"))

    assert TRANSCRIPT.live(gone) is None
    assert TRANSCRIPT.live(Point(session="s", moment=Moment.END)) is None
