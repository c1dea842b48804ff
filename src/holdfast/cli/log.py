"""``holdfast log``: checkpoints, newest first, as a list or a tree."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from holdfast.cli.exits import OK
from holdfast.cli.graph import draw, newest_first
from holdfast.cli.naming import Names, Short
from holdfast.cli.opening import Looking, look_at
from holdfast.cli.parsing import Parser, add_session, count
from holdfast.cli.recoveries import recoveries_of
from holdfast.cli.shown import (
    Progress,
    alive_among,
    checkpoint_json,
    live_ids,
    markers_of,
    plans_of,
    step_of,
)
from holdfast.cli.terminal import Terminal
from holdfast.cli.words import age, clean, cut, pad, size, width
from holdfast.stores.base import Query

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

_LONGEST_NAME = 60
_ROOM_FOR_MARKS = 15
_MARKS = {"head": "head", "failed": "bad", "rolled back": "dim", "handed off": "warn"}


def log(parser: Parser) -> None:
    """Set up the command."""
    parser.explain(
        "Marks: @ the head, × failed, ◌ rolled back (it leads to no head any more), ○ any other.\n"
        "Columns: the end of the id (enough to name it), step name, session, age, tasks done, "
        "size.",
        "holdfast log",
        "holdfast log --graph fix-42",
        "holdfast log --all -n 20 --json",
    )
    add_session(parser, positional=True)
    parser.add_argument(
        "--graph", action="store_true", help="the tree, with what was forked from it or led to it"
    )
    parser.add_argument("--all", action="store_true", help="all sessions")
    parser.add_argument(
        "-n", "--limit", type=count, metavar="N", help="at most so many (default: 50, a tree: all)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show the checkpoints that are asked for."""
    with look_at(options) as client:
        view = View(client, options)
        if terminal.json:
            terminal.emit({"checkpoints": [view.json(info) for info in view.shown]})
            return OK
        if not view.shown:
            terminal.line("no checkpoints yet")
        elif options.graph:
            _tree(view, terminal)
        else:
            for info in view.shown:
                terminal.line(
                    view.line(info, terminal, terminal.width, view.symbol(info, terminal))
                )
                for recovery in view.recoveries.get(info.checkpoint_id, ()):
                    terminal.line(terminal.paint(f"   {clean(str(recovery))}", "warn"))
        if view.left_out:
            terminal.line(f"… and {view.left_out:,} older (-n says how many are shown)")
    return OK


class View:
    """The checkpoints to be shown, and what is said of each."""

    def __init__(self, client: Looking, options: Namespace) -> None:
        names = Names(client)
        self.sessions = names.sessions
        self.session: SessionInfo | None = None
        if (self.sessions and not options.all) or options.session is not None:
            self.session = names.session(options.session)
        limit = options.limit if options.limit is not None else None if options.graph else 50
        if self.session is not None and not options.graph:
            agent, session = self.session.agent_id, self.session.session_id
            own = Query(agent_id=agent, session_id=session, limit=limit)
            self.shown = client.store.query(own)
            self.left_out = self.session.checkpoints - len(self.shown)
            self._alive = alive_among(client.store, self.shown, self.session)
        else:
            every = client.store.query(Query())
            if self.session is not None:
                every = _related(every, self.session)
            self.shown = every if limit is None else every[:limit]
            self.left_out = len(every) - len(self.shown)
            self._alive = live_ids(every, self.sessions)
        self._heads = {each.head.checkpoint_id for each in self.sessions}
        self._progress = plans_of(client, self.shown)
        self._short = Short(client, self.shown)
        self._widths = {
            "name": max((width(step_of(i)) for i in self.shown), default=0),
            "session": max((width(clean(i.session_id)) for i in self.shown), default=0),
            "plan": max((len(str(each)) for each in self._progress.values()), default=0),
            "size": max((len(size(i.size)) for i in self.shown), default=0),
        }
        self._widths["marks"] = max(
            (width(_said(i, self.markers(i))) for i in self.shown), default=0
        )
        self.recoveries = recoveries_of(client.store, self.shown)
        self._several = len({(i.agent_id, i.session_id) for i in self.shown}) > 1

    def markers(self, info: CheckpointInfo) -> list[str]:
        """What is to be said of a checkpoint."""
        return markers_of(info, self._heads, self._alive)

    def progress(self, info: CheckpointInfo) -> Progress | None:
        """How far its plan has come."""
        return self._progress.get(info.checkpoint_id)

    def json(self, info: CheckpointInfo) -> dict[str, object]:
        """A checkpoint in JSON."""
        return checkpoint_json(info, self.markers(info), self.progress(info))

    def kind(self, info: CheckpointInfo) -> str:
        """Which symbol it has: that of the head it is, or of what became of it."""
        marks = self.markers(info)
        is_head = self.session is None or info.checkpoint_id == self.session.head.checkpoint_id
        if "head" in marks and is_head:
            return "@"
        return "x" if "failed" in marks else "o" if "rolled back" in marks else "*"

    def symbol(self, info: CheckpointInfo, terminal: Terminal) -> str:
        """Its symbol, on its own."""
        return next(draw([("", None)], {"": self.kind(info)}, None, terminal.unicode)).drawing

    def line(self, info: CheckpointInfo, terminal: Terminal, columns: int, drawing: str) -> str:
        """One line about a checkpoint; names are cut where the line would not fit."""
        marks = self.markers(info)
        progress = str(self.progress(info) or "")
        behind = [
            pad(age(info.created_at), 8),
            *([pad(progress, self._widths["plan"])] if self._progress else []),
            size(info.size).rjust(self._widths["size"]),
        ]
        session = pad(clean(info.session_id), self._widths["session"]) if self._several else ""
        short = self._short(info.checkpoint_id)
        fixed = sum(width(each) + 2 for each in (drawing, short, session, *behind) if each)
        reserved = min(self._widths["marks"], _ROOM_FOR_MARKS)
        room = min(self._widths["name"], _LONGEST_NAME, max(columns - fixed - reserved, 8))
        name = pad(cut(step_of(info), room, _mark(terminal)), room)
        style = "bad" if "failed" in marks else "dim" if "rolled back" in marks else "name"
        parts = [
            drawing,
            terminal.paint(short, "id"),
            terminal.paint(name, style),
            *([terminal.paint(session, "session")] if session else []),
            terminal.paint("  ".join(behind), "dim"),
        ]
        said = cut(_said(info, marks), max(columns - fixed - room - 2, 0), _mark(terminal))
        return "  ".join([*parts, terminal.paint(said, _MARKS[marks[0]])] if said else parts)


def _tree(view: View, terminal: Terminal) -> None:
    infos = {info.checkpoint_id: info for info in view.shown}
    nodes = newest_first({key: info.parent_id for key, info in infos.items()}, list(infos))
    symbols = {key: view.kind(info) for key, info in infos.items()}
    first = None if view.session is None else view.session.head.checkpoint_id
    rows = list(draw(nodes, symbols, first if first in infos else None, terminal.unicode))
    widest = max(width(row.drawing) for row in rows)
    for row in rows:
        if row.key is None:
            terminal.line(row.drawing)
            continue
        drawing = pad(row.drawing, widest)
        terminal.line(view.line(infos[row.key], terminal, terminal.width, drawing))


def _related(infos: list[CheckpointInfo], session: SessionInfo) -> list[CheckpointInfo]:
    """The checkpoints of a session and all that are connected with them by parents."""
    groups: dict[str, str] = {}

    def group(key: str) -> str:
        while groups.setdefault(key, key) != key:
            groups[key] = key = groups[groups[key]]
        return key

    for info in infos:
        if info.parent_id is not None:
            groups[group(info.checkpoint_id)] = group(info.parent_id)
    own = {
        group(info.checkpoint_id)
        for info in infos
        if (info.agent_id, info.session_id) == (session.agent_id, session.session_id)
    }
    return [info for info in infos if group(info.checkpoint_id) in own]


def _said(info: CheckpointInfo, marks: list[str]) -> str:
    """What stands at the end of the line."""
    if not marks:
        return ""
    text = ", ".join(marks)
    if "handed off" in marks:
        text = text.replace("handed off", f"handed off to {clean(info.handoff_target or '')}")
    return f"({text})"


def _mark(terminal: Terminal) -> str:
    return "…" if terminal.unicode else "..."
