"""The events and tools of Cursor, as its documentation has them: it was not run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment, Told

_EXIT_CODE = re.compile(r"\bexit(?:ed)?(?: with)?(?: code| status)? (\d{1,3})\b", re.IGNORECASE)
_LONGEST = 10**6
"""Characters of an output that are looked at for an exit code."""


def failure_of(told: Told) -> str | None:
    """Return the exit code of a command that failed, "" for another failure; None if it did not."""
    code = _exit_code(told.output)
    if code is not None:
        return None if code == 0 else str(code)
    if told.error is None:
        return None
    found = _EXIT_CODE.search(told.error) if isinstance(told.error, str) else None
    return found[1] if found else ""


def _exit_code(output: Any) -> int | None:
    """Return the exit code in what a tool gave, which is told as a text of JSON."""
    if isinstance(output, str) and len(output) <= _LONGEST:
        try:
            output = json.loads(output)
        except (ValueError, RecursionError):
            return None
    code = output.get("exitCode") if isinstance(output, Mapping) else None
    return code if isinstance(code, int) and not isinstance(code, bool) else None


PROGRAM = Program(
    name="cursor",
    title="Cursor",
    command="cursor-agent",
    paths={
        "session": "conversation_id|session_id",
        "event": "hook_event_name",
        "tool": "tool_name",
        "input": "tool_input",
        "output": "tool_output",
        "error": "error_message",
        "prompt": "prompt",
        "last_message": "text",
        "cwd": "workspace_roots.0|cwd",
        "transcript": "transcript_path",
        "call_id": "tool_use_id",
        "turn_id": "generation_id",
    },
    moments={
        "sessionStart": Moment.START,
        "beforeSubmitPrompt": Moment.PROMPT,
        "preToolUse": Moment.BEFORE_CALL,
        "postToolUse": Moment.CALL,
        "postToolUseFailure": Moment.CALL,
        "stop": Moment.END,
    },
    read_only=frozenset(
        {"Read", "Grep", "Glob", "LS", "SemanticSearch", "WebSearch", "WebFetch", "ReadLints"}
    ),
    own_tools=("mcp__holdfast__", "MCP:holdfast"),
    failure_of=failure_of,
)
