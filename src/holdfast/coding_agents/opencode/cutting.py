"""Cuts a conversation of opencode at a point, without touching anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from holdfast.coding_agents.opencode.entries import Conversation, Message, Part, conversation_of
from holdfast.coding_agents.told import Moment
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.short_repr import brief
from holdfast.errors import TranscriptError


def cut(point: Point, later: Iterator[Sequence[Any]]) -> Cut:
    """Return the entries up to a point."""
    own = conversation_of(point.entries)
    known = chain([own] if point.entries else [], map(conversation_of, later))
    if point.moment is Moment.PROMPT:
        return Cut(entries=_before_prompt(point, known).entries)
    if point.moment is Moment.CALL:
        return _after_call(point, known)
    last = next(known, None)
    if last is None:
        raise _not_kept(point)
    return Cut(entries=last.entries)


def _before_prompt(point: Point, known: Iterator[Conversation]) -> Conversation:
    for found in known:
        ids = [each["info"]["id"] for each in found.messages]
        if point.prompt_id in ids:
            return Conversation(found.session, found.messages[: ids.index(point.prompt_id)])
        if point.entries:  # it was told before the prompt was written
            return found
    raise _not_kept(point)


def _after_call(point: Point, known: Iterator[Conversation]) -> Cut:
    """Return the conversation through the result of a call.

    Of calls that ran beside it those stay that had their results by then.
    """
    found: Conversation | None = None
    session: Mapping[str, Any] | None = None
    at = 0
    parts: list[Part] = []
    kept: list[Part] = []
    for number, each in enumerate(known):
        session = session or each.session
        place = _place(each.messages, point)
        if place is None:
            continue
        message = each.messages[place]
        if found is None:
            found, at, parts = each, place, list(message["parts"])
            if number > 0 or not point.entries:
                parts = _as_they_were(parts, point.call_id)
        elif message["info"]["id"] == found.messages[at]["info"]["id"]:
            parts = _with_what_was_unfinished(parts, message["parts"], point.call_id)
        kept = _through(parts, point.call_id)
        if all(map(_is_finished, kept)):
            break
    if found is None:
        raise _not_kept(point)
    call = next(each for each in kept if _is_call(each, point.call_id))
    last = {"info": _ended(found.messages[at]["info"], call), "parts": kept}
    note = None
    if not _is_finished(call):
        note = (
            f"the result of {call.get('tool')} was never written: opencode tells the model that "
            "the call was interrupted"
        )
    return Cut(entries=Conversation(session, [*found.messages[:at], last]).entries, note=note)


def _place(messages: Sequence[Message], point: Point) -> int | None:
    """Return which message holds the call: some models give those of every turn the same ids."""
    for at in reversed(range(len(messages))):
        is_turn = point.turn_id in (None, messages[at]["info"]["id"])
        if is_turn and any(_is_call(part, point.call_id) for part in messages[at]["parts"]):
            return at
    return None


def _is_call(part: Part, call_id: str | None) -> bool:
    # Of a command that runs a subagent, opencode tells the id of the part as that of the call.
    return part.get("type") == "tool" and call_id in (part.get("callID"), part["id"])


def _as_they_were(parts: Sequence[Part], call_id: str | None) -> list[Part]:
    """Return parts that were looked at later, without the calls that ended after one."""
    end = next(_end(each) for each in parts if _is_call(each, call_id))
    return [each for each in parts if not _ended_after(each, end) or _is_call(each, call_id)]


def _ended_after(part: Part, end: float | None) -> bool:
    own = _end(part)
    return part.get("type") == "tool" and end is not None and own is not None and own > end


def _through(parts: Sequence[Part], call_id: str | None) -> list[Part]:
    """Return the parts through the last call that has its result, or is the one looked for."""
    stays = [
        _is_call(each, call_id) or each.get("type") != "tool" or _is_finished(each)
        for each in parts
    ]
    last = max(at for at, each in enumerate(parts) if stays[at] and each.get("type") == "tool")
    return [each for at, each in enumerate(parts[: last + 1]) if stays[at]]


def _with_what_was_unfinished(
    parts: Sequence[Part], later: Sequence[Part], call_id: str | None
) -> list[Part]:
    """Return parts with the ends of texts, and the result of the call, that came later."""
    whole = {each["id"]: each for each in later if _is_finished(each)}
    return [
        whole.get(each["id"], each)
        if not _is_finished(each) and (each.get("type") != "tool" or _is_call(each, call_id))
        else each
        for each in parts
    ]


def _is_finished(part: Part) -> bool:
    if part.get("type") == "tool":
        return _state(part).get("status") in ("completed", "error")
    if part.get("type") in ("text", "reasoning"):
        return _end(part) is not None
    return True


def _state(part: Part) -> Mapping[str, Any]:
    found = part.get("state")
    return found if isinstance(found, Mapping) else {}


def _end(part: Part) -> float | None:
    time = (_state(part) if part.get("type") == "tool" else part).get("time")
    found = time.get("end") if isinstance(time, Mapping) else None
    return found if isinstance(found, (int, float)) else None


def _ended(info: Mapping[str, Any], call: Part) -> dict[str, Any]:
    """Return a message as opencode has it once its calls have ended."""
    time = info.get("time")
    time = dict(time) if isinstance(time, Mapping) else {}
    if (end := _end(call)) is not None:
        time.setdefault("completed", end)
    kept = {name: value for name, value in info.items() if name != "error"}
    return {**kept, "time": time, "finish": "tool-calls"}


def _not_kept(point: Point) -> TranscriptError:
    what = {
        Moment.PROMPT: f"the prompt {brief(point.prompt_id)}",
        Moment.CALL: f"the call {brief(point.call_id)}",
    }.get(point.moment, "the conversation")
    return TranscriptError(
        f"{what} of session {brief(point.session)} is neither in what was recorded of it nor in "
        "opencode's database; --files puts the files back alone"
    )
