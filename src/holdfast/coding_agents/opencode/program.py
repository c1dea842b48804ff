"""The events and tools of opencode, as the plugin of ours tells them."""

from __future__ import annotations

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment

PATHS = {
    "session": "session",
    "event": "event",
    "tool": "tool",
    "input": "input",
    "output": "output",
    "error": "error",
    "prompt": "prompt",
    "last_message": "last_message",
    "cwd": "cwd",
    "call_id": "call_id",
    "prompt_id": "prompt_id",
    "subagent_id": "subagent_id",
    "subagent_type": "subagent_type",
    "conversation": "conversation",
}

PROGRAM = Program(
    name="opencode",
    title="opencode",
    command="opencode",
    paths=PATHS,
    moments={
        "session.start": Moment.START,
        "chat.message": Moment.PROMPT,
        "tool.execute.before": Moment.BEFORE_CALL,
        "tool.execute.after": Moment.CALL,
        "session.idle": Moment.END,
    },
)
