"""Checkpoints as a tree of parents and children."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.core.html_form import Row, escaped, field_of, table
from holdfast.model import CheckpointInfo
from holdfast.verbs.chains import circle_error, circles

_SHOWN = 18
_ID = "checkpoint_id"
_ROWS_SHOWN = 100


@dataclass(slots=True)
class TreeNode:
    """A checkpoint and those that follow it, oldest first."""

    info: CheckpointInfo
    children: list[TreeNode] = field(default_factory=list)


@dataclass(slots=True)
class Tree:
    """The checkpoints of a session and of the sessions forked from it."""

    roots: list[TreeNode]

    def __iter__(self) -> Iterator[TreeNode]:
        """Give every node, parents before children."""
        stack = list(reversed(self.roots))
        while stack:
            node = stack.pop()
            yield node
            stack.extend(reversed(node.children))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"<Tree of {len(self):,} checkpoints with {len(self.roots):,} roots>"

    def __str__(self) -> str:
        shown = self._shown()
        lines: list[str] = []
        for info, depth in self._lines():
            name = f" {info.step_name}" if info.step_name else ""
            place = f"{info.session_id}#{info.step_index}"
            lines.append(f"{'  ' * depth}* {info.checkpoint_id[:shown]} {place}{name}")
        return "\n".join(lines)

    def _lines(self) -> Iterator[tuple[CheckpointInfo, int]]:
        """Give every checkpoint as it is drawn, and how far it is moved in."""
        stack = [(root, 0) for root in reversed(self.roots)]
        while stack:
            node, depth = stack.pop()
            yield node.info, depth
            # The first child goes on with the line; the others branch off.
            branches = [(child, depth + 1) for child in node.children[1:]]
            stack.extend(reversed([*branches, *((c, depth) for c in node.children[:1])]))

    def _repr_html_(self) -> str:
        lines = list(self._lines())
        sessions = len({(escaped(info.agent_id), escaped(info.session_id)) for info, _ in lines})
        about = [_number(len(lines), "checkpoint"), _number(sessions, "session")]
        names = ("session_id", "step_index", "step_name", "created_at")
        rows = (
            Row([field_of(info, each) for each in (*names, _ID)], depth=depth)
            for info, depth in reversed(lines)
        )
        heads = ["session", "step", "name", "time", "checkpoint"]
        return table("Tree, the newest first", about, heads, rows, _ROWS_SHOWN, len(lines))

    def _shown(self) -> int:
        """Return how much of an id tells it apart from all others in the tree."""
        ids = [node.info.checkpoint_id for node in self]
        longest = max(map(len, ids), default=0)
        for length in range(_SHOWN, longest):
            if len({each[:length] for each in ids}) == len(ids):
                return length
        return longest


def _number(count: int, of: str) -> str:
    return f"{count:,} {of}{'' if count == 1 else 's'}"


def grow(infos: list[CheckpointInfo], session_id: str) -> Tree:
    """Return the tree that a session is part of: its checkpoints and all that descend from them.

    They are given as listings give them, the newest first.
    """
    nodes = {info.checkpoint_id: TreeNode(info) for info in infos}
    oldest_first = list(nodes.values())[::-1]
    for node in oldest_first:
        parent = nodes.get(node.info.parent_id or "")
        if parent is not None and parent is not node:
            parent.children.append(node)
    roots = []
    reached: set[str] = set()
    for node in oldest_first:
        parent = nodes.get(node.info.parent_id or "")
        own = node.info.session_id == session_id and node.info.checkpoint_id not in reached
        if own and (parent is None or parent.info.session_id != session_id):
            roots.append(node)
            _reach(node, reached)
    left = {key: node.info.parent_id for key, node in nodes.items() if key not in reached}
    for circle in circles(left):
        if any(nodes[key].info.session_id == session_id for key in circle):
            raise circle_error(circle)
    return Tree(roots)


def _reach(root: TreeNode, reached: set[str]) -> None:
    """Follow a root, leaving out what was reached already: records made by hand may meet again."""
    reached.add(root.info.checkpoint_id)
    stack = [root]
    while stack:
        node = stack.pop()
        node.children = [c for c in node.children if c.info.checkpoint_id not in reached]
        reached.update(child.info.checkpoint_id for child in node.children)
        stack.extend(node.children)
