"""What became of an exploration: one outcome for each strategy, compared in a table."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from holdfast.core.diff import Diff

if TYPE_CHECKING:
    from holdfast.workspace import TreeDiff

Status = Literal["done", "failed", "timed out", "stopped"]


@dataclass(frozen=True)
class Outcome:
    """What became of one strategy."""

    name: str
    session_id: str
    status: Status
    score: float | None = None
    result: Any = None
    error: str | None = None
    seconds: float = 0.0
    calls: int = 0
    """How many tool calls it made."""
    checkpoint_id: str | None = None
    """Where it stands at the end."""
    changes: Diff | None = None
    """What it changed in the state."""
    files: TreeDiff | None = None
    """What it changed in the workspace."""

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as ``to_json`` writes it."""
        return {
            "name": self.name,
            "session_id": self.session_id,
            "status": self.status,
            "score": self.score,
            "error": self.error,
            "seconds": round(self.seconds, 3),
            "calls": self.calls,
            "checkpoint_id": self.checkpoint_id,
            "state_changes": 0 if self.changes is None else len(self.changes),
            "file_changes": _count(self.files),
        }


def _count(files: TreeDiff | None) -> int:
    if files is None:
        return 0
    changes = (files.added, files.removed, files.modified, files.renamed, files.mode)
    return sum(map(len, changes))


@dataclass(frozen=True)
class Exploration:
    """What became of all strategies, and which was best."""

    base_id: str
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def winner(self) -> Outcome | None:
        """The strategy that was done with the highest score; the first of equal ones."""
        done = [each for each in self.outcomes if each.status == "done"]
        scored = [(each.score, each) for each in done if each.score is not None]
        comparable = [pair for pair in scored if not math.isnan(pair[0])]
        return max(comparable, key=lambda pair: pair[0], default=(0, None))[1]

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __getitem__(self, name: str) -> Outcome:
        for each in self.outcomes:
            if each.name == name:
                return each
        raise KeyError(name)

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        winner = self.winner
        return {
            "base_id": self.base_id,
            "winner": None if winner is None else winner.name,
            "outcomes": [each.as_dict() for each in self.outcomes],
        }

    def to_json(self) -> str:
        """Return the comparison as JSON."""
        return json.dumps(self.as_dict(), indent=2)

    def _repr_html_(self) -> str:
        from holdfast.core.html_form import Row, table

        winner = self.winner
        rows = (
            Row(
                ["★" if each is winner else "", *_cells(each)], "chosen" if each is winner else None
            )
            for each in self.outcomes
        )
        about = [f"from {self.base_id}", *([] if winner is None else [f"best: {winner.name}"])]
        heads = ["", *_COLUMNS]
        return table("Exploration", about, heads, rows, _ROWS_SHOWN, len(self.outcomes))

    def __str__(self) -> str:
        winner = self.winner
        rows = [["", *_COLUMNS]]
        for each in self.outcomes:
            *cells, error = _cells(each)
            rows.append(["*" if each is winner else "", *cells, error[:60]])
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
        return "\n".join(lines)


def _cells(each: Outcome) -> list[str]:
    data = each.as_dict()
    return [
        each.name,
        each.status,
        "" if each.score is None else f"{each.score:g}",
        f"{each.seconds:.1f}",
        str(each.calls),
        str(data["state_changes"]),
        str(data["file_changes"]),
        each.error or "",
    ]


_ROWS_SHOWN = 100
_COLUMNS = ("strategy", "status", "score", "seconds", "calls", "state", "files", "error")
