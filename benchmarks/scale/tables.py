"""What was measured as Markdown: figures of each size, and how they grew from first to last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.scale.clock import Cost
from benchmarks.scale.long_session import Opened
from benchmarks.scale.questions import QUESTIONS
from benchmarks.scale.upkeep import Kept, Pauses
from benchmarks.table import write_readme

AGENTS, KEPT = 1_000_000, 100
PAGE = Path(__file__).parents[1] / "SCALE.md"


def write(section: str, text: str) -> None:
    """Put what was measured of a store, or of the session, in its place on the page."""
    write_readme(text, f"<!-- {section}: start -->", f"<!-- {section}: end -->", PAGE)


def questions(found: Mapping[str, Mapping[int, Cost]], forgets_ended: bool) -> str:
    """Return the table of what is asked, CPU and wall in milliseconds.

    CPU tells best how it grew, unless the server forgets that of connections which have ended: then
    wall time does for commands, each of which has its own.
    """
    asked = {each.name: each for each in QUESTIONS}
    sizes = list(next(iter(found.values())))
    rows = []
    for name, costs in found.items():
        first, last = costs[sizes[0]], costs[sizes[-1]]
        cpu, wall, bound = last.cpu / first.cpu, last.wall / first.wall, asked[name].bound
        grown = wall if forgets_ended and asked[name].is_command else cpu
        held = "" if bound is None else "yes" if grown <= bound else "**no**"
        rows.append(
            [
                name,
                *(f"{_ms(costs[size].cpu)} / {_ms(costs[size].wall)}" for size in sizes),
                f"{cpu:.1f}",
                f"{wall:.1f}",
                "" if bound is None else f"≤ {bound:g}",
                held,
            ]
        )
    head = ["CPU / wall in ms", *(f"{size:,}" for size in sizes)]
    return _table([*head, "× CPU", "× wall", "bar", "holds"], rows)


def room(found: Mapping[int, tuple[int, int, float]]) -> str:
    """Return what a checkpoint takes, and how fast they were saved, of each size."""
    rows = [
        [
            f"{size:,}",
            f"{count:,}",
            f"{taken / 1e6:,.0f} MB",
            f"{taken / count:,.0f} B",
            f"{r:,.0f}",
        ]
        for size, (count, taken, r) in found.items()
    ]
    return _table(["size", "checkpoints", "room", "of each", "saved a second"], rows)


def fleet(taken_by_each: float, save: Cost) -> str:
    """Return what a million agents would take that are like those of the largest store."""
    room, cores = AGENTS * KEPT * taken_by_each / 1e9, AGENTS * save.cpu / 60
    return (
        f"So {AGENTS:,} agents, of each of which {KEPT} checkpoints are kept, take {room:,.0f} GB. "
        f"If each saves once a minute ({AGENTS / 60:,.0f} a second), client and server together "
        f"take {cores:,.1f} cores like these."
    )


def upkeep(found: Mapping[str, Mapping[int, Kept]]) -> str:
    """Return the table of what looks after a store, and of who waited for it meanwhile."""
    rows = [
        [
            what,
            f"{size:,}",
            kept.did,
            f"{kept.wall:,.1f} s / {kept.cpu:,.1f} s",
            f"{kept.peak / 1e6:,.0f} MB",
            _pauses(kept.same),
            _pauses(kept.other),
        ]
        for what, sizes in found.items()
        for size, kept in sizes.items()
    ]
    head = ["", "size", "did", "wall / CPU", "peak memory"]
    return _table([*head, "writer in the same process", "in another"], rows)


def sessions(found: Mapping[str, Mapping[int, Opened]]) -> str:
    """Return the table of a session that lives for long."""
    rows = []
    for kind, opened in found.items():
        counts = list(opened)
        first, last = opened[counts[0]], opened[counts[-1]]
        for name in ("opening", "call", "checkpoint", "rollback"):
            costs: dict[int, Cost] = {count: getattr(opened[count], name) for count in counts}
            grown = costs[counts[-1]].cpu / costs[counts[0]].cpu
            cells = [f"{_ms(cost.cpu)} / {_ms(cost.wall)}" for cost in costs.values()]
            held = "yes" if grown <= 1.5 else "**no**"
            rows.append([f"{name}, after so many {kind}", *cells, f"{grown:.1f}", "≤ 1.5", held])
        peaks = [f"{each.peak / 1e6:,.0f} MB" for each in opened.values()]
        held = "yes" if last.peak < 60e6 else "**no**"
        grown = last.peak / first.peak
        rows.append([f"memory after {kind}", *peaks, f"{grown:.1f}", "< 60 MB", held])
    counts = list(next(iter(found.values())))
    head = ["CPU / wall in ms", *(f"{count:,}" for count in counts)]
    return _table([*head, "× CPU", "bar", "holds"], rows)


def made_with(facts: Mapping[str, str]) -> str:
    """Return what it was made with."""
    return "\n".join(f"- {name}: {fact}" for name, fact in facts.items())


def _pauses(pauses: Pauses) -> str:
    return f"{_ms(pauses.worst)} ms (99 %: {_ms(pauses.usual)}, {pauses.saves:,} saves)"


def _ms(seconds: float) -> str:
    value = seconds * 1e3
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
