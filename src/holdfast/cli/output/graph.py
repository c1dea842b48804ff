"""Trees of checkpoints drawn as lines, the newest first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

UNICODE = {"|": "│", "*": "○", "@": "@", "x": "×", "o": "◌", "+": "├", "-": "─", "^": "┴", "'": "╯"}
ASCII = {"|": "|", "*": "*", "@": "@", "x": "x", "o": "o", "+": "+", "-": "-", "^": "-", "'": "'"}


@dataclass(frozen=True)
class Row:
    """A line of the drawing; ``key`` is the checkpoint on it, if there is one."""

    drawing: str
    key: str | None = None


_KEPT_FREE = ""


def draw(
    nodes: Iterable[tuple[str, str | None]],
    symbols: dict[str, str],
    first: str | None = None,
    unicode: bool = True,
) -> Iterator[Row]:
    """Yield the rows of a tree of nodes and their parents, every child before its parent.

    A lane leads from a child down to its parent. Where several meet, a line joins them. The lane
    that begins with ``first`` is the leftmost.
    """
    marks = UNICODE if unicode else ASCII
    lanes: list[str | None] = [] if first is None else [_KEPT_FREE]
    for key, parent in nodes:
        meeting = [at for at, wanted in enumerate(lanes) if wanted == key]
        if len(meeting) > 1:
            yield Row(_join(lanes, meeting, marks))
            for at in meeting[1:]:
                lanes[at] = None
        if meeting:
            own = meeting[0]
        elif key == first and _KEPT_FREE in lanes:
            own = lanes.index(_KEPT_FREE)
        elif None in lanes:
            own = lanes.index(None)
        else:
            lanes.append(None)
            own = len(lanes) - 1
        lanes[own] = key
        symbol = marks[symbols.get(key, "*")]
        cells = [
            symbol if at == own else marks["|"] if lane else " " for at, lane in enumerate(lanes)
        ]
        yield Row(" ".join(cells).rstrip(), key)
        lanes[own] = parent
        while lanes and lanes[-1] is None:
            lanes.pop()


def _join(lanes: list[str | None], meeting: list[int], marks: dict[str, str]) -> str:
    first, last = meeting[0], meeting[-1]
    drawn = ""
    for at, lane in enumerate(lanes):
        inside = first < at <= last
        gap = (marks["-"] if inside else " ") if at else ""
        if at == first:
            cell = marks["+"]
        elif at == last:
            cell = marks["'"]
        elif at in meeting:
            cell = marks["^"]
        elif lane:
            cell = marks["|"]
        else:
            cell = marks["-"] if inside else " "
        drawn += gap + cell
    return drawn.rstrip()


def newest_first(nodes: dict[str, str | None], order: list[str]) -> list[tuple[str, str | None]]:
    """Nodes with their parents, every child before its parent, otherwise in the given order.

    Parents that are not among them are left out; so is what would make a circle.
    """
    children: dict[str, int] = dict.fromkeys(nodes, 0)
    for parent in nodes.values():
        if parent in children:
            children[parent] += 1
    placed: list[tuple[str, str | None]] = []
    waiting = [key for key in order if key in nodes]
    left = set(waiting)
    while waiting:
        # A parent that is newer than a child (a clock was set back) waits for it.
        key = next((key for key in waiting if not children[key]), waiting[0])
        waiting.remove(key)
        left.discard(key)
        parent = nodes[key]
        if parent in children:
            children[parent] -= 1
        placed.append((key, parent if parent in left else None))
    return placed
