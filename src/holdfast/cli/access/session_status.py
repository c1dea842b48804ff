"""How a session stands: whether a process works on it, waits, has ended or was cut off."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from holdfast.core.chunk_format import decompress
from holdfast.core.codec import unpack
from holdfast.errors import HoldfastError
from holdfast.stores.capabilities import FindsLastNotes

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.client import SyncClient
    from holdfast.stores.base import Note, SessionInfo, Store

Standing = Literal["running", "waiting", "failed", "handed off", "ended", "stopped", "cut off"]
_LAST_STEP = "end"
"""What a run calls its last checkpoint, when its program has come to its end."""

_ASKED = "/approvals"
_OF_ONE = 8
"""More notes than one lease has that count: its first, renewals of late, and what gave it back."""


def standing_of(client: SyncClient | LazyClient, session: SessionInfo) -> Standing | None:
    """Return how a session stands; None where no program keeps a lease: then nobody knows."""
    return standings_of(client, [session])[session.agent_id, session.session_id]


def standings_of(
    client: SyncClient | LazyClient, sessions: Sequence[SessionInfo]
) -> dict[tuple[str, str], Standing | None]:
    """Return how each of some sessions stands, by its agent and name."""
    waiting = _waiting(client, sessions)
    leases = _last_leases(client, sessions)
    return {
        key: "waiting" if key in waiting else _standing(each, leases.get(_scope(each)))
        for each in sessions
        for key in [(each.agent_id, each.session_id)]
    }


def _standing(session: SessionInfo, last: tuple[bool, str, datetime] | None) -> Standing | None:
    if last is None:
        return "failed" if _has_failed(session) else None
    is_released, owner, until = last
    if not is_released:
        return "running" if _is_alive(owner, until) else "cut off"
    if _has_failed(session):
        return "failed"
    if session.head.handoff_target is not None:
        return "handed off"
    return "ended" if session.head.step_name == _LAST_STEP else "stopped"


def _has_failed(session: SessionInfo) -> bool:
    return bool(session.head.metadata.get("failed")) and session.head.handoff_target is None


def _waiting(
    client: SyncClient | LazyClient, sessions: Sequence[SessionInfo]
) -> set[tuple[str, str]]:
    if not client.store.notes([_ASKED], 0, 1):
        return set()
    agents = {each.agent_id for each in sessions}
    found = client.pending(agents.pop() if len(agents) == 1 else None)
    return {(each.agent_id, each.session_id) for each in found}


def _scope(session: SessionInfo) -> str:
    agent = quote(session.agent_id, safe="", errors="surrogatepass")
    return f"/sessions/{agent}/{session.session_id}"


def _last_leases(
    client: SyncClient | LazyClient, sessions: Sequence[SessionInfo]
) -> dict[str, tuple[bool, str, datetime]]:
    """Return whether the last lease was given back, whose it was, and until when, by scope."""
    noted: dict[str, list[Note]] = {}
    scopes = list(map(_scope, sessions))
    for note in _newest(client.store, scopes) if scopes else ():
        noted.setdefault(note.scope, []).append(note)
    found = {scope: _last_lease(notes) for scope, notes in noted.items()}
    return {scope: last for scope, last in found.items() if last is not None}


def _newest(store: Store, scopes: list[str]) -> list[Note]:
    able = store.capability(FindsLastNotes)
    return store.notes(scopes) if able is None else able.last_notes(scopes, _OF_ONE)


def _last_lease(notes: list[Note]) -> tuple[bool, str, datetime] | None:
    last, is_released, value = 0, False, None
    for note in notes:
        kind, _, rest = note.key.partition("/")
        number, _, mark = rest.partition("/")
        if kind != "lease" or not (number.isascii() and number.isdecimal() and len(number) < 19):
            continue
        if int(number) >= last:
            is_released = mark == "released" or (is_released and int(number) == last)
            last, value = int(number), note.body
    if value is None:
        return None
    try:
        said: Any = unpack(decompress(value), on_unknown="raw")
    except HoldfastError:
        return None
    match said:
        case {"owner": str() as owner, "until": datetime(tzinfo=zone) as until} if zone:
            return is_released, owner, until
    return None


def _is_alive(owner: str, until: datetime) -> bool:
    from holdfast.system.processes import is_dead

    return datetime.now(UTC) < until and not is_dead(owner)
