"""The events and tools of Claude Code."""

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
    "prompt_id": "prompt_id",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
}

PROGRAM = Program(
    name="claude-code",
    title="Claude Code",
    command="claude",
    paths=PATHS,
    moments={
        "SessionStart": Moment.START,
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALL,
        "PostToolUseFailure": Moment.CALL,
        "Stop": Moment.END,
        "SubagentStop": Moment.SUBAGENT_END,
    },
    read_only=frozenset({"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch"}),
)
