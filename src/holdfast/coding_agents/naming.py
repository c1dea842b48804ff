"""What the steps of a coding agent are called, in the words of who watches it."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.coding_agents.programs import Program
from holdfast.coding_agents.told import Moment, Told

_LONGEST = 60
_NAMING = (
    *("file_path", "filePath", "path", "notebook_path", "absolute_path", "command", "description"),
    *("pattern", "url", "query"),
)


def step_name(told: Told, program: Program) -> str:
    """Return what a step is called: ``you: Make it``, ``Bash npm test (failed, 3)``."""
    failure = program.failure_of(told) if told.moment is Moment.CALL else None
    end = "" if failure is None else f" (failed, {failure})" if failure else " (failed)"
    text = " ".join((program.name_of(told) or _usual(told)).split())
    room = _LONGEST - len(end)
    return (text if len(text) <= room else text[: room - 1] + "…") + end


def _usual(told: Told) -> str:
    if told.moment is Moment.PROMPT:
        return f"you: {_first_line(told.prompt)}" if told.prompt else "you"
    if told.moment in (Moment.END, Moment.SUBAGENT_END):
        return f"agent: {_first_line(told.last_message)}" if told.last_message else "agent: done"
    if told.tool is None:
        return f"{told.event}: {_first_line(told.prompt)}" if told.prompt else told.event
    before = "before " if told.moment is Moment.BEFORE_CALL else ""
    return f"{before}{told.tool} {used_on(told)}"


def used_on(told: Told) -> str:
    """Return what a tool was used on: a file, as seen from the project, or a command."""
    if not isinstance(told.input, Mapping):
        return ""
    named = (told.input.get(key) for key in _NAMING)
    text = _first_line(next((each for each in named if isinstance(each, str) and each), ""))
    if told.cwd and text.startswith(told.cwd + "/"):
        text = text[len(told.cwd) + 1 :]
    return text


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]
