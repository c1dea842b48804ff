"""The events and tools of Codex."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from holdfast.coding_agents.codex import rollout
from holdfast.coding_agents.programs import USUAL_PATHS, Program
from holdfast.coding_agents.told import Moment, Told

if TYPE_CHECKING:
    from holdfast.coding_agents.json_lines import JsonLines

PATHS = {
    **USUAL_PATHS,
    # At the end of a subagent the other one is its parent's.
    "transcript": "agent_transcript_path|transcript_path",
    "turn_id": "turn_id",
}

_NAMESPACE = re.compile(r"^(?:multi_agent_v\d+|collaboration)(?=[a-z])")
"""Stands before the name of a tool for subagents, with nothing between."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+)$", re.MULTILINE)


def name_of(told: Told) -> str | None:
    """Return what a step is called: ``patch: hello.txt``, ``subagent: Write the tests``."""
    if told.event == "Interrupt":
        return "interrupted"
    given = told.input if isinstance(told.input, Mapping) else {}
    tool = _NAMESPACE.sub("", told.tool or "")
    if tool == "apply_patch" and (files := _patched(given.get("command"), told.cwd)):
        more = f" and {len(files) - 1} more" if len(files) > 1 else ""
        return f"{_before(told)}patch: {files[0]}{more}"
    if tool == "spawn_agent" and isinstance(given.get("message"), str):
        first, _, _ = given["message"].strip().partition("\n")
        return f"{_before(told)}subagent: {first}"
    if tool == "wait_agent":
        return f"{_before(told)}subagents waited for"
    return f"{_before(told)}{tool}" if tool != (told.tool or "") else None


def failure_of(told: Told) -> str | None:
    """Return the exit code of a call that failed; "" if it has none, None if it did not fail."""
    if not isinstance(told.error, Mapping):
        return None if told.error is None else ""
    code = told.error.get("exit_code")
    return str(code) if isinstance(code, int) else ""


def completed(told: Told, files: JsonLines) -> Told:
    """Return a call with its failure: an event has the output alone, the rollout says how it ended.

    That it ended is written before the hook is told of it.
    """
    if told.transcript is None or told.call_id is None or told.error is not None:
        return told
    item = rollout.completed_item(files.read(told.transcript) or [], told.call_id)
    failure = None if item is None else rollout.failure(item)
    return told if failure is None else replace(told, error=failure)


def _before(told: Told) -> str:
    return "before " if told.moment is Moment.BEFORE_CALL else ""


def _patched(patch: Any, cwd: str | None) -> list[str]:
    """Return the files that a patch names, as seen from the project."""
    found = _PATCHED.findall(patch) if isinstance(patch, str) else []
    start = f"{cwd}{os.sep}" if cwd else ""
    return list(dict.fromkeys(each.strip().removeprefix(start) for each in found))


_NAMESPACES = ("", "multi_agent_v1", "collaboration")
_STARTING = {f"{each}spawn_agent" for each in _NAMESPACES}
"""The subagents that these start tell of themselves."""

PROGRAM = Program(
    name="codex",
    title="Codex",
    command="codex",
    paths=PATHS,
    moments={
        "SessionStart": Moment.START,
        "SubagentStart": Moment.START,
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALL,
        "Stop": Moment.END,
        "Interrupt": Moment.END,
        "SubagentStop": Moment.SUBAGENT_END,
    },
    # Waiting for a subagent counts only with the files that it changed meanwhile.
    read_only=frozenset(
        {
            *("view_image", "web_search", "tool_search", "update_plan", "request_user_input"),
            *("get_goal", "create_goal", "update_goal"),
            *(f"{each}{tool}" for each in _NAMESPACES for tool in ("wait_agent", "list_agents")),
            *("list_mcp_resources", "list_mcp_resource_templates", "read_mcp_resource"),
        }
    ),
    is_ignored=lambda told: told.tool in _STARTING,
    name_of=name_of,
    failure_of=failure_of,
    completed=completed,
)
