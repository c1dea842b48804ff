"""Makes a rollout one of a new thread: its id, its place and its numbers; never what was said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.coding_agents.codex import rollout
from holdfast.coding_agents.codex.rollout import Record

_SAID = frozenset(
    {
        *("content", "arguments", "input", "output", "result", "text", "message", "state"),
        *("replacement_history", "command", "base_instructions", "changes"),
    }
)
"""What users, models and tools said stands there: an id in it is theirs."""
_OF_SUBAGENT = (
    *("parent_thread_id", "agent_nickname", "agent_role", "agent_path", "agent_type"),
    *rollout.FORKED,
)


def as_thread(
    records: Sequence[Record], thread: str, folder: str, timestamp: str
) -> list[dict[str, Any]]:
    """Return the records as those of a thread of its own, in a directory."""
    old = rollout.thread_of(records)
    cwd = rollout.payload(records[0]).get("cwd")
    made: list[dict[str, Any]] = []
    for number, record in enumerate(records):
        new = dict(record)
        if "ordinal" in new:
            new["ordinal"] = number  # Codex counts on from the last
        if new["type"] != "response_item":
            new["payload"] = _renamed(new.get("payload"), old, thread)
        if new["type"] == "turn_context":
            new["payload"] = _moved(new["payload"], cwd, folder)
        made.append(new)
    made[0]["payload"] = _moved(_meta(made[0]["payload"], thread, timestamp), cwd, folder)
    return made


def _meta(meta: Record, thread: str, timestamp: str) -> dict[str, Any]:
    """Return what a thread says of itself: a subagent's becomes one that a user may go on with."""
    kept = {name: value for name, value in meta.items() if name not in _OF_SUBAGENT}
    if isinstance(kept.get("source"), Mapping):
        kept["source"] = "cli"
    if kept.get("thread_source") == "subagent":
        kept["thread_source"] = "user"
    if "session_id" in kept:
        kept["session_id"] = thread
    return {**kept, "id": thread, "timestamp": timestamp}


def _moved(about: Any, cwd: Any, folder: str) -> Any:
    if not isinstance(about, Mapping) or not isinstance(cwd, str) or cwd == folder:
        return about
    new = {**about, "cwd": folder} if about.get("cwd") == cwd else dict(about)
    for name in ("runtime_workspace_roots", "workspace_roots"):
        if isinstance(new.get(name), list):
            new[name] = [folder if each == cwd else each for each in new[name]]
    return new


def _renamed(value: Any, old: str, new: str) -> Any:
    """Return data in which a thread has another id, wherever it is told as one."""
    if isinstance(value, list):
        return [_renamed(each, old, new) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        name: each
        if name in _SAID
        else new
        if each == old and (name == "id" or name.endswith("_id"))
        else _renamed(each, old, new)
        for name, each in value.items()
    }
