"""Where in the conversation a point is that an agent asked for: behind the call that asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.cli.mcp.caller import Caller
from holdfast.coding_agents import programs
from holdfast.coding_agents.json_lines import JsonLines, position
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Point, Transcript
from holdfast.errors import TranscriptError

EVENT = "Checkpoint"
"""The event of points that an agent asked for."""
_OF_ALL_STEPS = ("program", "transcript", "conversation", "cwd")


def place_of(
    before: Any, session_id: str, caller: Caller, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the state of a point, from that of the step before it.

    Where nothing tells which call asks for it, its place is that of the step before.
    """
    program = before.get("program") if isinstance(before, Mapping) else None
    if program not in programs.NAMES:
        return {}
    own = f"{programs.program(program).own_tools[0]}checkpoint"
    where = before.get("transcript")
    path = where.get("path") if isinstance(where, Mapping) else None
    told = Told(
        program=program,
        session=session_id,
        event=EVENT,
        moment=Moment.CALL,
        tool=own,
        input=dict(arguments),
        transcript=path if isinstance(path, str) else None,
    )
    found = _found(told, caller) if caller.program == program else None
    if found is None:
        return {**{name: before[name] for name in before if name != "note"}, "event": EVENT}
    state = {name: before[name] for name in _OF_ALL_STEPS if name in before}
    state |= {"event": EVENT, "moment": str(told.moment), "tool": own}
    return state | {"input": masked(told.input)} | found


def _found(told: Told, caller: Caller) -> dict[str, Any] | None:
    """Return which call asks, and the conversation as it is now; None if that is not known."""
    transcript = programs.transcript(told.program)
    if transcript is None:
        return None
    try:
        if caller.call_id is not None:  # it is not told: its result is still to come
            return {"call_id": caller.call_id, **_read(transcript, told)}
        if told.program == "gemini-cli":  # which knows calls by what they are
            return _read(transcript, told) or None
        return _under_way(transcript, told) if told.program == "opencode" else None
    except TranscriptError:  # the files are kept all the same
        return None


def _read(transcript: Transcript, told: Told) -> dict[str, Any]:
    entries = transcript.read(told, JsonLines())
    if entries is None or told.transcript is None:
        return {}
    return {"transcript": position(told.transcript), **_kept(transcript, entries)}


def _under_way(transcript: Transcript, told: Told) -> dict[str, Any] | None:
    from holdfast.coding_agents.opencode.under_way import call_under_way

    entries = transcript.live(Point(session=told.session, moment=told.moment))
    if entries is None or told.tool is None:
        return None
    call_id = call_under_way(entries, told.tool, told.input)
    return None if call_id is None else {"call_id": call_id, **_kept(transcript, masked(entries))}


def _kept(transcript: Transcript, entries: Sequence[Any]) -> dict[str, Any]:
    return {"conversation": {"format": transcript.format, "entries": list(entries)}}
