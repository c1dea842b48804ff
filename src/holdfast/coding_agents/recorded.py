"""What the record of a checkpoint alone tells of the coding agent that it was recorded of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.coding_agents import programs

if TYPE_CHECKING:
    from holdfast.coding_agents.programs import Program
    from holdfast.model import CheckpointInfo


def program_of(info: CheckpointInfo) -> Program | None:
    """Return the coding agent that a checkpoint was recorded of; None if it was of none."""
    name = info.metadata.get("program", info.agent_id)
    return programs.program(name) if name in programs.KNOWN else None


def main_session_of(info: CheckpointInfo) -> str:
    """Return the session of the conversation: a subagent's is beside that of its parent."""
    own = info.metadata.get("subagent_id")
    return info.session_id.removesuffix(f".{own}") if isinstance(own, str) else info.session_id
