"""Which program calls, in which of its sessions, and by which call, as far as it says so."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.cli.mcp.protocol import Call

_CLIENTS = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini-cli",
    "opencode": "opencode",
    "cursor": "cursor",
}
"""What names of clients begin with, and the program that calls itself so."""


@dataclass(frozen=True)
class Caller:
    """Who calls; None is what is not said."""

    program: str | None = None
    session: str | None = None
    """The session that calls now."""
    first_session: str | None = None
    """The session with which the program started the server; it may have begun another since."""
    call_id: str | None = None


def caller_of(call: Call, environment: Mapping[str, str] = os.environ) -> Caller:
    """Return who makes a call: each program says that in its own way, and some do not."""
    name = call.client.lower()
    program = next((each for start, each in _CLIENTS.items() if name.startswith(start)), None)
    if program == "claude-code":
        return Caller(
            program,
            first_session=environment.get("CLAUDE_CODE_SESSION_ID") or None,
            call_id=_text(call.meta.get("claudecode/toolUseId")),
        )
    if program == "codex":
        thread, session = (_text(call.meta.get(name)) for name in ("threadId", "sessionId"))
        is_subagent = None not in (thread, session) and thread != session
        call_id = None if is_subagent else _text(call.meta.get("callId"))
        return Caller(program, session or thread, call_id=call_id)
    return Caller(program)


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
