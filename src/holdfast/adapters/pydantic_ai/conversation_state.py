"""A stored conversation as the state of a session: its record, and the log of its entries.

The log only grows, so that a save costs what it adds; branches that were left stay in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.conversation_store import ConversationEntry, ConversationRecord

from holdfast.adapters.pydantic_ai.messages import dumped, loaded, read, written
from holdfast.errors import AdapterError

_RECORD: TypeAdapter[Any] = TypeAdapter(ConversationRecord)
DELETED: dict[str, Any] = {"record": None, "entries": []}
"""What is written first when a conversation is deleted: whoever saves meanwhile meets it."""

Entries = list[dict[str, Any]]
"""Each of an id, the id of the one before it, a kind, and a message in JSON form."""


def state_of(record: ConversationRecord, entries: Entries) -> dict[str, Any]:
    """Return a conversation as the state of its session."""
    return {"record": written(_RECORD, record, "$.record"), "entries": entries}


def record_in(state: Any, session_id: str) -> ConversationRecord | None:
    """Return the record of a session's conversation; None if it was deleted."""
    kept = checked(state, session_id)["record"]
    if kept is None:
        return None
    return read(_RECORD, {**kept, "conversation_id": session_id}, "$.record")  # a fork has its own


def entries_in(state: Any, session_id: str) -> Entries:
    """Return the log of a session's conversation."""
    return list(checked(state, session_id)["entries"])


def is_conversation(state: Any) -> bool:
    """Return whether a state is one of a stored conversation."""
    return isinstance(state, dict) and {"record", "entries"} <= state.keys()


def checked(state: Any, session_id: str) -> dict[str, Any]:
    """Return the state of a stored conversation; an error names what else it is."""
    if not is_conversation(state) or not isinstance(state["entries"], list):
        raise AdapterError(
            f"session {session_id!r} holds no stored conversation; it is one of "
            "HoldfastCapability, say: that has its conversation already, so leave the store out, "
            "or give one of the two another agent_id"
        )
    return dict(state)


def kept_entries(entries: Iterable[ConversationEntry]) -> Entries:
    """Return entries as plain data."""
    each = list(entries)
    messages = dumped([entry.message for entry in each])
    return [
        {"id": entry.id, "parent_id": entry.parent_id, "kind": entry.kind, "message": message}
        for entry, message in zip(each, messages, strict=True)
    ]


def given_entries(kept: Sequence[dict[str, Any]]) -> list[ConversationEntry]:
    """Return entries as the framework knows them."""
    messages = loaded([entry["message"] for entry in kept])
    return [
        ConversationEntry(id=entry["id"], parent_id=entry["parent_id"], message=message)
        for entry, message in zip(kept, messages, strict=True)
    ]


def line_to(entries: Entries, head_id: str | None, limit: int | None = None) -> Entries:
    """Return the entries that lead to one, the oldest first; LookupError if one is not there."""
    by_id = {entry["id"]: entry for entry in entries}
    found: Entries = []
    while head_id is not None and (limit is None or len(found) < limit):
        if len(found) > len(entries):
            raise AdapterError("the entries of a stored conversation lead in a circle: damaged")
        found.append(by_id[head_id])
        head_id = found[-1]["parent_id"]
    return found[::-1]
