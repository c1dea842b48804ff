"""Sessions: the list of all of them, searched and paged, and one with what belongs to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.langgraph_threads import is_thread
from holdfast.cli.access.naming import Names
from holdfast.cli.access.session_status import Standing, standings_of
from holdfast.cli.access.what_to_undo import what_to_undo
from holdfast.cli.exits import NotFound, Refused, UsageError
from holdfast.cli.output.checkpoints import checkpoint_json, origins_of, plans_of
from holdfast.coding_agents.keeping import REWOUND_FROM
from holdfast.session import lease
from holdfast.session.rollback import ROLLED_BACK_FROM
from holdfast.stores.base import Query
from holdfast.ui.reading import (
    DAMAGE,
    cursor_of,
    for_a_moment,
    from_cursor,
    of_each,
)
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.shapes import CONDITIONS, SESSION, SESSIONS

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.model import CheckpointInfo
    from holdfast.stores.base import SessionInfo

Key = tuple[str, str]

_BY_LEASE = ("running", "cut off", "stopped", "ended")
"""Conditions that leases tell of: they are read for a part of the sessions at a time."""
_LOOKED_AT = 2000
_AT_ONCE = 100
_NAMES = 1000
"""How many agents and frameworks are named to choose from."""
_LONGEST_SEARCH = 1000
_UNDONE = 500
"""A rollback that was more checkpoints ago is not offered to be taken back."""


def key_of(session: SessionInfo) -> Key:
    """Return the agent and the name of a session."""
    return session.agent_id, session.session_id


def sessions(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return a page of the sessions that are asked for, the one touched last first."""
    condition = given.choice("condition", ("", *CONDITIONS), "")
    every = client.store.heads()
    found = list(filter(_wanted(given), every))
    if condition and condition not in _BY_LEASE:
        fits = _having(client, condition)
        found = [each for each in found if fits(each)]
    rest = _behind(found, from_cursor(given.text("cursor"), list))
    if condition in _BY_LEASE:
        page, end = _standing_so(client, rest, condition, given.limit)
        total = None
    else:
        page, total = rest[: given.limit], len(found)
        end = page[-1] if len(rest) > given.limit else None
    return {
        "sessions": rows_of(client, page),
        "next": None if end is None else _place(end),
        "total": total,
        "agents": sorted({each.agent_id for each in every})[:_NAMES],
        "frameworks": sorted({each.head.framework.value for each in every})[:_NAMES],
    }


def _place(session: SessionInfo) -> str:
    head = session.head
    return cursor_of([head.created_at.isoformat(), head.checkpoint_id])


def _behind(found: list[SessionInfo], place: list[Any] | None) -> list[SessionInfo]:
    """Return what comes behind the end of a page, also if that session was touched since."""
    if place is None:
        return found
    try:
        at, checkpoint_id = datetime.fromisoformat(place[0]), str(place[1])
        ids = {each.head.checkpoint_id: i for i, each in enumerate(found)}
        if checkpoint_id in ids:
            return found[ids[checkpoint_id] + 1 :]
        return [each for each in found if each.head.created_at < at]
    except (ValueError, TypeError, IndexError):
        raise UsageError("cursor is what the page before gave as next, and nothing else") from None


def _wanted(given: Parameters) -> Callable[[SessionInfo], bool]:
    """Return what tells whether a session is asked for by what its head says."""
    agent, framework = given.text("agent"), given.text("framework")
    since, until = given.moment("since"), given.moment("until")
    word = (given.text("search") or "")[:_LONGEST_SEARCH].casefold()
    tags = [_tag(each) for each in given.many("tag") if each]

    def is_wanted(session: SessionInfo) -> bool:
        head = session.head
        return (
            (agent is None or session.agent_id == agent)
            and (framework is None or head.framework.value == framework)
            and (since is None or head.created_at >= since)
            and (until is None or head.created_at < until)
            and all(
                name in head.metadata and value in (None, _said(head, name)) for name, value in tags
            )
            and (not word or any(word in each.casefold() for each in _words(session)))
        )

    return is_wanted


def _tag(given: str) -> tuple[str, str | None]:
    """Return the name and the value of a tag; None for whatever its value is."""
    name, sign, value = given.partition("=")
    return name, value if sign else None


def _said(head: CheckpointInfo, name: str) -> str:
    value = head.metadata[name]
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else str(value)


def _words(session: SessionInfo) -> Iterable[str]:
    yield session.session_id
    yield session.agent_id
    yield session.head.step_name or ""
    for name in session.head.metadata:
        yield f"{name}={_said(session.head, name)}"


def _having(client: SyncClient, condition: str) -> Callable[[SessionInfo], bool]:
    """Return what tells whether a session is in a condition; what is needed is read once."""
    if condition == "waiting":
        asked = for_a_moment(client.store, "asked", lambda: _asking(client))
        return lambda session: key_of(session) in asked
    if condition == "unknown":
        unknown = for_a_moment(client.store, "unknown", lambda: sessions_with_unknown(client))
        return lambda session: key_of(session) in unknown
    return lambda session: condition in _of_head(session.head)


def _asking(client: SyncClient) -> set[Key]:
    asked = {(each.agent_id, each.session_id) for each in client.pending()}
    return asked | {(each.agent_id, each.session_id) for each in client.interrupts()}


def sessions_with_unknown(client: SyncClient) -> set[Key]:
    """Return the sessions that have calls of unknown end; one that is damaged hides no other."""
    try:
        found = client.unknown_effects()
    except DAMAGE:
        return _with_unknown(client, client.store.heads())
    return {(each.agent_id, each.session_id) for each in found}


def _of_head(head: CheckpointInfo) -> list[str]:
    """Return what a head says of its session."""
    said = []
    if head.metadata.get("failed") and head.handoff_target is None:
        said.append("failed")
    if ROLLED_BACK_FROM in head.metadata or REWOUND_FROM in head.metadata:
        said.append("rolled back")
    if head.handoff_target is not None:
        said.append("handed off")
    return said


def _standing_so(
    client: SyncClient, rest: list[SessionInfo], standing: str, limit: int
) -> tuple[list[SessionInfo], SessionInfo | None]:
    """Return the first sessions that stand so, and the last one looked at if there are more."""
    page: list[SessionInfo] = []
    for start in range(0, min(len(rest), _LOOKED_AT), _AT_ONCE):
        part = rest[start : start + _AT_ONCE]
        known = standings_of(client, part)
        for at, each in enumerate(part, start):
            if known[key_of(each)] == standing:
                page.append(each)
                if len(page) == limit:
                    return page, each if at + 1 < len(rest) else None
    return page, rest[_LOOKED_AT - 1] if len(rest) > _LOOKED_AT else None


def rows_of(client: SyncClient, page: Sequence[SessionInfo]) -> list[dict[str, Any]]:
    """Return some sessions in JSON, with all that is said of each."""
    plans = of_each(plans_of, client, [each.head for each in page])
    standings = _standings(client, page)
    asked = asked_of(client, [each.head for each in page])
    unknown = _with_unknown(client, page)
    rows = []
    for each in page:
        progress = plans.get(each.head.checkpoint_id)
        standing = standings.get(key_of(each))
        interrupts = asked[each.head.checkpoint_id]
        said = {standing, *_of_head(each.head)}
        said |= {"waiting"} if interrupts else set()
        said |= {"unknown"} if key_of(each) in unknown else set()
        rows.append(
            {
                "agent_id": each.agent_id,
                "session_id": each.session_id,
                "checkpoints": each.checkpoints,
                "head": checkpoint_json(each.head),
                "progress": None if progress is None else progress.as_dict(),
                "interrupts": interrupts,
                "standing": standing,
                "conditions": [one for one in CONDITIONS if one in said],
            }
        )
    return rows


def _standings(client: SyncClient, page: Sequence[SessionInfo]) -> dict[Key, Standing | None]:
    try:
        return standings_of(client, page)
    except DAMAGE:  # a question that is damaged: how sessions stand is not known then
        return {}


def asked_of(client: SyncClient, heads: Iterable[CheckpointInfo]) -> Counter[str]:
    """Return how many questions wait at each of some heads."""
    threads = {head.checkpoint_id: head for head in heads if is_thread(head)}
    counts: Counter[str] = Counter()
    noted = client.store.notes(list(threads)) if threads else []
    for checkpoint_id in {note.scope for note in noted}:
        head = threads[checkpoint_id]
        try:
            found = client.interrupts(head.agent_id, head.session_id)
        except DAMAGE:
            continue
        counts[checkpoint_id] = sum(each.checkpoint_id == checkpoint_id for each in found)
    return counts


def _with_unknown(client: SyncClient, page: Sequence[SessionInfo]) -> set[Key]:
    """Return those of some sessions that have calls of unknown end."""
    heads = {each.head.checkpoint_id: key_of(each) for each in page}
    noted = client.store.notes(list(heads)) if heads else []
    suspects = {heads[note.scope] for note in noted if note.key.startswith("call/")}
    endings = endings_of(client, [key_of(each) for each in page])
    suspects |= {key for key, last in endings.items() if last.may_have_unknown}
    suspects -= {key for key, last in endings.items() if last.is_held}
    found = set()
    for key in suspects:
        try:
            if client.unknown_effects(*key):
                found.add(key)
        except DAMAGE:
            continue
    return found


def endings_of(client: SyncClient, keys: Sequence[Key]) -> dict[Key, lease.Ending]:
    """Return how the last leases of sessions stand; nothing of those that are damaged."""
    try:
        return client.runtime.run(lease.endings(client.runtime.engine, keys))
    except DAMAGE:
        if len(keys) < 2:
            return {}
        half = len(keys) // 2
        return {**endings_of(client, keys[:half]), **endings_of(client, keys[half:])}


def is_held(client: SyncClient, key: Key) -> bool:
    """Return whether a living process works on a session, as far as can be told."""
    last = endings_of(client, [key]).get(key)
    return last is not None and last.is_held


def meant(client: SyncClient, given: Parameters) -> SessionInfo:
    """Return the session that a request names; its agent may be left out where that is enough."""
    names, agent = Names(client), given.text("agent")
    if agent is None:
        return names.session(given.needed("session"))
    return names.session_of(agent, given.needed("session"))


def session(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return one session, where it came from, who holds it and what an undo would take back."""
    found = meant(client, given)
    held = endings_of(client, [key_of(found)]).get(key_of(found))
    strategy = found.head.metadata.get("strategy")
    return {
        "session": {
            **rows_of(client, [found])[0],
            "origin": _origin(client, found),
            "holder": held.owner if held is not None and held.is_held else None,
            "exploration": {"name": strategy} if isinstance(strategy, str) else None,
            "undo": _undo(client, found),
        }
    }


def _origin(client: SyncClient, session: SessionInfo) -> dict[str, Any] | None:
    """Return the checkpoint of another session that this one began at."""
    query = Query(
        agent_id=session.agent_id, session_id=session.session_id, oldest_first=True, limit=1
    )
    first = origins_of(client.store, client.store.query(query))
    return next((_named(parent) for parent in first.values()), None)


def _named(info: CheckpointInfo) -> dict[str, Any]:
    return {
        "checkpoint_id": info.checkpoint_id,
        "agent_id": info.agent_id,
        "session_id": info.session_id,
    }


def _undo(client: SyncClient, session: SessionInfo) -> dict[str, Any] | None:
    try:
        found = what_to_undo(client, Names(client), session, is_named=True, within=_UNDONE)
    except (Refused, NotFound, *DAMAGE):  # nothing to undo, or nothing that can be
        return None
    if found.recovery is not None:
        return {"kind": found.kind, "target": found.recovery.checkpoint_id}
    return {"kind": found.kind, "target": found.target and found.target.checkpoint_id}


ROUTES = (
    Route(
        "sessions",
        sessions,
        "Sessions, the one touched last first",
        {
            "search": "a part of the session, agent, newest step or tags, in any case",
            "agent": "only those of this agent",
            "framework": "only those of this framework",
            "tag": "only those whose head has this tag, NAME or NAME=VALUE; may be several",
            "since": "only those touched since",
            "until": "only those touched before",
            "condition": f"one of {', '.join(CONDITIONS)}",
            "limit": "how many at most",
            "cursor": "what the page before gave as next",
        },
        SESSIONS,
    ),
    Route(
        "session",
        session,
        "One session, with where it came from and who holds it",
        {"agent": "whose", "session": "its name"},
        SESSION,
    ),
)
"""The addresses of this family."""
