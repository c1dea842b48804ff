"""How Claude Code keeps its conversations: lines of JSON in a file for each session."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from holdfast.coding_agents.claude_code.cutting import cut_at
from holdfast.coding_agents.claude_code.lines import is_kept
from holdfast.coding_agents.claude_code.places import conversations_of, file_of
from holdfast.coding_agents.claude_code.told_entries import ToldEntries
from holdfast.coding_agents.json_lines import JsonLines, write_new
from holdfast.coding_agents.told import Told
from holdfast.coding_agents.transcript import Cut, Point


class ClaudeCodeTranscript:
    """A session is ``<settings>/projects/<directory>/<id>.jsonl``; each line follows another."""

    format = "claude-code/1"

    def __init__(self) -> None:
        self._told: WeakKeyDictionary[JsonLines, ToldEntries] = WeakKeyDictionary()

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        """Return the conversation as it is now; None if there is none to be read."""
        path = file_of(told.transcript, told.subagent_id)
        if path is None:
            return None
        entries = files.read(path)
        if entries is None and os.path.lexists(path):
            return None
        known = self._told.setdefault(files, ToldEntries())
        # The file itself is made late: at a first call it may not be there yet.
        found = known.added(path, list(filter(is_kept, entries or [])), told)
        return None if entries is None and not found else found

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        """Return the entries up to a point."""
        return cut_at(point, later)

    def live(self, point: Point) -> list[Any] | None:
        """Return what the program's own file has now; None if it is gone."""
        path = file_of(point.transcript, point.subagent_id)
        entries = None if path is None else JsonLines().read(path)
        return None if entries is None else list(filter(is_kept, entries))

    def new_id(self) -> str:
        """Return an id for a new session."""
        return str(uuid.uuid4())

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        """Write a new session where the program looks for those of a directory."""
        if cut.is_empty:
            return None
        where = conversations_of(folder)
        where.mkdir(parents=True, exist_ok=True, mode=0o700)
        path = where / f"{uuid.UUID(session_id)}.jsonl"
        write_new(path, _moved(cut.entries, session_id, folder))
        return path

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        """Return the command that goes on with a session that was written."""
        return ["claude", "--session-id" if cut.is_empty else "--resume", session_id]


def _moved(entries: Sequence[Any], session_id: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Give entries that are of a session in a directory; those below it stay there."""
    new = os.path.realpath(folder)
    old = next((each["cwd"] for each in entries if isinstance(each.get("cwd"), str)), new)
    for entry in entries:
        changed = {"sessionId": session_id} if "sessionId" in entry else {}
        cwd = entry.get("cwd")
        if old != new and isinstance(cwd, str) and (cwd + "/").startswith(old + "/"):
            changed["cwd"] = new + cwd[len(old) :]
        yield {**entry, **changed}


TRANSCRIPT = ClaudeCodeTranscript()
