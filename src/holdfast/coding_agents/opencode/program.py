"""The events and tools of opencode, as the plugin of ours tells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment, Told

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
    "turn_id": "turn_id",
    "prompt_id": "prompt_id",
    "subagent_id": "subagent_id",
    "subagent_type": "subagent_type",
    "conversation": "conversation",
}
READ_ONLY = frozenset(
    {
        *("read", "glob", "grep", "list", "lsp", "webfetch", "websearch", "codesearch"),
        *("todoread", "todowrite", "question", "skill", "invalid"),
        *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
    }
)


def name_of(told: Told) -> str | None:
    """Return what a step is called that needs words of its own."""
    if told.moment is Moment.PROMPT and told.subagent_id is not None:
        return f"task: {told.prompt or ''}"
    if told.moment in (Moment.END, Moment.SUBAGENT_END) and isinstance(told.error, str):
        return f"agent: stopped: {told.error}"
    if told.tool == "task" and isinstance(told.input, Mapping):
        return f"task: {told.input.get('description') or ''}"
    if told.tool == "apply_patch" and (files := _patched(told)):
        return f"patch: {', '.join(files)}"
    return None


def failure_of(told: Told) -> str | None:
    """Return the exit code of a call that failed, "" if it has none; None if it did not fail."""
    if told.error is not None:
        return ""
    metadata = _metadata(told)
    if metadata.get("exit", 0) == 0:
        return None
    return "" if metadata["exit"] is None else str(metadata["exit"])


def _patched(told: Told) -> list[str]:
    files = _metadata(told).get("files")
    found = [each.get("relativePath") for each in files or () if isinstance(each, Mapping)]
    return [each for each in found if isinstance(each, str)]


def _metadata(told: Told) -> Mapping[str, Any]:
    found = told.output.get("metadata") if isinstance(told.output, Mapping) else None
    return found if isinstance(found, Mapping) else {}


PROGRAM = Program(
    name="opencode",
    title="opencode",
    command="opencode",
    paths=PATHS,
    moments={
        "chat.message": Moment.PROMPT,
        "tool.execute.after": Moment.CALL,
        "session.idle": Moment.END,
        "subagent.idle": Moment.SUBAGENT_END,
    },
    read_only=READ_ONLY,
    own_tools=("holdfast_",),
    name_of=name_of,
    failure_of=failure_of,
)
"""What is special about opencode."""
