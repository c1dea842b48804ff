"""The events and tools of Gemini CLI."""

from __future__ import annotations

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment

PATHS = {
    "session": "session_id",
    "event": "hook_event_name",
    "tool": "tool_name",
    "input": "tool_input",
    "output": "tool_response",
    "error": "tool_response.error",
    "prompt": "prompt",
    "last_message": "prompt_response",
    "cwd": "cwd",
    "transcript": "transcript_path",
}

PROGRAM = Program(
    name="gemini-cli",
    title="Gemini CLI",
    command="gemini",
    paths=PATHS,
    moments={
        "SessionStart": Moment.START,
        "BeforeAgent": Moment.PROMPT,
        "BeforeTool": Moment.BEFORE_CALL,
        "AfterTool": Moment.CALL,
        "AfterAgent": Moment.END,
    },
)
