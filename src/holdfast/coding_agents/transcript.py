"""What every program's conversation can do: be read, cut at a point, and written as a new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.told import Moment, Told


@dataclass(frozen=True, kw_only=True)
class Point:
    """Where a conversation is cut: what a checkpoint knows of its place in it.

    A prompt's point is before the prompt, a call's after its result, an end's after the last
    message.
    """

    session: str
    moment: Moment
    entries: Sequence[Any] = ()
    """The conversation as it was known at the checkpoint; the result may not be in it yet."""
    transcript: str | None = None
    tool: str | None = None
    input: Any = None
    output: Any = None
    error: Any = None
    prompt: str | None = None
    last_message: str | None = None
    call_id: str | None = None
    turn_id: str | None = None
    prompt_id: str | None = None
    subagent_id: str | None = None

    @classmethod
    def of_state(cls, session: str, state: Mapping[str, Any]) -> Point:
        """Return the point that the state of a recorded checkpoint tells of."""
        kept = state.get("conversation")
        entries = kept.get("entries") if isinstance(kept, Mapping) else None
        where = state.get("transcript")
        path = where.get("path") if isinstance(where, Mapping) else None
        names = ("tool", "prompt", "last_message", "call_id", "turn_id", "prompt_id", "subagent_id")
        moment = state.get("moment")
        return cls(
            session=session,
            moment=Moment(moment) if moment in list(Moment) else Moment.OTHER,
            entries=entries if isinstance(entries, (list, tuple)) else (),
            transcript=path if isinstance(path, str) else None,
            input=state.get("input"),
            output=state.get("output"),
            error=state.get("error"),
            **{name: state[name] for name in names if isinstance(state.get(name), str)},
        )


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A conversation up to a point, as entries of the program whose ids are still the old ones."""

    entries: list[Any]
    note: str | None = None
    """What the user has to know of it, such as a result that was never written."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing had been said yet."""
        return not self.entries


class Transcript(Protocol):
    """How a program keeps its conversations."""

    format: str
    """Names the shape of the entries, and is stored with them."""

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        """Return the conversation as it is now; None if there is none to be read."""

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        """Return the entries up to a point.

        ``later`` are the entries that later checkpoints and the live file have, for a result that
        was not written yet. Entries that are not as known are refused with a TranscriptError.
        """

    def live(self, point: Point) -> list[Any] | None:
        """Return what the program's own file has now; None if it is gone."""

    def new_id(self) -> str:
        """Return an id for a new session."""

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        """Write a new session where the program looks for those of a directory.

        No file that is there is touched. None if there is nothing to write.
        """

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        """Return the command that goes on with a session that was written."""
