"""The bars Holdfast is held to and the aims beyond them, as data."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks import contenders as who
from benchmarks.measure import Results


@dataclass(frozen=True)
class Bar:
    label: str
    part: str
    quantity: str
    ours: str
    peer: str | None
    """Without a peer, the figure itself is compared."""
    limit: float
    aim: float | None = None
    at_least: bool = False
    """More is better."""


@dataclass(frozen=True)
class Outcome:
    bar: Bar
    ours: float | None
    peer: float | None
    unit: str
    value: float | None
    """The ratio, or ours where there is no peer; None where one of them was not measured."""

    @property
    def holds(self) -> bool | None:
        return self._reaches(self.bar.limit)

    @property
    def reaches_aim(self) -> bool | None:
        return None if self.bar.aim is None else self._reaches(self.bar.aim)

    def _reaches(self, limit: float) -> bool | None:
        if self.value is None:
            return None
        return self.value >= limit if self.bar.at_least else self.value <= limit


def judge(bar: Bar, results: Results) -> Outcome:
    ours = results.get(bar.part, bar.quantity, bar.ours)
    peer = results.get(bar.part, bar.quantity, bar.peer) if bar.peer else None
    value = None
    if ours and peer:
        value = ours.value / peer.value
    elif ours and not bar.peer:
        value = ours.value
    known = ours or peer
    return Outcome(
        bar,
        ours.value if ours else None,
        peer.value if peer else None,
        known.unit if known else "",
        value,
    )


_MS = 1e-3
_SMALL, _LARGE = "10", "5,000"

_WORKSPACE = {
    "first": 0.3,
    "none": 1.1,
    "one": 0.9,
    "hundred": 0.7,
    "restore one": 0.6,
    "restore all": 0.65,
    "fork": 0.6,
    "bytes kept": 0.65,
}

BARS = [
    Bar("S1 save", "S1", "save", who.HOLDFAST, who.SAVER, 1.1, 0.8),
    Bar("S1 save", "S1", "save", who.HOLDFAST, who.CHECKPNT, 0.5, 0.35),
    Bar("S1 save", "S1", "save", who.HOLDFAST_NORMAL, who.SAVER, 0.45, 0.3),
    Bar("S2 save at 500", "S2", "save at 500", who.HOLDFAST, who.SAVER, 0.9, 0.5),
    Bar("S2 save at 500", "S2", "save at 500", who.HOLDFAST, who.CHECKPNT, 0.22, 0.12),
    Bar("S2 save at 500", "S2", "save at 500", who.HOLDFAST_NORMAL, who.SAVER, 0.65, 0.4),
    Bar("S2 save at 500", "S2", "save at 500", who.HOLDFAST_APPEND, who.SAVER, 0.45, 0.2),
    Bar(
        "S2 save at 500", "S2-redis", "save at 500", who.HOLDFAST_REDIS, who.SAVER_REDIS, 0.1, 0.04
    ),
    Bar(
        "S2 save at 500",
        "S2-redis",
        "save at 500",
        who.HOLDFAST_REDIS,
        who.CHECKPNT_REDIS,
        0.25,
        0.12,
    ),
    Bar(
        "S2 save at 500",
        "S2-postgres",
        "save at 500",
        who.HOLDFAST_POSTGRES,
        who.SAVER_POSTGRES,
        0.2,
        0.1,
    ),
    Bar("S2 save at 5,000", "S2-long", "save at 5,000", who.HOLDFAST, who.SAVER, 0.3, 0.1),
    *(
        Bar(
            f"S2 save at 500, {kind} messages",
            "S2-typed",
            f"save at 500, {kind}",
            who.HOLDFAST,
            who.SAVER,
            limit,
            limit / 2,
        )
        for kind, limit in {"pydantic": 0.5, "dataclass": 0.25, "LangChain": 0.6}.items()
    ),
    Bar("S2 bytes, 500 steps", "S2", "bytes kept", who.HOLDFAST, who.SAVER, 0.012, 0.009),
    Bar("S3 bytes, 24 steps", "S3", "bytes kept", who.HOLDFAST, who.SAVER, 0.03, 0.025),
    Bar("S4 bytes", "S4", "bytes kept", who.HOLDFAST, who.SAVER, 0.3, 0.2),
    Bar("S2 restore newest", "S2", "restore newest", who.HOLDFAST, who.SAVER, 2.0, 1.0),
    Bar("S2 restore newest", "S2", "restore newest", who.HOLDFAST, who.CHECKPNT, 0.45, 0.2),
    Bar(
        "S2 restore newest",
        "S2-postgres",
        "restore newest",
        who.HOLDFAST_POSTGRES,
        who.SAVER_POSTGRES,
        0.75,
        0.4,
    ),
    Bar("S3 restore newest", "S3", "restore newest", who.HOLDFAST, who.SAVER, 2.5, 1.0),
    Bar("S3 save", "S3", "save", who.HOLDFAST, who.SAVER, 0.2, 0.1),
    Bar("S4 timeline of 50", "S4", "timeline of 50", who.HOLDFAST, who.SAVER, 0.15),
    Bar("S4 recent 50", "S4", "recent 50", who.HOLDFAST, None, 2 * _MS),
    Bar("S4 10,000 infos", "S4", "recent 10,000", who.HOLDFAST, None, 50 * _MS),
    Bar("S5 64 tasks", "S5", "64 tasks", who.HOLDFAST_ASYNC, who.SAVER_ASYNC, 4, 6, True),
    Bar("S5 8 threads", "S5", "8 threads", who.HOLDFAST, who.SAVER, 1, 2, True),
    Bar("S5 4 processes", "S5", "4 processes", who.HOLDFAST_NORMAL, who.SAVER, 2.5, 4, True),
    Bar("LangGraph step at 500", "LG", "step at 500", who.GRAPH_OURS, who.GRAPH_SAVER, 0.8, 0.5),
    Bar(
        "LangGraph step at 500, async",
        "LG",
        "step at 500",
        who.GRAPH_OURS_ASYNC,
        who.GRAPH_SAVER_ASYNC,
        0.8,
        0.5,
    ),
    Bar(
        "LangGraph step at 500",
        "LG-postgres",
        "step at 500",
        who.GRAPH_OURS_POSTGRES,
        who.GRAPH_SAVER_POSTGRES,
        0.25,
        0.15,
    ),
    Bar(
        "LangGraph bytes, 500 steps",
        "LG",
        "bytes kept",
        who.GRAPH_OURS,
        who.GRAPH_SAVER_DELTA,
        0.5,
        0.15,
    ),
    *(
        Bar(f"{part} {quantity}", part, quantity, who.TREE_OURS, who.TREE_GIT, limit)
        for part in ("W-1", "W-2")
        for quantity, limit in _WORKSPACE.items()
    ),
    *(
        Bar(f"{part} {quantity}", part, quantity, ours, who.TREE_GIT, limit)
        for part in ("W-1", "W-2")
        for quantity, limit in {"none": 0.02, "one": 0.05}.items()
        for ours in (who.TREE_WATCHING, who.TREE_WATCHING_NORMAL)
    ),
    Bar("W-4 one edit of 2 GB", "W-4", "one edit", who.TREE_OURS, who.TREE_GIT, 0.3),
    Bar("W-4 bytes of an edit", "W-4", "bytes of an edit", who.TREE_OURS, None, 1_000_000),
    Bar(
        f"fork: time at {_LARGE} messages ÷ at {_SMALL}",
        "fork",
        f"fork at {_LARGE} ÷ at {_SMALL}",
        who.HOLDFAST_NORMAL,
        None,
        1.5,
    ),
    Bar(
        f"fork: bytes at {_LARGE} messages",
        "fork",
        f"bytes of a fork at {_LARGE}",
        who.HOLDFAST_NORMAL,
        None,
        2_048,
    ),
    Bar("diff of neighbours at 500", "fork", "diff of neighbours", who.HOLDFAST, None, 0.5 * _MS),
    Bar("import over bare Python", "import", "import holdfast", who.HOLDFAST, None, 30 * _MS),
]
