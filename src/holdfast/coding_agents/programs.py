"""The coding agents that are known, by name; what is special about each is imported when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from holdfast.coding_agents.told import Moment, Told

if TYPE_CHECKING:
    from holdfast.coding_agents.json_lines import JsonLines
    from holdfast.coding_agents.settings import Settings
    from holdfast.coding_agents.transcript import Transcript

NAMES = ("claude-code", "codex", "gemini-cli", "opencode", "cursor", "generic")
"""Those that tell a hook what they do."""
WRAPPED = "wrap"
"""Stands for any program that tells nothing, and whose files ``holdfast wrap`` keeps."""
KNOWN = (*NAMES, WRAPPED)

USUAL_PATHS = {
    "session": "session_id",
    "event": "hook_event_name",
    "tool": "tool_name",
    "input": "tool_input",
    "output": "tool_response",
    "prompt": "prompt",
    "last_message": "last_assistant_message",
    "cwd": "cwd",
    "transcript": "transcript_path",
    "call_id": "tool_use_id",
    "subagent_id": "agent_id",
    "subagent_type": "agent_type",
}
"""Where events say what in the words of Claude Code, which others have taken over."""


@dataclass(frozen=True)
class Program:
    """What is known of a program."""

    name: str
    """Also the value of ``--from`` and, unless another is given, the agent_id of its sessions."""
    title: str
    command: str
    paths: Mapping[str, str]
    """Where its JSON says what: names of ``Told``, and paths with dots; several are parted by |."""
    moments: Mapping[str, Moment]
    """Its events; those that are not named are ``OTHER``."""
    read_only: frozenset[str] = frozenset()
    """Its tools that change no files."""
    own_tools: tuple[str, ...] = ("mcp__holdfast__",)
    """How the names of the tools begin that Holdfast itself serves to it."""
    name_of: Callable[[Told], str | None] = field(default=lambda told: None)
    """Gives what a step is called where the general words do not do."""
    failure_of: Callable[[Told], str | None] = field(
        default=lambda told: None if told.error is None else ""
    )
    """Gives the exit code of a call that failed, "" if it has none; None if it did not fail."""
    is_ignored: Callable[[Told], bool] = field(default=lambda told: False)
    """Whether nothing is kept of an event: nothing was done, or what it began tells of itself."""
    completed: Callable[[Told, JsonLines], Told] = field(default=lambda told, files: told)
    """Gives an event with what only the program's own files say: that it failed, or whose it is."""


def program(name: str) -> Program:
    """Return a program by its name."""
    found: Program = _part(name, "program").PROGRAM
    return found


def transcript(name: str) -> Transcript | None:
    """Return how a program keeps its conversations; None if that is not known."""
    module = _part(name, "transcript")
    return None if module is None else module.TRANSCRIPT


def settings(name: str) -> Settings | None:
    """Return how hooks get into a program; None if that is not known."""
    module = _part(name, "settings")
    return None if module is None else module.SETTINGS


def _part(name: str, part: str) -> Any:
    if name not in KNOWN:
        raise KeyError(name)
    module = f"{__package__}.{name.replace('-', '_')}.{part}"
    return import_module(module) if find_spec(module) is not None else None
