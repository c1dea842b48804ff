"""What the newest states of the largest sessions share: chunks that are kept once for several."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from holdfast.cli.output.json_schemas import TEXT, WHOLE, maybe, record, several
from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import checked
from holdfast.ui.reading import DAMAGE, for_a_moment
from holdfast.ui.routes import Parameters, Route
from holdfast.ui.storage import sizes_of

if TYPE_CHECKING:
    from holdfast.client import SyncClient
    from holdfast.stores.base import SessionInfo

_MOST = 12
_MOST_CHUNKS = 4000
"""A state of more chunks is not looked at."""


def sharing(client: SyncClient, given: Parameters) -> dict[str, Any]:
    """Return how much of the newest states of the largest sessions is also in others of them."""
    return for_a_moment(client.store, "sharing", lambda: _sharing(client))


def _sharing(client: SyncClient) -> dict[str, Any]:
    known = {(each.agent_id, each.session_id): each for each in client.store.heads()}
    largest = [key for key, _ in sizes_of(client.store).sessions.most_common(_MOST)]
    sessions = [known[key] for key in largest if key in known]
    states = [_chunks_of(client, each) for each in sessions]
    places = Counter(name for sizes in states for name in sizes or ())
    rows = []
    for at, (session, sizes) in enumerate(zip(sessions, states, strict=True)):
        row: dict[str, Any] = {
            "agent_id": session.agent_id,
            "session_id": session.session_id,
            "stored_bytes": None if sizes is None else sum(sizes.values()),
            "alone_bytes": None,
            "shared": [],
        }
        if sizes is not None:
            row["alone_bytes"] = sum(n for name, n in sizes.items() if places[name] == 1)
            for other, its in enumerate(states):
                both = sum(n for name, n in sizes.items() if name in its) if its else 0
                if other != at and both:
                    row["shared"].append(
                        {
                            "agent_id": sessions[other].agent_id,
                            "session_id": sessions[other].session_id,
                            "bytes": both,
                        }
                    )
            row["shared"].sort(key=lambda each: -each["bytes"])
        rows.append(row)
    return {"sessions": rows}


def _chunks_of(client: SyncClient, session: SessionInfo) -> dict[bytes, int] | None:
    """Return the chunks of the newest state of a session with their sizes; None if unknown."""
    if not client.store.shares_chunks:
        return None
    sizes: dict[bytes, int] = {}
    level = {bytes.fromhex(session.head.content_id): True}
    try:
        while level:
            if len(sizes) + len(level) > _MOST_CHUNKS:
                return None
            below: dict[bytes, bool] = {}
            for name, data in client.store.fetch(level).items():
                sizes[name] = len(data)
                below.update(references(checked(name, data)) if level[name] else ())
            level = {name: refers for name, refers in below.items() if name not in sizes}
    except DAMAGE:
        return None
    return sizes


_OTHER = record(agent_id=TEXT, session_id=TEXT, bytes=WHOLE)
_ROW = record(
    agent_id=TEXT,
    session_id=TEXT,
    stored_bytes={**maybe(WHOLE), "description": "of its newest state, as it is kept"},
    alone_bytes={**maybe(WHOLE), "description": "of these, what no other state listed here has"},
    shared=several(_OTHER),
)
ROUTES: tuple[Route, ...] = (
    Route(
        "sharing",
        sharing,
        "What the newest states of the largest sessions share",
        {},
        record(sessions=several(_ROW)),
    ),
)
