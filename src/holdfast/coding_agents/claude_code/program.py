"""The events and tools of Claude Code."""

from __future__ import annotations

import re
from collections.abc import Mapping

from holdfast.coding_agents.programs import USUAL_PATHS, Program
from holdfast.coding_agents.told import Moment, Told

PATHS = {**USUAL_PATHS, "error": "error", "prompt_id": "prompt_id"}
_EXIT_CODE = re.compile(r"Exit code (\d{1,9})\b")
_NOTICE = re.compile(r"\s*<task-notification>.*?<summary>(.*?)</summary>", re.DOTALL)
"""What the program says in the user's place when work in the background has ended."""


def _name_of(told: Told) -> str | None:
    if told.event == "StopFailure":
        return f"agent: stopped ({told.error})" if isinstance(told.error, str) else "agent: stopped"
    if told.moment is Moment.PROMPT and (notice := _NOTICE.match(told.prompt or "")):
        return f"agent: {notice[1]}"
    if told.tool == "Skill" and isinstance(told.input, Mapping):
        return f"Skill {told.input.get('skill', '')}"
    if told.tool in ("Agent", "Task") and isinstance(told.output, Mapping):
        is_launched = told.output.get("status") == "async_launched"
        given = told.input.get("description") if isinstance(told.input, Mapping) else None
        return f"{told.tool} {given} (in the background)" if is_launched and given else None
    return None


def _failure_of(told: Told) -> str | None:
    if told.error is None:
        return None
    found = _EXIT_CODE.match(told.error) if isinstance(told.error, str) else None
    return found[1] if found else ""


PROGRAM = Program(
    name="claude-code",
    title="Claude Code",
    command="claude",
    paths=PATHS,
    moments={
        "SessionStart": Moment.START,
        "SubagentStart": Moment.START,
        "UserPromptSubmit": Moment.PROMPT,
        "PreToolUse": Moment.BEFORE_CALL,
        "PostToolUse": Moment.CALL,
        "PostToolUseFailure": Moment.CALL,
        "Stop": Moment.END,
        "StopFailure": Moment.END,
        "SubagentStop": Moment.SUBAGENT_END,
    },
    read_only=frozenset(
        {
            *("Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "ToolSearch"),
            *("TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "TaskOutput"),
            *("TaskStop", "BashOutput", "KillShell", "ListAgents", "SendMessage", "Skill"),
            *("CronList", "ScheduleWakeup", "ReportFindings", "AskUserQuestion", "EnterPlanMode"),
            *("ListMcpResourcesTool", "ReadMcpResourceTool", "ReadMcpResourceDirTool"),
            *("PushNotification", "ReadNotifications"),
        }
    ),
    name_of=_name_of,
    failure_of=_failure_of,
    # The program's own helpers, such as the one that sums up a conversation, have no type.
    is_ignored=lambda told: told.moment is Moment.SUBAGENT_END and told.subagent_type is None,
)
