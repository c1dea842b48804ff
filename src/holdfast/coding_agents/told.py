"""What a coding agent told its hook, in one shape for all programs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Moment(StrEnum):
    """When in an agent's work an event comes. The words are stored."""

    START = "start"
    PROMPT = "prompt"
    """The user has said something; nothing was done about it yet."""
    BEFORE_CALL = "before_call"
    CALL = "call"
    """A tool call has ended, well or not."""
    END = "end"
    """The agent has done what it was asked to."""
    SUBAGENT_END = "subagent_end"
    OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Told:
    """One event."""

    program: str
    session: str
    """The id by which the program knows the conversation."""
    event: str
    moment: Moment
    tool: str | None = None
    input: Any = None
    output: Any = None
    error: Any = None
    prompt: str | None = None
    last_message: str | None = None
    """What the agent said last."""
    cwd: str | None = None
    transcript: str | None = None
    """The file of the conversation, as the program names it."""
    call_id: str | None = None
    turn_id: str | None = None
    prompt_id: str | None = None
    subagent_id: str | None = None
    subagent_type: str | None = None
    conversation: Any = None
    """The conversation itself, where the program sends it along."""
