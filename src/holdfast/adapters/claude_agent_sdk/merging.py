"""Hooks of ours beside the user's own: none of theirs is lost or changed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from claude_agent_sdk import HookMatcher

from holdfast.errors import HoldfastError, InvalidArgumentError

Hook = Callable[[Any, Any, Any], Awaitable[dict[str, Any]]]
_LONGEST = 24 * 3600.0
"""Seconds that a hook may take: whoever approves a call may be asleep."""


def merged(existing: Any, own: Mapping[str, Hook]) -> dict[Any, list[HookMatcher]]:
    """Return the user's hooks with ours behind them.

    Where one of ours fails, Claude's program does not go on: a tool never runs unrecorded.
    """
    if existing is not None and not isinstance(existing, Mapping):
        raise InvalidArgumentError(
            f"existing is a dict of events and HookMatchers, not {type(existing).__name__}"
        )
    found: dict[Any, list[HookMatcher]] = {}
    for event, matchers in (existing or {}).items():
        if not isinstance(matchers, (list, tuple)) or not all(
            isinstance(each, HookMatcher) for each in matchers
        ):
            raise InvalidArgumentError(f"the hooks of {event!r} are a list of HookMatcher")
        found[event] = list(matchers)
    for event, hook in own.items():
        if any(hook in each.hooks for each in found.get(event, [])):  # it is there already
            continue
        ours = HookMatcher(hooks=[hook], timeout=_LONGEST, on_failure="block")
        found.setdefault(event, []).append(ours)
    return found


def stops(event: str, reason: str) -> dict[str, Any]:
    """Return what a hook answers to end the run, and to have the user told why."""
    answer: dict[str, Any] = {"continue_": False, "stopReason": reason, "systemMessage": reason}
    return answer if event != "PreToolUse" else {**answer, **denies(reason)}


def denies(reason: str) -> dict[str, Any]:
    """Return what a hook answers so that a tool does not run, and the model is told why."""
    decision = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", **decision}}


def loudly(event: str, hook: Hook, remember: Callable[[str, HoldfastError], None]) -> Hook:
    """Return a hook whose error of Holdfast's own ends the run with its reason."""

    async def guarded(given: Any, tool_use_id: Any, context: Any) -> dict[str, Any]:
        try:
            return await hook(given, tool_use_id, context)
        except HoldfastError as error:
            remember(given.get("session_id", ""), error)
            return stops(event, f"Holdfast: {error}")

    return guarded
