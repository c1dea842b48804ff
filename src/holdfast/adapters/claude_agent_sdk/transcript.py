"""A transcript as it is kept: what hooks tell stands in it until Claude's own entry comes.

Claude's program writes its entries a tenth of a second late, and a kill loses those. Hooks are
waited for. So the result that a hook tells of, or the prompt, gets an entry of ours at once, whose
uuid is made of the id of the call or of the prompt; the program's own takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.core.conversation.frameworks.claude_entries import (
    Entry,
    calls_in,
    content_of,
    is_message,
    is_of,
    made_uuid,
    messages_of,
    results_in,
)
from holdfast.errors import AdapterError

State = Mapping[str, Any]

GO_ON = "Continue from where you left off."
"""What Claude's program says in the user's place when it goes on with a turn."""
INTERRUPTED = "[Tool call interrupted"
"""How the program answers calls of which it knows no result."""
UNKNOWN = (
    f"{INTERRUPTED}: the program was ended before this call's end was recorded, and it may have "
    "taken place. It is not made again until a person has decided.]"
)
_COMMON = ("cwd", "sessionId", "version", "gitBranch", "userType", "entrypoint", "isSidechain")


@dataclass(frozen=True)
class Call:
    """A call that the model asked for."""

    id: str
    tool: str
    arguments: dict[str, Any]


def checked(state: Any, session_id: str) -> State:
    """Return the state of a session; an error if it is not one of this adapter's."""
    if not isinstance(state, Mapping) or not isinstance(state.get("entries"), list):
        raise AdapterError(
            f"the state of session {session_id!r} is no transcript of Claude's: roll it back to a "
            "checkpoint that is one, or use another session_id"
        )
    return state


def added(state: State | None, project_key: str, entries: Sequence[Entry]) -> State | None:
    """Return a state with more entries; None if it has them all.

    An entry with a uuid is there once. One that says what a hook has told takes its place.
    """
    kept = [] if state is None else list(state["entries"])
    places = {entry["uuid"]: i for i, entry in enumerate(kept) if "uuid" in entry}
    referred = {entry.get("parentUuid") for entry in (*kept, *entries)}
    is_changed = False
    for entry in entries:
        own = entry.get("uuid")
        if own is not None and own in places:
            continue
        told = next((made for made in _told_as(entry) if made in places), None)
        if told is not None and told not in referred:
            at = places.pop(told)
            kept[at] = entry
        else:
            at = len(kept)
            kept.append(entry)
        if own is not None:
            places[own] = at
        is_changed = True
    if not is_changed:
        return None
    return {**(state or {}), "project_key": project_key, "entries": kept}


def _told_as(entry: Entry) -> list[str]:
    """Return the uuids of the entries that hooks may have told in the place of this one."""
    if results_in(entry):
        return [made_uuid("result", call) for call in results_in(entry)]
    if entry.get("type") == "user" and isinstance(entry.get("promptId"), str):
        return [made_uuid("prompt", entry["promptId"])]
    return []


def with_result(
    state: State | None, project_key: str, call: Call, content: Any, is_error: bool, at: str
) -> State | None:
    """Return a state with the result of a call; None if it has one, or nobody asked for it."""
    entries = [] if state is None else state["entries"]
    asked = next((entry for entry in reversed(entries) if call.id in calls_in(entry)), None)
    if asked is None or any(call.id in results_in(entry) for entry in entries):
        return None
    block = {"tool_use_id": call.id, "type": "tool_result", "content": content}
    own = {
        "parentUuid": asked["uuid"],
        **{name: asked[name] for name in _COMMON if name in asked},
        "type": "user",
        "message": {"role": "user", "content": [{**block, **_error(is_error)}]},
        "uuid": made_uuid("result", call.id),
        "timestamp": at,
        "sourceToolAssistantUUID": asked["uuid"],
    }
    return added(state, project_key, [own])


def _error(is_error: bool) -> dict[str, Any]:
    return {"is_error": True} if is_error else {}


def with_prompt(
    state: State | None, project_key: str, session_id: str, prompt: str, prompt_id: str, at: str
) -> State | None:
    """Return a state with what the user said; None if it waits for an answer there already."""
    said = prompt.strip()
    if not said or said == GO_ON or (state is not None and waiting_prompt(state) == prompt):
        return None
    entries = [] if state is None else state["entries"]
    if any(entry.get("promptId") == prompt_id for entry in entries):
        return None
    before = next((entry for entry in reversed(entries) if "uuid" in entry), None)
    own = {
        "parentUuid": None if before is None else before["uuid"],
        "isSidechain": False,
        "userType": "external",
        **({} if before is None else {n: before[n] for n in _COMMON if n in before}),
        "type": "user",
        "message": {"role": "user", "content": prompt},
        "promptId": prompt_id,
        "uuid": made_uuid("prompt", prompt_id),
        "sessionId": session_id,
        "timestamp": at,
    }
    return added(state, project_key, [own])


# Where a session stands


def pending(state: State) -> list[Call]:
    """Return the calls of the model's last answer that nothing answers."""
    messages = messages_of(state["entries"])
    answered = {call for entry in messages for call in results_in(entry)}
    found: list[Call] = []
    for entry in reversed(messages):
        if entry["type"] == "user" and not results_in(entry):
            break
        for block in reversed(content_of(entry)):
            if is_of(block, "tool_use") and block.get("id") not in answered:
                given = block.get("input")
                arguments = given if isinstance(given, dict) else {}
                found.insert(0, Call(block["id"], block.get("name", ""), arguments))
    return found


def waiting_prompt(state: State) -> Any:
    """Return the prompt whose turn was cut short, as its text or its blocks; None if none was."""
    messages = messages_of(state["entries"])
    if not messages or _is_end(messages[-1]):
        return None
    for entry in reversed(messages):
        if entry["type"] == "user" and not results_in(entry):
            return entry["message"]["content"]
    return None


def _is_end(entry: Entry) -> bool:
    """Return whether nothing is owed after a message: the model said its last, or was stopped."""
    if entry["type"] == "assistant":
        return not calls_in(entry) and entry["message"].get("stop_reason") != "tool_use"
    said = content_of(entry)
    return any(
        is_of(block, "text") and str(block.get("text")).startswith("[Request interrupted")
        for block in said
    )


def was_interrupted(entries: Sequence[Entry], call_id: str) -> bool:
    """Return whether nobody told the model what came of a call."""
    for entry in entries:
        if call_id in results_in(entry):
            texts = json.dumps([b for b in content_of(entry) if b.get("tool_use_id") == call_id])
            return INTERRUPTED in texts
    return True


def deferred(entries: Sequence[Entry], call: Call) -> dict[str, Any]:
    """Return the entry by which Claude's program makes a call when it is resumed.

    It is the one that a hook leaves which defers a call.
    """
    last = next(entry for entry in reversed(entries) if "uuid" in entry)
    attachment = {
        "type": "hook_deferred_tool",
        "toolUseID": call.id,
        "toolName": call.tool,
        "toolInput": call.arguments,
        "hookName": "holdfast",
        "hookEvent": "PreToolUse",
    }
    return {
        "parentUuid": last["uuid"],
        **{name: last[name] for name in _COMMON if name in last},
        "attachment": attachment,
        "type": "attachment",
        "uuid": made_uuid("deferred", call.id, last["uuid"]),
        "timestamp": last.get("timestamp"),
    }


def title(entries: Sequence[Entry]) -> str:
    """Return what happened, in the user's words."""
    said = [entry for entry in entries if is_message(entry)]
    if any(entry.get("type") == "assistant" for entry in said):
        return "model"
    if any(results_in(entry) for entry in said):
        return "tools"
    return "user prompt" if said else "transcript"
