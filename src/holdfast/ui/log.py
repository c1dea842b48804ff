"""The log of a session: a page of its checkpoints, each with what was forked from it above it.

A page costs what it shows. What has to be known of newer rows is in the cursor: which of the older
ones lead to a head.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.session_status import standing_of
from holdfast.cli.exits import UsageError
from holdfast.cli.output.checkpoints import (
    alive_rows,
    checkpoint_json,
    kept_among,
    markers_of,
    origins_of,
    plans_of,
)
from holdfast.cli.output.file_changes import changes_of
from holdfast.coding_agents.keeping import REWOUND_FROM
from holdfast.session.continuing import CONTINUED
from holdfast.session.rollback import ROLLED_BACK_FROM
from holdfast.stores.base import Query
from holdfast.ui.reading import DAMAGE, cursor_of, from_cursor, of_each
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.sessions import Key, asked_of, key_of, meant
from holdfast.ui.shapes import LOG

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

NEWEST = 5
"""How many checkpoints of a fork are shown."""
MOST_FORKS = 20
"""How many forks of one checkpoint are shown."""
_MOST_ON_PAGE = 100
"""How many forks a page shows that take a query each."""
_CARRIED = 50
"""How many ways that lead to a head go on from one page to the next."""
_COMPACTIONS = ("PreCompact", "PostCompact", "compact")


@dataclass(frozen=True)
class _Branch:
    """A session that was forked from a row, and the newest of its checkpoints."""

    session: SessionInfo
    kind: str
    shown: list[CheckpointInfo]

    def as_dict(self) -> dict[str, Any]:
        return {
            "agent_id": self.session.agent_id,
            "session_id": self.session.session_id,
            "checkpoints": self.session.checkpoints,
            "more": max(self.session.checkpoints - len(self.shown), 0),
            "kind": self.kind,
        }


@dataclass
class _Forks:
    """What was forked from the rows of a page."""

    shown: dict[str, list[_Branch]] = field(default_factory=dict)
    hidden: dict[str, int] = field(default_factory=dict)
    left: set[str] = field(default_factory=set)
    """The rows that sessions other than their own go on from."""

    def infos(self) -> Iterator[CheckpointInfo]:
        """Give the checkpoints of all forks that are shown."""
        for some in self.shown.values():
            for branch in some:
                yield from branch.shown


def log(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return a page of the checkpoints of a session, the newest first."""
    session = meant(client, given)
    before, carried = _from_cursor(given.text("cursor"))
    query = Query(
        agent_id=session.agent_id,
        session_id=session.session_id,
        before=before,
        limit=given.limit + 1,
    )
    found = client.store.query(query)
    own = found[: given.limit]
    if before is None and own:
        carried = {own[0].checkpoint_id}  # what was written last is the head
    forks = _forks(client, own, key_of(session))
    said = _Said(client, [*own, *forks.infos()])
    alive = alive_rows(own, carried | forks.left, said.kept)
    rows = _rows(key_of(session), own, forks, said, alive)
    following = None
    if len(found) > given.limit:
        shown = {info.checkpoint_id for info in own}
        ways = [i.parent_id for i in own if i.checkpoint_id in alive and i.parent_id]
        ways += sorted(carried)
        leading = list(dict.fromkeys(way for way in reversed(ways) if way not in shown))
        following = cursor_of([own[-1].checkpoint_id, *leading[:_CARRIED]])
    return {
        "session": {
            "agent_id": session.agent_id,
            "session_id": session.session_id,
            "checkpoints": session.checkpoints,
            "standing": _standing(client, session),
        },
        "checkpoints": rows,
        "next": following,
    }


def _from_cursor(given: str | None) -> tuple[str | None, set[str]]:
    said = from_cursor(given, list)
    if said is None:
        return None, set()
    if not said or not all(isinstance(each, str) for each in said):
        raise UsageError("cursor is what the page before gave as next, and nothing else")
    return said[0], set(said[1:])


def _standing(client: SyncClient, session: SessionInfo) -> str | None:
    try:
        return standing_of(client, session)
    except DAMAGE:
        return None


def _forks(client: SyncClient, own: Sequence[CheckpointInfo], key: Key) -> _Forks:
    """Return the sessions that began at the rows of a page, the one touched last first."""
    rows = {info.checkpoint_id: info for info in own}
    children = client.store.query(Query(parent_ids=list(rows))) if rows else []
    first: dict[str, dict[Key, CheckpointInfo]] = {}
    for child in children:  # of several in one session the oldest stays
        its = (child.agent_id, child.session_id)
        if its != key and child.parent_id is not None:
            first.setdefault(child.parent_id, {})[its] = child
    found = _Forks(left=set(first))
    order = {key_of(each): (at, each) for at, each in enumerate(client.store.heads())}
    asked = 0
    for row_id, begun in first.items():
        known = sorted((order[its] for its in begun if its in order), key=lambda each: each[0])
        shown: list[_Branch] = []
        elsewhere = 0
        for _, session in known:
            if len(shown) == MOST_FORKS or asked >= _MOST_ON_PAGE:
                break
            child = begun[key_of(session)]
            asked += session.checkpoints > 1
            newest = _newest(client, session, child)
            if newest is None:
                elsewhere += 1
            else:
                kind = _kind(rows[row_id], child, session)
                shown.append(_Branch(session, kind, newest))
        found.shown[row_id] = shown
        found.hidden[row_id] = len(known) - len(shown) - elsewhere
    return found


def _newest(
    client: SyncClient, session: SessionInfo, child: CheckpointInfo
) -> list[CheckpointInfo] | None:
    """Return the newest of a session that began with a checkpoint; None if it began elsewhere.

    One that went back behind its own beginning has several that come from another session. It is
    shown once, where it began.
    """
    if session.checkpoints == 1:
        return [session.head] if session.head.checkpoint_id == child.checkpoint_id else None
    query = Query(agent_id=session.agent_id, session_id=session.session_id, limit=NEWEST + 1)
    newest = client.store.query(query)
    if len(newest) <= NEWEST:
        return newest if newest and newest[-1].checkpoint_id == child.checkpoint_id else None
    earlier = Query(
        agent_id=session.agent_id,
        session_id=session.session_id,
        before=child.checkpoint_id,
        limit=1,
    )
    return None if client.store.query(earlier) else newest[:NEWEST]


def _kind(row: CheckpointInfo, child: CheckpointInfo, session: SessionInfo) -> str:
    if row.handoff_target is not None and row.handoff_target == child.agent_id:
        return "handoff"
    if "strategy" in child.metadata or "strategy" in session.head.metadata:
        return "exploration"
    if CONTINUED in child.metadata or child.framework is not row.framework:
        return "continued"
    return "fork"


def _rows(
    key: Key,
    own: Sequence[CheckpointInfo],
    forks: _Forks,
    said: _Said,
    alive: set[str],
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for info in own:
        for branch in forks.shown.get(info.checkpoint_id, ()):
            its = {each.checkpoint_id for each in branch.shown}
            leading = alive_rows(branch.shown, {branch.session.head.checkpoint_id}, said.kept)
            for each in branch.shown:
                parent = each.parent_id if each.parent_id in its else info.checkpoint_id
                rows.append(
                    {
                        **said.row(each, leading),
                        "lane_parent": parent,
                        "branch": branch.as_dict(),
                        "forks_hidden": 0,
                    }
                )
        origin = said.origins.get(info.checkpoint_id)
        is_own = origin is None or (origin.agent_id, origin.session_id) == key
        is_drawn = info.parent_id in said.listed or (is_own and info.parent_id in said.kept)
        rows.append(
            {
                **said.row(info, alive),
                "lane_parent": info.parent_id if is_drawn else None,
                "branch": None,
                "forks_hidden": forks.hidden.get(info.checkpoint_id, 0),
            }
        )
    return rows


class _Said:
    """What is said of the rows of a page, read for all of them at once."""

    def __init__(self, client: SyncClient, shown: Sequence[CheckpointInfo]) -> None:
        self._heads = heads = {each.head.checkpoint_id for each in client.store.heads()}
        self._plans = of_each(plans_of, client, shown)
        self._changes = of_each(changes_of, client, shown)
        self._asked = asked_of(client, [i for i in shown if i.checkpoint_id in heads])
        self.origins = origins_of(client.store, shown)
        self.listed = {info.checkpoint_id for info in shown}
        self.kept = kept_among(client.store, shown)
        """The checkpoints that are still there, of the rows and of what they come from."""

    def row(self, info: CheckpointInfo, alive: set[str]) -> dict[str, Any]:
        """Return a row as ``log --json`` has it."""
        changed = self._changes.get(info.checkpoint_id)
        origin = self.origins.get(info.checkpoint_id)
        marks = markers_of(info, self._heads, alive)
        if ROLLED_BACK_FROM in info.metadata or REWOUND_FROM in info.metadata:
            marks.append("rollback")
        if origin is not None:
            marks.append("fork")
        if self._asked[info.checkpoint_id]:
            marks.append("interrupt")
        if info.metadata.get("event") in _COMPACTIONS:
            marks.append("compaction")
        return {
            **checkpoint_json(info, marks, self._plans.get(info.checkpoint_id)),
            "files": None if changed is None else changed.as_dict(),
            "forked_from": None if origin is None else origin.session_id,
            "messages": None,
        }


ROUTES = (
    Route(
        "log",
        log,
        "Checkpoints of a session, the newest first, with what was forked from each",
        {
            "agent": "whose",
            "session": "its name",
            "limit": "how many of its own at most",
            "cursor": "what the page before gave as next",
        },
        LOG,
    ),
)
"""The addresses of this family."""
