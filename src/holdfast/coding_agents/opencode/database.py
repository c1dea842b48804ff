"""Looks into the database of opencode, and changes nothing there."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.coding_agents.opencode.ids import SESSION
from holdfast.errors import TranscriptError

_PLAIN = ("id", "slug", "directory", "title", "version", "agent")
_AS_JSON = ("model", "permission", "metadata")
_SECONDS = 2.0


def path() -> Path:
    """Return where the database is."""
    data = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "opencode"
    named = os.environ.get("OPENCODE_DB") or "opencode.db"
    return data / named  # an absolute one goes before


def session(session_id: str) -> dict[str, Any] | None:
    """Return a session as ``opencode export`` gives it; None if it is not there."""
    file = path()
    if SESSION.fullmatch(session_id) is None or not file.is_file():
        return None
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=_SECONDS)
        ) as database:
            database.row_factory = sqlite3.Row
            row = database.execute("SELECT * FROM session WHERE id = ?", (session_id,)).fetchone()
            return None if row is None else _exported(database, row)
    except (sqlite3.Error, ValueError, RecursionError, LookupError, TypeError) as error:
        raise TranscriptError(
            f"the database of opencode is not as known: {error!r} in {file}"
        ) from error


def _exported(database: sqlite3.Connection, row: sqlite3.Row) -> dict[str, Any]:
    info: dict[str, Any] = {name: row[name] for name in _PLAIN if row[name] is not None}
    info |= {name: json.loads(row[name]) for name in _AS_JSON if row[name] is not None}
    info["projectID"] = row["project_id"]
    info["time"] = {"created": row["time_created"], "updated": row["time_updated"]}
    parts: dict[str, list[Any]] = {}
    for part in database.execute(
        "SELECT id, message_id, data FROM part WHERE session_id = ? ORDER BY id", (row["id"],)
    ):
        own = {"id": part["id"], "messageID": part["message_id"], "sessionID": row["id"]}
        parts.setdefault(part["message_id"], []).append({**json.loads(part["data"]), **own})
    messages = [
        {
            "info": {**json.loads(each["data"]), "id": each["id"], "sessionID": row["id"]},
            "parts": parts.get(each["id"], []),
        }
        for each in database.execute(
            "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id",
            (row["id"],),
        )
    ]
    return {"info": info, "messages": messages}
