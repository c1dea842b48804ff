"""The conversations of Codex: rollouts, a file for each thread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import ids
from holdfast.coding_agents.codex import cutting, rollout, rollout_files
from holdfast.coding_agents.codex.naming_anew import as_thread
from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.told import Told
from holdfast.coding_agents.transcript import Cut, Point


class CodexTranscript:
    """How Codex keeps its conversations."""

    format = "codex/1"

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        """Return the conversation as it is now; None if there is none to be read."""
        return None if told.transcript is None else rollout_files.read(told.transcript, files)

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        """Return the entries up to a point."""
        return cutting.cut(point, later)

    def live(self, point: Point) -> list[Any] | None:
        """Return what the rollout has now; None if it is gone."""
        return (
            None if point.transcript is None else rollout_files.read(point.transcript, JsonLines())
        )

    def new_id(self) -> str:
        """Return an id for a new thread, which tells when it was begun."""
        return ids.new_id()

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        """Write a new rollout; Codex finds it by the id alone, which is in its name."""
        if cut.is_empty:
            return None
        now = datetime.now(UTC)
        records = rollout.readable(cut.entries)
        timestamp = f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03}Z"
        made = as_thread(records, session_id, str(folder), timestamp)
        return rollout_files.write(made, session_id, now.astimezone())

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        """Return the command that goes on; a thread of which only the start is written will do."""
        return ["codex"] if cut.is_empty else ["codex", "resume", session_id]


TRANSCRIPT = CodexTranscript()
