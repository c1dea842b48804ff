"""The events and tools of Gemini CLI."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from holdfast.coding_agents.gemini_cli.completing import completed
from holdfast.coding_agents.naming import used_on
from holdfast.coding_agents.programs import USUAL_PATHS, Program
from holdfast.coding_agents.told import Moment, Told

PATHS = {
    **USUAL_PATHS,
    "error": "tool_response.error",
    "last_message": "prompt_response",
}

SHELL = "run_shell_command"
SUBAGENT = "invoke_agent"
_TITLES = {
    SHELL: "Shell",
    "write_file": "WriteFile",
    "replace": "Edit",
    "read_file": "ReadFile",
    "read_many_files": "ReadManyFiles",
    "glob": "FindFiles",
    "grep_search": "SearchText",
    "list_directory": "ReadFolder",
    "web_fetch": "WebFetch",
    "google_web_search": "GoogleSearch",
    "complete_task": "Complete Task",
}
"""What the program itself calls its tools where the user sees them."""

_EXIT_CODE = re.compile(
    r"\nExit Code: (\d+)(?:\nSignal: .*)?(?:\nBackground PIDs: .*)?(?:\nProcess Group PGID: \d+)?"
    r"\s*(?:</untrusted_context>)?\s*\Z"
)
"""Stands behind all that the command printed."""
_SIGNAL = re.compile(
    r"\nSignal: \S+(?:\nBackground PIDs: .*)?(?:\nProcess Group PGID: \d+)?\s*(?:<|\Z)"
)
_CANCELLED = ("Command was cancelled by user", "Command was automatically cancelled")
_LOOKED_AT = 1000
"""Characters at the end of an output, in which its exit code is."""


def text_of(output: Any) -> str | None:
    """Return the text of a tool's response, as the model is told it; None if it is none."""
    said = output.get("llmContent") if isinstance(output, Mapping) else output
    if isinstance(said, str):
        return said
    if isinstance(said, Mapping):
        said = [said]
    if not isinstance(said, list):
        return None
    parts = [each.get("text") if isinstance(each, Mapping) else each for each in said]
    texts = [each for each in parts if isinstance(each, str)]
    return "".join(texts) if len(texts) == len(parts) else None


def failure_of(told: Told) -> str | None:
    """Return the exit code of a command that failed, "" for another failure; None if it did not."""
    if told.tool == SHELL:
        said = text_of(told.output) or ""
        end = said[-_LOOKED_AT:]
        if found := _EXIT_CODE.search(end):
            return found[1]
        if _SIGNAL.search(end) or said.startswith(_CANCELLED):
            return ""
    return None if told.error is None else ""


def name_of(told: Told) -> str | None:
    """Return what a step is called in the program's words; None where the general ones do."""
    if told.tool is None or told.moment not in (Moment.BEFORE_CALL, Moment.CALL):
        return None
    before = "before " if told.moment is Moment.BEFORE_CALL else ""
    if told.tool == SUBAGENT and isinstance(told.input, Mapping):
        prompt = told.input.get("prompt")
        about = prompt.strip().partition("\n")[0] if isinstance(prompt, str) else ""
        return f"{before}subagent {told.input.get('agent_name') or ''}: {about}"
    title = _TITLES.get(told.tool)
    return None if title is None else f"{before}{title} {used_on(told)}"


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
    read_only=frozenset(
        {
            *("read_file", "read_many_files", "glob", "grep_search", "search_file_content"),
            *("list_directory", "web_fetch", "google_web_search", "get_internal_docs"),
            *("list_background_processes", "read_background_output", "read_mcp_resource"),
            *("list_mcp_resources", "update_topic", "write_todos", "ask_user", "activate_skill"),
            *("enter_plan_mode", "exit_plan_mode", "complete_task"),
        }
    ),
    own_tools=("mcp_holdfast_", "mcp__holdfast__"),
    completed=completed,
    name_of=name_of,
    failure_of=failure_of,
)
