"""A program whose conversations are as simple as can be, for the tests of rewinding.

It is the program "generic" with a transcript: a line of JSON for each message, in the directory
that TALKS names. ``python -m tests.cli.talks`` is the command with it.
"""

import json
import os
import signal
import sys
import uuid
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.coding_agents.json_lines import JsonLines
from holdfast.coding_agents.told import Moment, Told
from holdfast.coding_agents.transcript import Cut, Point
from holdfast.errors import TranscriptError

ROOT = Path(__file__).parents[2]


class TalkTranscript:
    """Conversations of messages, of which a result names its call."""

    format = "talk/1"

    def read(self, told: Told, files: JsonLines) -> list[Any] | None:
        return None if told.transcript is None else files.read(told.transcript)

    def cut(self, point: Point, later: Iterator[Sequence[Any]]) -> Cut:
        for entry in point.entries:
            if not isinstance(entry, dict) or not isinstance(entry.get("message"), dict):
                raise TranscriptError(f"an entry is {entry!r}, and no message")
        entries = list(point.entries)
        if point.moment is not Moment.CALL:
            return Cut(entries=entries)
        for known in chain([entries], later):
            for at, entry in enumerate(known):
                if entry.get("answers") == point.call_id:
                    return Cut(entries=list(known[: at + 1]))
        return Cut(entries=entries, note="the result of the call was never written")

    def live(self, point: Point) -> list[Any] | None:
        return None if point.transcript is None else JsonLines().read(point.transcript)

    def new_id(self) -> str:
        return str(uuid.uuid4())

    def write(self, cut: Cut, session_id: str, folder: Path) -> Path | None:
        if cut.is_empty:
            return None
        path = Path(os.environ["TALKS"], f"{session_id}.jsonl")
        with open(path, "x") as file:
            for entry in cut.entries:
                file.write(json.dumps({**entry, "in": str(folder), "session": session_id}) + "\n")
        return path

    def resume(self, session_id: str, cut: Cut) -> list[str]:
        return ["talk", "--new", session_id] if cut.is_empty else ["talk", "--resume", session_id]


TRANSCRIPT = TalkTranscript()


def register() -> None:
    """Make it the transcript of the program."""
    import holdfast.coding_agents.generic

    sys.modules.setdefault("tests.cli.talks", sys.modules[__name__])
    holdfast.coding_agents.generic.__path__.append(str(Path(__file__).with_name("talking")))


def main() -> int:
    """Run the command; it kills itself at the point that KILL_AT names."""
    from holdfast.cli import main as command
    from holdfast.system import crash_points

    register()
    if at := os.environ.get("KILL_AT"):
        crash_points.install(
            lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == at else None
        )
    return command()


if __name__ == "__main__":
    sys.exit(main())
