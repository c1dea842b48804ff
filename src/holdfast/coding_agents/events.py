"""Reads what coding agents tell their hooks, in each one's own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.coding_agents.event_paths import at
from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment, Told
from holdfast.errors import CodingAgentError

FIELDS = (
    *("session", "event", "tool", "input", "output", "error", "prompt", "last_message", "cwd"),
    *("transcript", "call_id", "turn_id", "prompt_id", "subagent_id", "subagent_type"),
    "conversation",
)
_ANY = ("input", "output", "error", "conversation")


def read(data: Any, program: Program, given: Sequence[str] = ()) -> Told:
    """Return what was told, in the words of a program; ``given`` are NAME=PATH that go before."""
    if not isinstance(data, Mapping):
        raise CodingAgentError("a hook is told a JSON object on its standard input")
    where = {**program.paths}
    for each in given:
        name, sign, path = each.partition("=")
        if not sign or name not in FIELDS:
            raise CodingAgentError(
                f"--map takes NAME=PATH with one of {', '.join(FIELDS)}, not {each!r}"
            )
        where[name] = path
    found = {name: at(data, path) for name, path in where.items() if name in FIELDS}
    texts = {name: _text(value) for name, value in found.items() if name not in _ANY}
    session, event = texts.pop("session", None), texts.pop("event", None) or "event"
    if session is None:
        raise CodingAgentError(f"the hook was told no session (looked for {where['session']!r})")
    return Told(
        program=program.name,
        session=session,
        event=event,
        moment=program.moments.get(event, Moment.OTHER),
        **{name: found.get(name) for name in _ANY},
        **texts,
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
