"""Where in the conversation a point is that an agent asked for: behind the call that asks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.cli.mcp.caller import Caller
from holdfast.coding_agents import programs
from holdfast.coding_agents.json_lines import JsonLines, position
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.told import Moment, Told
from holdfast.errors import TranscriptError

EVENT = "Checkpoint"
"""The event of points that an agent asked for."""
_OF_ALL_STEPS = ("program", "transcript", "conversation", "cwd")
_WITHOUT_IDS = ("gemini-cli",)
"""Programs whose calls are known by what they are, as they have no ids."""


def place_of(
    before: Any, session_id: str, caller: Caller, arguments: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the state of a point, from that of the step before it.

    Where nothing tells which call asks for it, its place is that of the step before.
    """
    program = before.get("program") if isinstance(before, Mapping) else None
    if program not in programs.NAMES:
        return {}
    known = caller.call_id is not None or program in _WITHOUT_IDS
    if caller.program != program or not known:
        return {**{name: before[name] for name in before if name != "note"}, "event": EVENT}
    where = before.get("transcript")
    path = where.get("path") if isinstance(where, Mapping) else None
    told = Told(
        program=program,
        session=session_id,
        event=EVENT,
        moment=Moment.CALL,
        tool=f"{programs.program(program).own_tools[0]}checkpoint",
        input=masked(dict(arguments)),
        transcript=path if isinstance(path, str) else None,
    )
    state = {name: before[name] for name in _OF_ALL_STEPS if name in before}
    state |= {"event": EVENT, "moment": str(told.moment), "tool": told.tool, "input": told.input}
    if caller.call_id is not None:  # which is not told: its result is still to come
        state["call_id"] = caller.call_id
    return state | _conversation_now(told)


def _conversation_now(told: Told) -> dict[str, Any]:
    """Return the conversation as it is now; nothing if that cannot be read, and what was stays."""
    transcript = programs.transcript(told.program)
    try:
        entries = None if transcript is None else transcript.read(told, JsonLines())
    except TranscriptError:
        return {}
    if transcript is None or entries is None or told.transcript is None:
        return {}
    return {
        "transcript": position(told.transcript),
        "conversation": {"format": transcript.format, "entries": entries},
    }
