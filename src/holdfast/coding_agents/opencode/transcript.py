"""Conversations of opencode: kept in its database, told by the plugin, taken in by import."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.masking import masked
from holdfast.coding_agents.opencode import command, cutting, database, ids
from holdfast.coding_agents.opencode.copying import copied
from holdfast.coding_agents.opencode.entries import conversation_of, entries_of
from holdfast.coding_agents.told import Told
from holdfast.coding_agents.transcript import Cut, Point


class OpencodeTranscript:
    """How opencode keeps its conversations."""

    format = "opencode/1"

    def __init__(self) -> None:
        self._hidden: dict[str, tuple[Any, Any]] = {}
        """Messages of the conversation that was read last, by id: as told, and without secrets."""

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        """Return the conversation that came with an event; secrets are hidden.

        All of it comes with every event: what was looked through once is not looked through again.
        """
        entries = entries_of(told.conversation)
        if entries is None:
            return None
        before, now = self._hidden, {}
        found = []
        for entry in entries:
            info = entry.get("info") if isinstance(entry, Mapping) else None
            key = str(info.get("id")) if isinstance(info, Mapping) else ""
            known = before.get(key)
            hidden = known[1] if known is not None and known[0] == entry else masked(entry)
            now[key] = (entry, hidden)
            found.append(hidden)
        self._hidden = now
        return found

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        """Return the entries up to a point."""
        return cutting.cut(point, later)

    def live(self, point: Point) -> list[Any] | None:
        """Return what opencode's database has now."""
        return entries_of(database.session(point.session))

    def new_id(self) -> str:
        """Return an id for a new session."""
        return ids.new_session_id()

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        """Have opencode take the conversation in as a new session of a project.

        It has no file of its own there: the result is None.
        """
        now = time.time_ns() // 10**6
        exported = copied(conversation_of(cut.entries), session_id, folder, now)
        with tempfile.TemporaryDirectory(prefix="holdfast-") as name:
            file = Path(name) / "session.json"
            file.write_text(json.dumps(exported))
            command.take_in(file, session_id, folder)
        return None

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        """Return the command that goes on with a session."""
        return ["opencode", "--session", session_id]


TRANSCRIPT = OpencodeTranscript()
