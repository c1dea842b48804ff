"""Cuts a rollout of Codex at a point."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from holdfast.coding_agents.codex import rollout
from holdfast.coding_agents.codex.rollout import Record
from holdfast.coding_agents.told import Moment
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.errors import TranscriptError

_ENDS = ("task_complete", "turn_aborted")


def cut(point: Point, later: Iterator[Sequence[Any]]) -> Cut:
    """Return a conversation up to a point; ``later`` has it as it was known afterwards."""
    records = rollout.readable(point.entries)
    after = (rollout.readable(each) for each in later)
    note = None
    if point.moment is Moment.PROMPT:
        is_later = not records
        records = _before_prompt(point, records or _first(after), is_later)
    elif point.moment is Moment.CALL and point.call_id is not None:
        records, note = _after_call(point, point.call_id, records, after)
    elif point.moment in (Moment.END, Moment.SUBAGENT_END):
        records = _after_end(point, records, after)
    thread = rollout.thread_of(records)
    if (base := rollout.base_of(records)) is not None:
        raise TranscriptError(
            f"thread {thread} was forked by Codex from {base[0]} and has only what is new: the "
            "rollout of that one was not found"
        )
    notes = [each for each in (note, _of_text(point.entries)) if each is not None]
    return Cut(entries=list(records), note="; ".join(notes) or None)


def _of_text(entries: Sequence[Any]) -> str | None:
    lines = sum(isinstance(each, str) for each in entries)
    if not lines:
        return None
    return f"{lines} line{'s' * (lines > 1)} of the rollout that could not be read left out"


def _first(after: Iterator[list[Record]]) -> list[Record]:
    return next((each for each in after if each), [])


def _before_prompt(point: Point, records: list[Record], is_later: bool) -> list[Record]:
    """Return what was there before a turn; what a turn did before its next prompt stays.

    A hook is told of a prompt before it is written: what was read later has it, with the rest.
    """
    turn = [
        number
        for number, record in enumerate(records)
        if point.turn_id is not None and rollout.turn_of(record) == point.turn_id
    ]
    if not turn:
        if is_later:
            raise TranscriptError(f"the conversation does not have the turn {point.turn_id}")
        return records
    prompts = [each for each in turn if rollout.prompt_text(records[each]) == point.prompt]
    said = len(records)
    if prompts and (is_later or not any(map(_is_of_model, records[prompts[-1] :]))):
        said = prompts[-1]
    is_under_way = any(_is_said(record) for record in records[turn[0] : said])
    return records[: said if is_under_way else turn[0]]


def _is_said(record: Record) -> bool:
    """Return whether somebody has said or done something, of which a turn alone is no sign."""
    is_of_user = rollout.item_of(record).get("type") == "UserMessage"
    return is_of_user or rollout.event(record) == "user_message" or _is_of_model(record)


def _is_of_model(record: Record) -> bool:
    is_said = rollout.payload(record).get("role") == "assistant"
    return is_said or rollout.call_of(record) is not None


def _after_call(
    point: Point, call: str, records: list[Record], after: Iterator[list[Record]]
) -> tuple[list[Record], str | None]:
    """Return what was there when a call had ended: its output, and those of others that had, too.

    Codex writes outputs once all calls that were made together have ended.
    """
    if all(rollout.call_of(record) != call for record in records):
        return _through(call, after), None
    outputs = {rollout.output_of(record) for record in records}
    pending = {
        made: record
        for record in _last_turn(records)
        if (made := rollout.call_of(record)) is not None and made not in outputs
    }
    if call in pending:
        awaited = {call}
    else:
        # It went on in the background, and ended while another call waited for it.
        awaited = {made for made, record in pending.items() if _waits(record)}
    if not awaited:
        return records, None
    ended = {made for made in pending if rollout.completed_item(records, made) is not None}
    for more in after:
        found = [each for each in more if rollout.output_of(each) in awaited | ended]
        if any(rollout.output_of(each) in awaited for each in found):
            return [*records, *found], _of_the_rest(len(pending) - len(found))
    if call not in pending:
        return records, f"Codex has not written how {call} ended: it goes on as if it still ran"
    output = _as_told(point, call, pending[call])
    if output is None:
        return records, f"Codex has not written the output of {call}, and calls it aborted"
    note = f"Codex has not written the output of {call}: what it told its hook stands for it"
    return [*records, output], note


def _last_turn(records: list[Record]) -> list[Record]:
    """Return what was done since a turn began: what ended with an earlier one stays as it is."""
    starts = [n for n, record in enumerate(records) if rollout.event(record) == "task_started"]
    return records[starts[-1] if starts else 0 :]


def _of_the_rest(calls: int) -> str | None:
    if calls <= 0:
        return None
    had = "1 other call had" if calls == 1 else f"{calls} other calls had"
    return f"{had} not ended yet: Codex tells the model that it was aborted"


def _through(call: str, after: Iterator[list[Record]]) -> list[Record]:
    for records in after:
        for number, record in enumerate(records):
            if rollout.output_of(record) == call:
                return records[: number + 1]
    raise TranscriptError(f"the conversation does not have the call {call}")


def _waits(record: Record) -> bool:
    return rollout.payload(record).get("name") == "write_stdin"


def _as_told(point: Point, call: str, made: Record) -> Record | None:
    """Return the output of a call, of which only the hook was told."""
    kind = rollout.payload(made).get("type")
    if kind not in ("function_call", "custom_tool_call") or point.output is None:
        return None
    text = point.output if isinstance(point.output, str) else json.dumps(point.output)
    if point.tool == "Bash":
        code = point.error.get("exit_code") if isinstance(point.error, Mapping) else None
        text = f"Process exited with code {code or 0}\nOutput:\n{text}"
    output = {"type": f"{kind}_output", "call_id": call, "output": text}
    kept = {name: made[name] for name in ("timestamp", "ordinal") if name in made}
    return {**kept, "type": "response_item", "payload": output}


def _after_end(point: Point, records: list[Record], after: Iterator[list[Record]]) -> list[Record]:
    """Return what was there at the end of a turn, which is noted once the hook has been told."""
    if not records:
        records = _first(after)
        of_turn = [
            number
            for number, record in enumerate(records)
            if point.turn_id is not None and rollout.turn_of(record) == point.turn_id
        ]
        return records[: of_turn[-1] + 1] if of_turn else records
    if point.turn_id is None or _end_of(point.turn_id, records) is not None:
        return records
    ends = (_end_of(point.turn_id, more) for more in after)
    end = next((each for each in ends if each is not None), None)
    return records if end is None else [*records, end]


def _end_of(turn: str, records: list[Record]) -> Record | None:
    return next(
        (
            each
            for each in reversed(records)
            if rollout.event(each) in _ENDS and rollout.turn_of(each) == turn
        ),
        None,
    )
