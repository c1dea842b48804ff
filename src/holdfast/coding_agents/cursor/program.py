"""The events and tools of Cursor."""

from __future__ import annotations

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment

PROGRAM = Program(
    name="cursor",
    title="Cursor",
    command="cursor-agent",
    paths={
        "session": "conversation_id",
        "event": "hook_event_name",
        "tool": "tool_name",
        "input": "tool_input",
        "output": "tool_output",
        "prompt": "prompt",
        "cwd": "workspace_roots.0",
        "transcript": "transcript_path",
    },
    moments={
        "beforeSubmitPrompt": Moment.PROMPT,
        "postToolUse": Moment.CALL,
        "stop": Moment.END,
    },
)
