"""How the strategies came out that were tried from one checkpoint."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from holdfast.cli.access.naming import Names
from holdfast.cli.exits import NotFound
from holdfast.cli.output.json_schemas import NUMBER, TEXT, WHOLE, Schema, maybe, record, several
from holdfast.session.explore import explored
from holdfast.stores.base import Query
from holdfast.ui.routes import Parameters, Route

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import SessionInfo

MOST = 500
"""So many strategies are told of at most."""
_Outcomes = dict[str, dict[str, Any]]


def exploration(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return how strategies came out: those tried with this one, or last from this session."""
    names = Names(client)
    session = names.session_of(given.needed("agent"), given.needed("session"))
    base = _base_of(client, names, session)
    noted = {} if base is None else _noted(client, base)
    sessions = {} if base is None else _tried(client, names, session.agent_id, base)
    found = [
        _outcome(session.agent_id, name, noted.get(name), sessions.get(name))
        for name in list({**noted, **sessions})[:MOST]
    ]
    if not found:
        raise NotFound(f"session {session.session_id!r} was explored by no strategies")
    scored = [each for each in found if each["status"] == "done" and each["score"] is not None]
    best = max(scored, key=lambda each: each["score"], default=None)
    return {
        "checkpoint_id": base,
        "outcomes": sorted(found, key=lambda each: str(each["strategy"])),
        "winner": None if best is None else best["strategy"],
    }


def _base_of(client: SyncClient, names: Names, session: SessionInfo) -> str | None:
    """Return the checkpoint that strategies were tried from, the newest of them."""
    if _strategy(session) is None:
        start = f"{session.session_id}."
        tried = (
            each
            for each in names.sessions
            if each.agent_id == session.agent_id
            and each.session_id.startswith(start)
            and _strategy(each) is not None
        )
        newest = next(tried, None)
        return None if newest is None else _begun_at(client, newest)
    return _begun_at(client, session)


def _begun_at(client: SyncClient, session: SessionInfo) -> str | None:
    query = Query(
        agent_id=session.agent_id, session_id=session.session_id, oldest_first=True, limit=1
    )
    return next((first.parent_id for first in client.store.query(query)), None)


def _noted(client: SyncClient, base: str) -> _Outcomes:
    found = client.runtime.run(explored(client.runtime.engine, base))
    return {str(each.get("session_id")): each for each in found}


def _tried(client: SyncClient, names: Names, agent_id: str, base: str) -> dict[str, SessionInfo]:
    """Return the sessions of strategies that begin at a checkpoint."""
    begun = client.store.query(Query(parent_id=base, agent_id=agent_id))
    wanted = {info.session_id for info in begun}
    return {
        each.session_id: each
        for each in names.sessions
        if each.agent_id == agent_id and each.session_id in wanted and _strategy(each) is not None
    }


def _strategy(session: SessionInfo) -> str | None:
    name = session.head.metadata.get("strategy")
    return name if isinstance(name, str) else None


def _outcome(
    agent_id: str, session_id: str, noted: dict[str, Any] | None, session: SessionInfo | None
) -> dict[str, Any]:
    """Return what is known of one strategy: from what was noted as it ended, else from its head."""
    metadata = {} if session is None else session.head.metadata
    has_failed = bool(metadata.get("failed"))
    told = noted or {
        "name": metadata.get("strategy"),
        "status": "failed" if has_failed else "not told",
        "error": metadata.get("error"),
        "score": metadata.get("score"),
    }
    head = told.get("checkpoint_id")
    if head is None and session is not None:
        head = session.head.checkpoint_id
    error = told.get("error")
    return {
        "strategy": str(told.get("name")),
        "agent_id": agent_id,
        "session_id": session_id,
        "status": str(told.get("status")),
        "score": _number(told.get("score")),
        "cost": _number(metadata.get("cost")),
        "seconds": _number(told.get("seconds")),
        "calls": _number(told.get("calls")),
        "state_changes": _number(told.get("state_changes")),
        "file_changes": _number(told.get("file_changes")),
        "steps": None if session is None else session.checkpoints,
        "head": head,
        "error": None if error is None else str(error)[:2000],
    }


def _number(value: Any) -> float | None:
    """Return a number that JSON can say."""
    return value if type(value) in (int, float) and math.isfinite(value) else None


_OUTCOME: dict[str, Schema] = {
    "strategy": TEXT,
    "agent_id": TEXT,
    "session_id": TEXT,
    "status": {"enum": ["done", "failed", "timed out", "stopped", "not told"]},
    "score": maybe(NUMBER),
    "cost": maybe(NUMBER),
    "seconds": maybe(NUMBER),
    "calls": maybe(WHOLE),
    "state_changes": maybe(WHOLE),
    "file_changes": maybe(WHOLE),
    "steps": maybe(WHOLE),
    "head": maybe(TEXT),
    "error": maybe(TEXT),
}
ROUTES: tuple[Route, ...] = (
    Route(
        "exploration",
        exploration,
        "How strategies came out",
        {"agent": "the agent", "session": "the session, or that of a strategy"},
        record(checkpoint_id=TEXT, outcomes=several(record(**_OUTCOME)), winner=maybe(TEXT)),
    ),
)
