"""``holdfast watch``: new checkpoints, as they come."""

from __future__ import annotations

import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from holdfast.cli import interrupts
from holdfast.cli.access.naming import Names
from holdfast.cli.access.opening import open_client
from holdfast.cli.access.short_ids import short_id
from holdfast.cli.exits import OK
from holdfast.cli.output.checkpoints import checkpoint_json, plans_of, step_of
from holdfast.cli.output.terminal import Terminal
from holdfast.cli.output.units import span
from holdfast.cli.parsing import Parser, add_session, count
from holdfast.system.terminal_text import clean, cut, width

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.session.approval import Question

_POLL = 0.1
_POLL_A_SERVER = 0.5
_PAGE = 200
_LEAST = 30


def set_up(parser: Parser) -> None:
    """Add its arguments to a parser, and what it runs."""
    parser.explain(
        "Shows the last checkpoints and then every new one, and calls that wait for approval, "
        "until Ctrl-C.\nWith --json every line is an object.",
        "holdfast watch",
        "holdfast watch fix-42 --json --timeout 1m",
    )
    add_session(parser, positional=True)
    parser.add_argument(
        "-n", "--limit", type=count, default=5, metavar="N", help="older ones first (5)"
    )
    parser.add_argument("--timeout", metavar="TIME", help="end when nothing has come for so long")
    parser.add_argument("--count", type=count, metavar="N", help="end after so many new ones")
    parser.set_defaults(run=run)


def run(options: Namespace, terminal: Terminal) -> int:
    """Follow a store."""
    patience = None if options.timeout is None else span(options.timeout)
    with open_client(options) as client:
        follower = Follower(client, options.session)
        # What was there before does not fill more than the screen.
        for info in follower.begin(min(options.limit, terminal.height - 1)):
            _tell(client, info, terminal, is_new=False)
        came, last = 0, time.monotonic()
        while options.count is None or came < options.count:
            for info in follower.new():
                _tell(client, info, terminal, is_new=True)
                came, last = came + 1, time.monotonic()
            for question in follower.questions():
                _ask(question, terminal)
                last = time.monotonic()
            interrupts.check()
            if patience is not None and time.monotonic() - last >= patience:
                break
            follower.rest()
    return OK


class Follower:
    """Knows what it has seen of a store, and finds what is new."""

    def __init__(self, client: SyncClient, session: str | None) -> None:
        self.client = client
        self.where: dict[str, Any] = {}
        if session is not None:
            found = Names(client).session(session)
            self.where = {"agent_id": found.agent_id, "session_id": found.session_id}
        self._seen: set[str] = set()
        self._asked: set[str] = set()
        self._tick: Any = None
        self._is_new = True

    def begin(self, limit: int) -> list[CheckpointInfo]:
        """Return the last ones that are there, the oldest first; they count as seen."""
        found = self.client.find(**self.where, limit=None)
        self._seen = {info.checkpoint_id for info in found}
        return found[: max(limit, 0)][::-1]

    def new(self) -> list[CheckpointInfo]:
        """Return those that came since, the oldest first."""
        from holdfast.stores.capabilities import tick_of

        tick = tick_of(self.client.store)
        self._is_new = tick is None or tick != self._tick
        self._tick = tick
        if not self._is_new:
            return []
        fresh: list[CheckpointInfo] = []
        before = None
        while page := self.client.find(**self.where, limit=_PAGE, before=before):
            unseen = [info for info in page if info.checkpoint_id not in self._seen]
            fresh += unseen
            if len(unseen) < len(page) or len(page) < _PAGE:
                break
            before = page[-1].checkpoint_id
        self._seen |= {info.checkpoint_id for info in fresh}
        return fresh[::-1]

    def questions(self) -> list[Question]:
        """Return calls that wait for approval and were not told of."""
        if not self._is_new:
            return []
        waiting = self.client.pending(self.where.get("agent_id"))
        fresh = [each for each in waiting if each.effect_id not in self._asked]
        self._asked |= {each.effect_id for each in fresh}
        session = self.where.get("session_id")
        return [each for each in fresh if session in (None, each.session_id)]

    def rest(self) -> None:
        """Wait a little; longer where asking costs a round trip."""
        time.sleep(_POLL if self._tick is not None else _POLL_A_SERVER)


def _tell(client: SyncClient, info: CheckpointInfo, terminal: Terminal, is_new: bool) -> None:
    progress = plans_of(client, [info]).get(info.checkpoint_id)
    if terminal.json:
        data = checkpoint_json(info, [], progress)
        del data["markers"]
        terminal.emit_line({"kind": "checkpoint", "new": is_new, "checkpoint": data})
        return
    said = [
        f"{info.created_at:%H:%M:%S}",
        short_id(client.store, info),
        clean(info.session_id),
        step_of(info),
        *([str(progress)] if progress else []),
        *(["(failed)"] if info.metadata.get("failed") else []),
    ]
    room = terminal.width - sum(width(each) + 2 for each in said) + 2
    if room < 0:  # names give way first, the time and the id never
        said[2] = cut(said[2], max(width(said[2]) + room, 8))
        room = terminal.width - sum(width(each) + 2 for each in said) + 2
        said[3] = cut(said[3], max(width(said[3]) + min(room, 0), 1))
    styles = ("dim", "id", "session", "bad" if info.metadata.get("failed") else "name")
    painted = [terminal.paint(*each) for each in zip(said, styles, strict=False)]
    terminal.now("  ".join([*painted, *said[len(styles) :]]))


def _ask(question: Question, terminal: Terminal) -> None:
    if terminal.json:
        said = {"id": question.effect_id, "session_id": question.session_id, "call": str(question)}
        terminal.emit_line({"kind": "approval", **said})
    else:
        how = f"holdfast approve {clean(question.effect_id[:8])}"
        what = f"waits for approval: {clean(str(question))}"
        room = terminal.width - width(how) - 2
        if room < _LEAST:  # one below the other
            terminal.now(terminal.paint(cut(what, terminal.width), "warn"))
            terminal.now(f"  {how}")
        else:
            terminal.now(f"{terminal.paint(cut(what, room), 'warn')}  {how}")
