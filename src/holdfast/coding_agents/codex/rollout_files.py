"""Where Codex keeps its rollouts: ``$CODEX_HOME/sessions/YYYY/MM/DD/rollout-TIME-ID.jsonl``.

A thread that was taken back goes on in another file, ``rollout-TIME-ID_PART.jsonl``, and a fork in
one of its own; both name the thread or the part that they share their beginning with.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.coding_agents.codex import rollout
from holdfast.coding_agents.codex.rollout import Record
from holdfast.coding_agents.json_lines import JsonLines, write_new
from holdfast.errors import TranscriptError

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_DEEPEST = 50
"""Forks of forks that are followed."""


def home() -> Path:
    """Return the directory of Codex: CODEX_HOME, else ``~/.codex``."""
    given = os.environ.get("CODEX_HOME")
    return Path(given) if given else Path.home() / ".codex"


def read(path: str, files: JsonLines) -> list[Any] | None:
    """Return the entries of a rollout, with those that a fork shares with another thread.

    Where those are not found only its own are returned: what was written last is worth keeping.
    """
    entries = files.read(path)
    if entries is None:
        return None
    return _whole(entries, Path(path).expanduser(), files, _DEEPEST) or entries


def _whole(
    entries: Sequence[Any], path: Path, files: JsonLines, deepest: int
) -> list[Record] | None:
    """Return a thread from its beginning on; None if that is not found."""
    try:
        base = rollout.base_of(entries)
        if base is None:
            return list(entries)
        records = rollout.readable(entries)
    except TranscriptError:
        return None
    thread, end = base
    for place in _places(thread, path) if deepest else ():
        found = files.read(str(place))
        shared = None if not found else _whole(found, place, files, deepest - 1)
        if shared is not None:
            return rollout.joined(rollout.readable(shared), end, records)
    return None


def _places(thread: str, near: Path) -> Iterator[Path]:
    """Yield where the rollout of a thread, or a part, may be: its id tells the day it was begun."""
    if _UUID.fullmatch(thread) is None or len(near.parents) < 5:
        return
    begun = int(thread.replace("-", "")[:12], 16) / 1000
    name = f"rollout-*[-_]{thread}.jsonl"
    sessions = near.parents[3]
    try:
        days = [datetime.fromtimestamp(begun) + timedelta(days=each) for each in (0, -1, 1)]
    except (OSError, OverflowError, ValueError):  # a time that no clock has shown yet
        return
    for day in days:
        yield from sorted((sessions / f"{day:%Y/%m/%d}").glob(name))
    yield from sorted((sessions.parent / "archived_sessions").glob(name))


def write(records: Sequence[Record], thread: str, now: datetime) -> Path:
    """Write the rollout of a new thread; one that is there is never touched."""
    if _UUID.fullmatch(thread) is None:
        raise TranscriptError(f"Codex names its sessions by UUIDs: {thread!r} is none")
    folder = home() / "sessions" / f"{now:%Y/%m/%d}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"rollout-{now:%Y-%m-%dT%H-%M-%S}-{thread}.jsonl"
    write_new(path, records)
    return path
