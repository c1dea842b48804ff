"""What coding agents tell their hooks, in each one's own words."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.cli.exits import UsageError

FIELDS = ("session", "event", "tool", "input", "output", "prompt", "cwd", "transcript")

SHAPES: dict[str, dict[str, str]] = {
    "claude-code": {
        "session": "session_id",
        "event": "hook_event_name",
        "tool": "tool_name",
        "input": "tool_input",
        "output": "tool_response",
        "prompt": "prompt",
        "cwd": "cwd",
        "transcript": "transcript_path",
    },
    "cursor": {
        "session": "conversation_id",
        "event": "hook_event_name",
        "tool": "tool_name",
        "input": "tool_input",
        "output": "tool_output",
        "prompt": "prompt",
        "cwd": "workspace_roots.0",
        "transcript": "transcript_path",
    },
}
SHAPES["gemini-cli"] = SHAPES["codex"] = SHAPES["claude-code"]
SHAPES["generic"] = {name: name for name in FIELDS}
"""Where each agent says what: paths into its JSON, with dots."""

_INDEX = re.compile("[0-9]{1,9}")
_LONGEST_NAME = 60
_COUNTED = 256 * 2**20
"""Of a transcript that is longer only the bytes are told."""
_NAMING = ("file_path", "path", "notebook_path", "command", "pattern", "url", "query")


@dataclass(frozen=True)
class Told:
    """What an agent has told its hook."""

    session: str
    event: str
    tool: str | None
    input: Any
    output: Any
    prompt: str | None
    cwd: str | None
    transcript: str | None

    @property
    def name(self) -> str:
        """What the checkpoint is called: the tool and what it was used on, or the event."""
        if self.tool is None:
            first = (self.prompt or "").strip().partition("\n")[0]
            text = f"{self.event}: {first}" if first else self.event
        else:
            text = f"{self.tool} {self._used_on()}".rstrip()
        if self.tool is not None and self.event.startswith(("Pre", "Before", "before")):
            text = f"before {text}"
        return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 1] + "…"

    def _used_on(self) -> str:
        if not isinstance(self.input, Mapping):
            return ""
        named = (self.input.get(key) for key in _NAMING)
        found = next((each for each in named if isinstance(each, str) and each), "")
        text = found.partition("\n")[0]
        if self.cwd and text.startswith(self.cwd + "/"):
            text = text[len(self.cwd) + 1 :]
        return text

    def state(self) -> dict[str, Any]:
        """Return what is kept of it."""
        said: dict[str, Any] = {"event": self.event}
        for name in ("tool", "input", "output", "prompt"):
            if getattr(self, name) is not None:
                said[name] = getattr(self, name)
        if self.transcript is not None:
            said["transcript"] = position(self.transcript)
        return said


def read(data: Any, shape: str, given: list[str]) -> Told:
    """Return what was told, in the words of an agent; ``given`` are NAME=PATH that go before."""
    if not isinstance(data, Mapping):
        raise UsageError("a hook is told a JSON object on its standard input")
    where = {**SHAPES[shape]}
    for each in given:
        name, sign, path = each.partition("=")
        if not sign or name not in FIELDS:
            raise UsageError(f"--map takes NAME=PATH with one of {', '.join(FIELDS)}, not {each!r}")
        where[name] = path
    found = {name: _at(data, path) for name, path in where.items()}
    session, event = found["session"], found["event"]
    if not isinstance(session, str) or not session:
        raise UsageError(f"the hook was told no session (looked for {where['session']!r})")
    return Told(
        session=session,
        event=event if isinstance(event, str) and event else "event",
        tool=_text(found["tool"]),
        input=found["input"],
        output=found["output"],
        prompt=_text(found["prompt"]),
        cwd=_text(found["cwd"]),
        transcript=_text(found["transcript"]),
    )


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _at(data: Any, path: str) -> Any:
    for part in path.split("."):
        if isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(data, list) and _INDEX.fullmatch(part) and int(part) < len(data):
            data = data[int(part)]
        else:
            return None
    return data


def position(transcript: str) -> dict[str, Any]:
    """Return how far a transcript has come: the file, its bytes and its lines.

    The event names the file, so it is looked at with care: never waited for, and only so far. A
    transcript that is not there yet, lies on another machine or is no file has no position.
    """
    said: dict[str, Any] = {"path": transcript, "bytes": None, "lines": None}
    try:
        # A fifo would be waited for, and a terminal would become ours.
        how = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        file = os.open(Path(transcript).expanduser(), how)
    except (OSError, ValueError, RuntimeError):  # a NUL in the name; the home of nobody
        return said
    try:
        status = os.fstat(file)
        if stat.S_ISREG(status.st_mode):
            said["bytes"] = status.st_size
            if status.st_size <= _COUNTED:
                said["lines"] = _lines(file, status.st_size)
    except OSError:  # it cannot be read after all
        return said
    finally:
        os.close(file)
    return said


def _lines(file: int, size: int) -> int:
    """Return the lines among the first bytes of a file: it may grow while it is read."""
    lines = 0
    while size > 0 and (part := os.read(file, min(size, 2**20))):
        size -= len(part)
        lines += part.count(b"\n")
    return lines
