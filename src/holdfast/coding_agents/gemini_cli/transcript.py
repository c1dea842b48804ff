"""The chats of Gemini CLI: read, cut at a point, and written as a new one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.coding_agents.gemini_cli import projects
from holdfast.coding_agents.gemini_cli.calls import mark, open_message
from holdfast.coding_agents.gemini_cli.cutting import after_call
from holdfast.coding_agents.json_lines import JsonLines, write_new
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.core.conversation.programs.gemini_chat import chat_of, is_said, settled
from holdfast.errors import TranscriptError

_PLAIN = re.compile("[A-Za-z0-9_-]{1,200}")


class GeminiTranscript:
    """How Gemini CLI keeps its conversations: a log of records in a file for each session."""

    format = "gemini-cli/1"

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        """Return the records of the chat, and behind them which call has just ended."""
        entries = files.read(told.transcript) if told.transcript else None
        if entries is None or told.moment is not Moment.CALL:
            return entries
        message = open_message(entries)
        its = None if message is None else message["id"]
        return [*entries, mark(its, told.tool, told.input, told.output)]

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        """Return the chat up to a point, each message once and each result once."""
        if not point.entries:
            raise TranscriptError(f"no conversation of {point.session} was kept at this point")
        chat = chat_of(point.entries)
        note = after_call(chat, point, later) if point.moment is Moment.CALL else None
        messages = settled(chat.messages.values())
        if not any(map(is_said, messages)):
            return Cut(entries=[], note=note)
        return Cut(entries=[chat.about, *messages], note=note)

    def live(self, point: Point) -> list[Any] | None:
        """Return the records that the chat has now; None if Gemini CLI has deleted it."""
        entries = JsonLines().read(point.transcript) if point.transcript else None
        if not entries or not isinstance(entries[0], Mapping):
            return None
        its = point.subagent_id or point.session
        return entries if entries[0].get("sessionId") == its else None

    def new_id(self) -> str:
        """Return an id for a new session."""
        return str(uuid4())

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        """Write a chat where Gemini CLI looks for those of a directory; None if it has nothing."""
        if cut.is_empty:
            return None
        if not _PLAIN.fullmatch(session_id):
            raise TranscriptError(f"{session_id[:200]!r} is no id of a session of Gemini CLI")
        now = datetime.now(UTC)
        time = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        about = {
            **cut.entries[0],
            "sessionId": session_id,
            "projectHash": projects.hash_of(folder),
            "startTime": time,
            "lastUpdated": time,  # old chats are deleted
            "kind": "main",
        }
        chats = projects.folder_of(folder) / "chats"
        chats.mkdir(parents=True, exist_ok=True)
        # Whoever resumes a session leaves an empty chat whose name has the minute of that and
        # ends with the first 8 characters of the id. It would be added to a chat of that name,
        # and the next start deletes all that end so.
        minute = (now - timedelta(minutes=1)).strftime("%Y-%m-%dT%H-%M")
        path = chats / f"session-{minute}-{session_id}.jsonl"
        write_new(path, (about, *cut.entries[1:]))
        return path

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        """Return the command that goes on; before the first prompt, one that begins."""
        return ["gemini", "--session-id" if cut.is_empty else "--resume", session_id]


TRANSCRIPT = GeminiTranscript()
