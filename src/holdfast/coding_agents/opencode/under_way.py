"""Which call of opencode runs now: it tells a server of tools nothing about the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.coding_agents.opencode.entries import conversation_of


def call_under_way(entries: Sequence[Any], tool: str, given: Mapping[str, Any]) -> str | None:
    """Return the id of the newest call of a tool that has no result yet; None if there is none."""
    for message in reversed(conversation_of(entries).messages):
        for part in reversed(message["parts"]):
            state = part.get("state")
            if part.get("type") != "tool" or part.get("tool") != tool:
                continue
            if not isinstance(state, Mapping) or state.get("status") not in ("pending", "running"):
                continue
            call_id = part.get("callID")
            if isinstance(call_id, str) and state.get("input") == given:
                return call_id
    return None
