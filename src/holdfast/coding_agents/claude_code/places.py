"""Where Claude Code keeps what is a user's, and the conversations of a project."""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LONGEST = 200
_SUBAGENT = re.compile("[A-Za-z0-9_-]{1,100}")


def of_user() -> Path:
    """Return the directory of a user's settings and sessions."""
    given = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(given) if given else Path.home() / ".claude"


def conversations_of(folder: Path) -> Path:
    """Return the directory in which the program looks for the sessions of a project."""
    return of_user() / "projects" / slug(os.path.realpath(folder))


def slug(path: str) -> str:
    """Return what the program calls the directory of a project.

    >>> from holdfast.coding_agents.claude_code.places import slug
    >>> slug("/home/ada/my.page")
    '-home-ada-my-page'
    """
    units = _utf16(unicodedata.normalize("NFC", path))
    text = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}-{_hash(units)}"


def _utf16(text: str) -> list[int]:
    """Return the units by which JavaScript counts."""
    data = text.encode("utf-16-le", "surrogatepass")
    return [int.from_bytes(data[i : i + 2], "little") for i in range(0, len(data), 2)]


def _hash(units: list[int]) -> str:
    number = 0
    for unit in units:
        number = (number * 31 + unit) & 0xFFFFFFFF
    number = abs(number - 2**32 if number >= 2**31 else number)
    digits = ""
    while number or not digits:
        number, rest = divmod(number, 36)
        digits = _DIGITS[rest] + digits
    return digits


def file_of(transcript: str | None, subagent_id: str | None) -> str | None:
    """Return the file of a conversation; a subagent's is beside that of its parent.

    The id comes from an event, so one that could lead elsewhere has no file.
    """
    if transcript is None or subagent_id is None:
        return transcript
    if not _SUBAGENT.fullmatch(subagent_id):
        return None
    return os.path.join(
        transcript.removesuffix(".jsonl"), "subagents", f"agent-{subagent_id}.jsonl"
    )
