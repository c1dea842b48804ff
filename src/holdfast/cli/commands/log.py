"""``holdfast log``: checkpoints, newest first, as a list or a tree."""

from __future__ import annotations

import os
from argparse import Namespace
from functools import cached_property
from typing import TYPE_CHECKING

from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import LazyClient, open_lazily
from holdfast.cli.access.recoveries import recoveries_of
from holdfast.cli.access.session_status import Standing, standing_of
from holdfast.cli.access.short_ids import ShortIds
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import (
    alive_among,
    checkpoint_json,
    heads_of,
    live_ids,
    markers_of,
    origins_of,
    parents_elsewhere,
    plans_of,
    step_of,
)
from holdfast.cli.output.file_changes import changes_of
from holdfast.cli.output.graph import draw, newest_first
from holdfast.cli.output.spoken import spoken_in
from holdfast.cli.output.tasks import TaskProgress
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import age, many
from holdfast.cli.parsing import Parser, add_session, count
from holdfast.stores.base import Query, SessionInfo
from holdfast.system.terminal_text import clean, cut, pad, width

if TYPE_CHECKING:
    from holdfast.model import CheckpointInfo

_LONGEST_NAME = 100
_LEAST = 12
_LEAST_NAME = 8
_NARROW = 70
"""Below so many columns there is no room for plans and lines."""
_MARKS = {"head": "head", "failed": "bad", "rolled back": "dim", "handed off": "warn"}
_SYMBOLS = {"@": "head", "x": "bad", "o": "dim", "*": "name"}
_STANDINGS = {
    "failed": "bad",
    "cut off": "bad",
    "stopped": "warn",
    "running": "good",
    "waiting": "warn",
}
_PROMPT = "UserPromptSubmit: "


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Marks: @ the head, × failed, ◌ rolled back (it leads to no head any more), ○ any other.\n"
        "Columns: the beginning of the id (enough to name it), step name, session, tasks done, "
        "files and\nlines changed, age. Above them the session and how it stands: running, waiting "
        "(for approval),\nended, failed, handed off, stopped (left before its end) or cut off (its "
        "process is gone).",
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
        "--messages", action="store_true", help="below each what was said since the one before it"
    )
    parser.add_argument(
        "-n", "--limit", type=count, metavar="N", help="at most so many (default: 50, a tree: all)"
    )
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Show the checkpoints that are asked for."""
    with open_lazily(options) as client:
        view = View(client, options)
        if terminal.json:
            shown = [view.json(info) for info in view.shown]
            terminal.emit({"session": view.session_json(), "checkpoints": shown})
            return OK
        if not view.shown:
            terminal.line("no checkpoints yet")
            return OK
        terminal.line(view.header(terminal))
        if options.graph:
            _tree(view, terminal)
        else:
            for info in view.shown:
                drawing = view.symbol(info, terminal)
                for line in view.lines(info, terminal, drawing, drawing and " "):
                    terminal.line(line)
        if view.left_out:
            terminal.line(f"… and {view.left_out} (-n says how many are shown)")
    return OK


class View:
    """The checkpoints to be shown, and what is said of each."""

    def __init__(self, client: LazyClient, options: Namespace) -> None:
        names = Names(client)
        self.store_name = client.store.name
        self.session: SessionInfo | None = None
        self.standing: Standing | None = None
        is_one = options.session is not None or not options.all
        if is_one and (options.session is not None or client.store.heads(limit=1)):
            self.session = names.session(options.session)
            self.standing = standing_of(client, self.session)
        limit = options.limit if options.limit is not None else None if options.graph else 50
        if self.session is not None and not options.graph:
            agent, session = self.session.agent_id, self.session.session_id
            own = Query(agent_id=agent, session_id=session, limit=limit)
            self.shown = client.store.query(own)
            self.left_out = _older(self.session.checkpoints - len(self.shown))
            self._alive = alive_among(client.store, self.shown, self.session)
            heads = [self.session]
        elif self.session is None and limit is not None:
            newest = client.store.query(Query(limit=limit + 1))
            self.shown, self.left_out = newest[:limit], "older ones" if newest[limit:] else ""
            heads = heads_of(client.store, self.shown)
            self._alive = live_ids(self.shown, heads, parents_elsewhere(client.store, self.shown))
        else:
            every = _every(client, self.session)
            heads = SessionInfo.all_of(every)
            self.shown = every if limit is None else every[:limit]
            self.left_out = _older(len(every) - len(self.shown))
            self._alive = live_ids(every, heads)
        self._heads = {each.head.checkpoint_id for each in heads}
        self._progress = plans_of(client, self.shown)
        self.recoveries = recoveries_of(client.store, self.shown)
        self._changes = changes_of(client, self.shown)
        self._origins = origins_of(client.store, self.shown)
        self._spoken = spoken_in(client, self.shown) if options.messages else {}
        self._short = ShortIds(client.store, [*self.shown, *self._origins.values()])
        self._names: dict[int, int] = {}
        self._counts: tuple[dict[str, str], int] | None = None
        self._several = len({(i.agent_id, i.session_id) for i in self.shown}) > 1

    def markers(self, info: CheckpointInfo) -> list[str]:
        """Return what is to be said of a checkpoint."""
        return markers_of(info, self._heads, self._alive)

    def progress(self, info: CheckpointInfo) -> TaskProgress | None:
        """Return how far its plan has come."""
        return self._progress.get(info.checkpoint_id)

    def json(self, info: CheckpointInfo) -> dict[str, object]:
        """Return a checkpoint in JSON."""
        origin = self._origins.get(info.checkpoint_id)
        changed = self._changes.get(info.checkpoint_id)
        spoken = self._spoken.get(info.checkpoint_id)
        return {
            **checkpoint_json(info, self.markers(info), self.progress(info)),
            "files": None if changed is None else changed.as_dict(),
            "forked_from": None if origin is None else origin.session_id,
            "messages": None if spoken is None else spoken.as_dict(),
        }

    def session_json(self) -> dict[str, object] | None:
        """Return the session that is shown, in JSON; None if it is all of them."""
        if self.session is None:
            return None
        return {
            "agent_id": self.session.agent_id,
            "session_id": self.session.session_id,
            "checkpoints": self.session.checkpoints,
            "standing": self.standing,
        }

    def header(self, terminal: Terminal) -> str:
        """Return which session this is, of whom, how it stands, and where it is kept."""
        if self.session is None:
            number = len({(i.agent_id, i.session_id) for i in self.shown})
            name, said = many(number, "session"), list[str]()
        else:
            name = f"{clean(self.session.agent_id)}/{clean(self.session.session_id)}"
            said = [str(self.standing)] if self.standing else []
            said.append(many(self.session.checkpoints, "checkpoint"))
        room = terminal.width - sum(len(each) + 2 for each in said)
        name = cut(name, max(room, 12), _mark(terminal))
        parts = [terminal.paint(name, "session")]
        parts += [terminal.paint(each, _STANDINGS.get(each, "dim")) for each in said]
        left = terminal.width - width(name) - sum(len(each) + 2 for each in said) - 2
        where = self._where()
        if width(where) > left:  # the end of a path says more than its beginning
            mark = _mark(terminal)
            where = mark + where[len(where) - max(left - len(mark), 0) :] if left > _LEAST else ""
        return "  ".join([*parts, terminal.paint(where, "dim")] if where else parts)

    def _where(self) -> str:
        """Return the store, as one would name it from here."""
        name = clean(self.store_name)
        for kind in ("the SQLite store ", "the file store "):
            name = name.removeprefix(kind)
        return name.removeprefix(f"{os.getcwd()}/").removeprefix("the ")

    def kind(self, info: CheckpointInfo) -> str:
        """Return which symbol it has: that of the head it is, or of what became of it."""
        marks = self.markers(info)
        is_head = self.session is None or info.checkpoint_id == self.session.head.checkpoint_id
        if "head" in marks and is_head:
            return "@"
        return "x" if "failed" in marks else "o" if "rolled back" in marks else "*"

    def symbol(self, info: CheckpointInfo, terminal: Terminal) -> str:
        """Return its symbol, on its own."""
        return next(draw([("", None)], {"": self.kind(info)}, None, terminal.unicode)).drawing

    def lines(
        self, info: CheckpointInfo, terminal: Terminal, drawing: str, below: str
    ) -> list[str]:
        """Return what is said of a checkpoint: a line, and more for what would not fit there."""
        put_back = [
            f"{pad(below, width(drawing))}  {terminal.paint(clean(str(each)), 'warn')}"
            for each in self.recoveries.get(info.checkpoint_id, ())
        ]
        spoken = self._spoken.get(info.checkpoint_id)
        said = [
            f"{terminal.paint(pad(below, width(drawing)), 'dim')}  {line}"
            for line in (spoken.lines(terminal) if spoken else ())
        ]
        return [*self._lines(info, terminal, drawing, below), *put_back, *said]

    def _lines(
        self, info: CheckpointInfo, terminal: Terminal, drawing: str, below: str
    ) -> list[str]:
        columns = terminal.width
        is_narrow = columns < _NARROW
        marks = self.markers(info)
        short = self._short(info.checkpoint_id)
        behind = self._behind(info, terminal, is_narrow)
        session = ""
        if self._several:
            session = cut(clean(info.session_id), max(columns // 5, 8), _mark(terminal))
            session = pad(session, min(self._longest_session, max(columns // 5, 8)))
        room = columns - width(drawing) - len(short) - 4
        room -= sum(width(each) + 2 for each in (session, *behind) if each)
        if room < _LEAST_NAME and session:  # the lanes tell sessions apart too
            room, session = room + width(session) + 2, ""
        room = min(max(room, _LEAST_NAME), _LONGEST_NAME)
        said = self._said(info)
        name = self._name(info)
        is_beside = bool(said) and width(name) + 1 + width(said) <= room
        name = cut(name, room, _mark(terminal))
        gap = self._widest(room) - width(name) - (width(said) + 1 if is_beside else 0)
        style = "bad" if "failed" in marks else "dim" if "rolled back" in marks else "name"
        told = _MARKS[marks[0]] if marks else "dim"
        cell = terminal.paint(name, style)
        if is_beside:
            cell += f" {terminal.paint(said, told)}"
        line = "  ".join(
            [
                self._drawn(drawing, info, terminal),
                terminal.paint(short, "id"),
                cell + " " * gap,
                *([terminal.paint(session, "session")] if session else []),
                *([terminal.paint("  ".join(behind), "dim")] if any(behind) else []),
            ]
        )
        if is_beside or not said:
            return [line]
        alone = self._words(info)
        indent = pad(below, width(drawing)) + " " * (len(short) + 4)
        if max(map(width, alone)) + 2 > columns - width(indent):
            indent = pad(below, width(drawing)) + "  "
        left = max(columns - width(indent), 8)
        below_it = [f"({cut(each, left - 2, _mark(terminal))})" for each in alone]
        return [
            line,
            *(
                f"{terminal.paint(indent, 'dim')}{terminal.paint(each, told)}"
                for each in ([said] if width(said) <= left else below_it)
            ),
        ]

    @cached_property
    def _longest_plan(self) -> int:
        return max(len(str(each)) for each in self._progress.values())

    def _widest(self, room: int) -> int:
        """Return how wide the column of names is: with what is said of them, where that fits."""
        if room not in self._names:
            alone = [width(self._name(each)) for each in self.shown]
            said = [width(self._said(each)) for each in self.shown]
            whole = [a + 1 + b if b else a for a, b in zip(alone, said, strict=True)]
            fits = [w if w <= room else a for w, a in zip(whole, alone, strict=True)]
            self._names[room] = min(max(fits, default=0), room)
        return self._names[room]

    @cached_property
    def _longest_session(self) -> int:
        return max((width(clean(each.session_id)) for each in self.shown), default=0)

    def _name(self, info: CheckpointInfo) -> str:
        name = step_of(info)
        return f"> {name.removeprefix(_PROMPT)}" if name.startswith(_PROMPT) else name

    def _behind(self, info: CheckpointInfo, terminal: Terminal, is_narrow: bool) -> list[str]:
        """Return the columns behind the names, as wide as the widest of each."""
        columns = []
        if self._progress and not is_narrow:
            columns.append(pad(str(self.progress(info) or ""), self._longest_plan))
        if self._changes:
            if self._counts is None:
                counts = {k: c.said(terminal.unicode, is_narrow) for k, c in self._changes.items()}
                self._counts = counts, max(map(width, counts.values()))
            counts, longest = self._counts
            columns.append(pad(counts.get(info.checkpoint_id, ""), longest))
        old = age(info.created_at)
        columns.append(old.removesuffix(" ago").rjust(3) if is_narrow else old.rjust(7))
        return columns

    def _drawn(self, drawing: str, info: CheckpointInfo, terminal: Terminal) -> str:
        """Return the drawing, with its symbol and its lanes in colours."""
        symbol = self.symbol(info, terminal)
        before, _, after = drawing.partition(symbol)
        painted = terminal.paint(symbol, _SYMBOLS[self.kind(info)])
        return terminal.paint(before, "dim") + painted + terminal.paint(after, "dim")

    def _said(self, info: CheckpointInfo) -> str:
        """Return what is said of it beside its name."""
        words = self._words(info)
        return f"({', '.join(words)})" if words else ""

    def _words(self, info: CheckpointInfo) -> list[str]:
        """Return the same in its parts; the symbol says already which is the head."""
        words = [
            f"handed off to {clean(info.handoff_target or '')}" if each == "handed off" else each
            for each in self.markers(info)
            if (each != "head" or self.kind(info) != "@")
            and not (each == "failed" and step_of(info).endswith("failed"))
        ]
        origin = self._origins.get(info.checkpoint_id)
        if origin is not None:
            place = f"{clean(origin.session_id)}@{self._short(origin.checkpoint_id)}"
            is_fork = origin.framework is info.framework
            words.append(f"{'forked' if is_fork else 'goes on'} from {place}")
        return words


def _tree(view: View, terminal: Terminal) -> None:
    infos = {info.checkpoint_id: info for info in view.shown}
    nodes = newest_first({key: info.parent_id for key, info in infos.items()}, list(infos))
    symbols = {key: view.kind(info) for key, info in infos.items()}
    first = None if view.session is None else view.session.head.checkpoint_id
    rows = list(draw(nodes, symbols, first if first in infos else None, terminal.unicode))
    widest = max(width(row.drawing) for row in rows)
    for at, row in enumerate(rows):
        if row.key is None:
            terminal.line(terminal.paint(row.drawing, "dim"))
            continue
        info = infos[row.key]
        below = _lanes(row.drawing, rows[at + 1].drawing if at + 1 < len(rows) else "", terminal)
        for line in view.lines(info, terminal, pad(row.drawing, widest), below):
            terminal.line(line)


def _lanes(drawing: str, following: str, terminal: Terminal) -> str:
    """Return the lanes that go on from one line of a drawing to the next."""
    lane = "│" if terminal.unicode else "|"
    return "".join(
        lane
        if at < len(drawing) and drawing[at] != " " and at < len(following) and following[at] != " "
        else " "
        for at in range(len(drawing))
    )


def _every(client: LazyClient, session: SessionInfo | None) -> list[CheckpointInfo]:
    """Return all checkpoints; of one session with those that are connected with it."""
    if session is None:
        return client.store.query(Query())
    from holdfast.verbs.read import connected

    found = client.runtime.run(connected(session.agent_id, session.session_id))
    return _related(found, session)


def _related(infos: list[CheckpointInfo], session: SessionInfo) -> list[CheckpointInfo]:
    """Return the checkpoints of a session and all that are connected with them by parents."""
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


def _older(number: int) -> str:
    return f"{number:,} older" if number else ""


def _mark(terminal: Terminal) -> str:
    return "…" if terminal.unicode else "..."
