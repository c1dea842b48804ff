"""Files kept around the tools of an agent, where its transcript is kept by somebody else."""

from __future__ import annotations

import asyncio
from typing import Any

from claude_agent_sdk import HookMatcher

from holdfast.adapters.claude_agent_sdk.merging import Hook, loudly, merged
from holdfast.errors import InvalidArgumentError
from holdfast.workspace import AsyncWorkspace, Workspace
from holdfast.workspace.async_workspace import as_workspace

_LONGEST = 80


def workspace_hooks(
    workspace: Workspace | AsyncWorkspace, *, existing: Any = None
) -> dict[Any, list[HookMatcher]]:
    """Return hooks that snapshot a workspace at every prompt and after every tool.

    Whatever a tool did is in it, Bash too. ``workspace.snapshots()`` tells them by the prompt, or
    by the tool and the id of its call; ``workspace.restore(...)`` goes back to one. ``existing``
    are hooks of your own, which stay as they are.
    """
    if not isinstance(workspace, (Workspace, AsyncWorkspace)):
        raise InvalidArgumentError(
            "workspace_hooks takes a Workspace (Workspace(path, client)), not "
            f"{type(workspace).__name__}"
        )
    files = as_workspace(workspace)

    async def taken(message: str) -> dict[str, Any]:
        await asyncio.to_thread(files.snapshot, message)
        return {}

    async def at_prompt(given: Any, _id: Any, _context: Any) -> dict[str, Any]:
        return await taken(f"prompt: {given.get('prompt', '')}"[:_LONGEST])

    async def after_tool(given: Any, tool_use_id: Any, _context: Any) -> dict[str, Any]:
        return await taken(f"{given.get('tool_name')} {tool_use_id}")

    own: dict[str, Hook] = {
        "UserPromptSubmit": at_prompt,
        "PostToolUse": after_tool,
        "PostToolUseFailure": after_tool,
    }
    return merged(existing, {event: loudly(event, own[event], _seen) for event in own})


def _seen(session_id: str, error: Exception) -> None:
    """Leave an error to the run, which ends with it."""
