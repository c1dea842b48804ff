"""What a write is called, in the user's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.adapters.strands.keys import is_latest


def step_name(name: str, said: list[dict[str, Any]], before: int | None) -> str:
    """Return what happened that had an entry written: a prompt, the model, tools…

    ``said`` are the messages of a snapshot, ``before`` how many it had the last time.
    """
    if not is_latest(name):
        return "snapshot" if "/immutable_history/" in name else f"write {name.rpartition('/')[2]}"
    if not said or len(said) == before:
        return "state"
    last = said[-1]
    if last.get("role") == "assistant":
        return "model"
    blocks = last.get("content")
    has_results = isinstance(blocks, list) and any("toolResult" in block for block in blocks)
    return "tools" if has_results else "user prompt"


def messages_of(content: Any) -> list[dict[str, Any]]:
    """Return the messages of a snapshot that is kept; none if it is no snapshot."""
    snapshot = content.get("json") if isinstance(content, Mapping) else None
    data = snapshot.get("data") if isinstance(snapshot, Mapping) else None
    messages = data.get("messages") if isinstance(data, Mapping) else None
    return messages if isinstance(messages, list) else []
