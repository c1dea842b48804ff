"""The events and tools of Codex."""

from __future__ import annotations

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment

PATHS = {
    "session": "session_id",
    "event": "hook_event_name",
    "tool": "tool_name",
    "input": "tool_input",
    "output": "tool_response",
    "error": "error",
    "prompt": "prompt",
    "last_message": "last_assistant_message",
    "cwd": "cwd",
    "transcript": "transcript_path",
    "call_id": "tool_use_id",
    "turn_id": "turn_id",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
}

PROGRAM = Program(
    name="codex",
    title="Codex",
    command="codex",
    paths=PATHS,
    moments={
        "SessionStart": Moment.START,
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALL,
        "Stop": Moment.END,
    },
)
