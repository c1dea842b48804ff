"""Cuts a conversation of Claude Code at a point. Pure.

At a hook the line that tells of it is seldom written: it is found by its id, in what was kept then
or later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from holdfast.coding_agents.claude_code.lines import Lines, text_of
from holdfast.coding_agents.told import Moment
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError

_ENDS = (Moment.END, Moment.SUBAGENT_END)
_Found = tuple[int | None, int]
"""The last line that is kept, and the last that is looked at."""


def cut_at(point: Point, later: Iterator[Sequence[Any]]) -> Cut:
    """Return the entries up to a point; TranscriptError if it is not there or not as known."""
    known = Lines(point.entries)
    asked: Lines | None = None
    if point.moment in (Moment.PROMPT, Moment.BEFORE_CALL, Moment.CALL, *_ENDS):
        for lines in chain([known], map(Lines, later)):
            found = _find(lines, point, known)
            if found is not None:
                return Cut(entries=lines.up_to(*found))
            if point.call_id is not None and lines.call(point.call_id) is not None:
                asked = lines
    _check(point.entries)
    if point.moment in (Moment.BEFORE_CALL, Moment.CALL):
        return _cut_at_unwritten_call(point, asked)
    # Without the prompt before it, what the hook told of the end would answer another.
    said = known.said_last(known.last)
    is_owed = said is not None and known.entries[said]["type"] == "user"
    lines = Lines(point.entries, with_told=True) if point.moment in _ENDS and is_owed else known
    return Cut(entries=[] if lines.last is None else lines.up_to(lines.last, lines.last))


def _find(lines: Lines, point: Point, known: Lines) -> _Found | None:
    if point.moment is Moment.PROMPT:
        place = None if point.prompt_id is None else lines.prompt(point.prompt_id)
        return None if place is None else (lines.before(place), place - 1)
    if point.moment in _ENDS:
        return _find_end(lines, point, known)
    if point.call_id is None:
        return None
    find = lines.result if point.moment is Moment.CALL else lines.call
    place = find(point.call_id)
    return None if place is None else (place, place)


def _find_end(lines: Lines, point: Point, known: Lines) -> _Found | None:
    """Find what the model said last in the turn of a prompt."""
    asked = None if point.prompt_id is None else lines.prompt(point.prompt_id)
    if point.prompt_id is not None and asked is None:
        return None
    if lines is known:
        places = [lines.said_last(lines.last)]
    else:
        shared = [lines.place(each.get("uuid")) for each in known.entries]
        begun = max((each for each in shared if each is not None), default=-1)
        places = list(range(begun + 1, len(lines.entries)))
    for place in places:
        if place is None or (asked is not None and place < asked) or not lines.ends_turn(place):
            continue
        said = text_of(lines.entries[place])
        if point.last_message is None or _is_same(said, point.last_message):
            last = lines.last_of_answer(place)
            return last, last
    return None


def _is_same(text: str, told: str) -> bool:
    """Return whether a line says what was told: of several blocks each has a line."""
    said, whole = " ".join(text.split()), " ".join(told.split())
    return bool(said) and (said in whole or whole in said)


def _cut_at_unwritten_call(point: Point, asked: Lines | None) -> Cut:
    """Return what leads to a call whose result the program never wrote, with what the hook told."""
    if point.call_id is None:
        raise TranscriptError(f"the event told no id of its call of {point.tool or 'a tool'}")
    named = f"{point.tool or 'the call'} ({point.call_id})"
    place = None if asked is None else asked.call(point.call_id)
    if asked is None or place is None:
        raise TranscriptError(
            f"{named} is in none of the {len(point.entries)} lines that were kept of session "
            f"{point.session!r}, nor in later ones; {_remedy(point)}"
        )
    told = Lines(point.entries, with_told=True)
    at = told.result(point.call_id)
    if at is not None:
        result = {**told.entries[at], "parentUuid": asked.entries[place]["uuid"]}
        asked = Lines([*asked.entries, result], with_told=True)
        end = asked.result(point.call_id)
        if end is not None:
            note = f"Claude Code never wrote down the result of {named}: it is as the hook was told"
            return Cut(entries=asked.up_to(end, end), note=note)
    note = f"the result of {named} was never written: the conversation ends before that call"
    return Cut(entries=asked.up_to(place, place), note=note)


def _remedy(point: Point) -> str:
    where = point.transcript or "its transcript"
    return f"Claude Code may not have kept {where}"


def _check(entries: Sequence[Any]) -> None:
    """Refuse lines of a shape that is not known, with what they are."""
    if entries and Lines(entries, with_told=True).last is None:
        kinds = {_kind(each): None for each in entries}
        raise TranscriptError(
            f"of {len(entries)} lines none has a type and a uuid, as Claude Code 2 writes them; "
            f"found {', '.join(list(kinds)[:5])}"
        )


def _kind(entry: Any) -> str:
    if not isinstance(entry, dict):
        return f"{type(entry).__name__} {brief(entry, 60)}"
    return f"type {brief(entry.get('type'), 60)}"
