"""What a store of some size holds: sessions as agents leave them, by the number of checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.workloads.text import Writer

LONG, PROBE, QUIET = "long-lived", "probe", "quiet"
"""A session that grows with the store, one that is the same in each, and a channel."""
PROBER, REVIEWER = "prober", "reviewer"
AGENTS, PROJECTS = 20, 10
PROBED = 100
FORKS, FORKED = 3, 5
EVER_NEW = 1_000_000
"""Where the numbers begin that only the probe's checkpoints have as their ``attempt``."""
OFFERED = 5
"""One session of so many is handed to another agent, and that is settled."""
OPEN_OFFERS = 5
_LONGEST = 10_000
_STRETCH = 300


@dataclass(frozen=True)
class Planned:
    """A session to be saved."""

    number: int
    agent: str
    name: str
    checkpoints: int

    @property
    def is_offered(self) -> bool:
        """Whether it ends with an offer to another agent."""
        return self.name.startswith("task-") and self.number % OFFERED == 0

    def tags(self, step: int) -> dict[str, Any]:
        """A common tag, one of its own, and one of ever new values."""
        first = EVER_NEW if self.name == PROBE else 0
        return {
            "project": f"project-{self.number % PROJECTS}",
            "ticket": f"T-{self.number}" if self.name != PROBE else "T-probe",
            "attempt": first + step,
        }


@dataclass(frozen=True)
class Shape:
    """A store of about ``size`` checkpoints."""

    size: int
    length: int = 200
    """How many checkpoints an ordinary session has."""

    @property
    def long(self) -> Planned:
        """Return the session that lives as long as the store."""
        return Planned(0, "builder", LONG, min(_LONGEST, self.size // 5))

    @property
    def probe(self) -> Planned:
        """Return the session that is looked at: as long in every store."""
        return Planned(1, PROBER, PROBE, PROBED)

    @property
    def ordinary(self) -> list[Planned]:
        """Return all other sessions."""
        left = self.size - self.long.checkpoints - PROBED - FORKS * FORKED
        count = max(2, left // self.length)
        return [
            Planned(number, f"agent-{number % AGENTS:02d}", f"task-{number:06d}", self.length)
            for number in range(count)
        ]


class States:
    """Working memories of small agents, about 2 KB each, of which 300 bytes change with a step."""

    def __init__(self) -> None:
        self._text = Writer(7).text(200_000)

    def of(self, session: Planned) -> Iterator[Mapping[str, Any]]:
        """Give the states of a session, one for each checkpoint."""
        at = session.number * 977
        fixed = {
            "goal": self._piece(at, 200),
            "notes": {f"note-{n}": self._piece(at + 131 * n, 120) for n in range(5)},
            "limits": {"max_steps": 200, "budget": 12.5, "tools": ["bash", "search", "edit"]},
        }
        titles = [self._piece(at + 61 * n, 60) for n in range(8)]
        for step in range(session.checkpoints):
            done = step * len(titles) // session.checkpoints
            yield {
                **fixed,
                "step": step,
                "plan": [
                    {"id": n, "title": title, "status": "completed" if n < done else "pending"}
                    for n, title in enumerate(titles)
                ],
                "last_output": f"{session.name} {step} {self._piece(at + step * 307, _STRETCH)}",
            }

    def _piece(self, at: int, length: int) -> str:
        at %= len(self._text) - _STRETCH
        return self._text[at : at + length]
