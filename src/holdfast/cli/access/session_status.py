"""How a session stands: whether a process works on it, waits, has ended or was cut off."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from holdfast.core.chunk_format import decompress
from holdfast.core.codec import unpack
from holdfast.errors import HoldfastError

if TYPE_CHECKING:
    from holdfast.cli.access.opening import LazyClient
    from holdfast.stores.base import SessionInfo

Standing = Literal["running", "waiting", "failed", "handed off", "ended", "stopped", "cut off"]
_LAST_STEP = "end"
"""What a run calls its last checkpoint, when its program has come to its end."""

_ASKED = "/approvals"


def standing_of(client: LazyClient, session: SessionInfo) -> Standing | None:
    """Return how a session stands; None where no program keeps a lease: then nobody knows."""
    if _waits(client, session):
        return "waiting"
    last = _last_lease(client, session)
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


def _waits(client: LazyClient, session: SessionInfo) -> bool:
    if not client.store.notes([_ASKED], 0, 1):
        return False
    waiting = client.pending(session.agent_id)
    return any(each.session_id == session.session_id for each in waiting)


def _last_lease(client: LazyClient, session: SessionInfo) -> tuple[bool, str, datetime] | None:
    """Return whether the last lease was given back, whose it was, and until when."""
    agent = quote(session.agent_id, safe="", errors="surrogatepass")
    last, is_released, value = 0, False, None
    for note in client.store.notes([f"/sessions/{agent}/{session.session_id}"]):
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
