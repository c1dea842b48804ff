"""Begins a new session at a checkpoint, under a name that is free."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo


def free_name(names: Names, source: CheckpointInfo) -> str:
    """Return a name for a fork that no session of the agent has."""
    taken = {each.session_id for each in names.sessions if each.agent_id == source.agent_id}
    number = 1
    while f"{source.session_id}.{number}" in taken:
        number += 1
    return f"{source.session_id}.{number}"


def forked_json(
    source: CheckpointInfo, made: str, name: str, directory: str | None, is_linked: bool
) -> dict[str, Any]:
    """Return a fork that was made, in JSON."""
    return {
        "checkpoint_id": made,
        "agent_id": source.agent_id,
        "session_id": name,
        "parent_id": source.checkpoint_id,
        "directory": directory,
        "linked": is_linked,
    }
