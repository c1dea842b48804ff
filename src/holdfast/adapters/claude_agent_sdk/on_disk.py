"""Transcripts that Claude's program has on this disk, beside those of the store."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from holdfast.core.conversation.frameworks.claude_entries import is_message
from holdfast.errors import AdapterError


def is_taken(environment: Mapping[str, str], project_key: str, session_id: str) -> bool:
    """Return whether the program has begun a session of that id, in which no model answered.

    So one is left that was killed before anything could be kept. If a model answered in it, that
    is not left behind: it is an error that tells how it is brought over.
    """
    name = "CLAUDE_CONFIG_DIR"
    given = environment.get(name) or os.environ.get(name)
    home = Path(given) if given else Path.home() / ".claude"
    path = home / "projects" / project_key / f"{session_id}.jsonl"
    try:
        lines = path.read_text("utf-8").splitlines()
    except FileNotFoundError:
        return False
    if any(_is_answer(line) for line in lines):
        raise AdapterError(
            f"Claude has a session {session_id} at {path}, and the store has none: bring it over "
            "with claude_agent_sdk.import_session_to_store, or use another session_id"
        )
    return True


def _is_answer(line: str) -> bool:
    try:
        entry = json.loads(line)
    except ValueError:  # cut off by a kill
        return False
    return is_message(entry) and entry["type"] == "assistant"
