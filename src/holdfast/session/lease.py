"""The lease of a session: which process works on it now.

It is noted under the session's name, renewed while its owner lives and released at the end.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from holdfast.errors import NoteExistsError, SessionBusyError, SessionLostError
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.system.processes import is_dead, this_process, told
from holdfast.verbs import leases, notes, stored_values
from holdfast.verbs.leases import LastLease

DEFAULT_LEASE = 30.0
CRASHED, BEHIND, CLEAN, RELEASED = "crashed", "behind", "clean", "released"
"""How a lease ended: not given back; given back, with files that are not as recorded, or that are;
or given back by a version that did not say."""


@dataclass(frozen=True, slots=True)
class SessionLease(leases.Lease):
    """A process's right to work on a session, for a time."""

    owner: str
    before: str | None = None
    """How the lease before ended: one of CRASHED, BEHIND, CLEAN and RELEASED; None if none was."""

    KIND = "lease"
    RENEWALS_EXPIRE = True

    @property
    def session(self) -> str:
        """The agent and the session that it is for."""
        return self.scope.removeprefix(_SCOPE)

    def value(self) -> dict[str, Any]:
        """Return what its notes tell."""
        return {"owner": self.owner, "until": self.until}

    def lost(self) -> SessionLostError:
        """Return what to tell who does not hold the session any more."""
        return SessionLostError(
            f"another process took over the session of {self.session}: "
            "nothing more is saved by this one"
        )

    def overtaken(self, checkpoint_id: str) -> SessionLostError:
        """Return what to tell a run whose session was written on by other means."""
        return SessionLostError(
            f"checkpoint {checkpoint_id} was written on the session of {self.session} while this "
            "run was open, by client.save() or the like: nothing more is saved by this one; open "
            "the session again to go on from there"
        )

    def was_clean(self, has_unknown: bool) -> bool:
        """Return whether the files were as recorded when the session was let go of before.

        Versions that did not say let go of it also where a call had been cut off.
        """
        return self.before in (None, CLEAN) or (self.before == RELEASED and not has_unknown)


_SCOPE = "/sessions/"


def scope_of(agent_id: str, session_id: str) -> str:
    """Return where the leases of a session are noted; no two sessions share a scope."""
    return f"{_SCOPE}{quote(agent_id, safe='', errors='surrogatepass')}/{session_id}"


def acquire(
    engine: Engine, agent_id: str, session_id: str, seconds: float, takeover: bool
) -> Plan[SessionLease]:
    """Take the lease of a session; an error if another process holds it, or may."""
    scope = scope_of(agent_id, session_id)
    last = (yield from _last_leases(engine, [scope])).get(scope)
    if last is not None and not last.is_released and not is_dead(last.told["owner"]):
        _check_free(session_id, last, takeover)
    number = 1 if last is None else last.number + 1
    until = leases.end_of(seconds)
    lease = SessionLease(scope, number, seconds, until, this_process(), _ending(last))
    batch = notes.NoteBatch()
    lease.note(engine, batch)
    if last is not None:
        batch.instead_of = tuple((scope, key) for key in last.past)
    try:
        yield from batch.write(is_quiet=True)
    except NoteExistsError:
        raise SessionBusyError(
            f"session {session_id!r} was opened by another process just now"
        ) from None
    return lease


_KINDS: dict[str, stored_values.Kind] = {
    "owner": stored_values.TEXT,
    "until": stored_values.MOMENT,
    "left": stored_values.TEXT,
    "unknown": stored_values.NUMBER,
}


_OF_ONE = 8
"""More notes than one lease has that count: its first, what gave it back, and renewals that were
written within one lease of now."""


def _last_leases(engine: Engine, scopes: Collection[str]) -> Plan[dict[str, LastLease]]:
    """Return the last lease of each of some sessions; those that had none are left out."""
    noted: dict[str, list[tuple[str, Any]]] = {}
    for note, value in (yield from notes.read_last(engine, list(scopes), _OF_ONE, "raw")):
        noted.setdefault(note.scope, []).append((note.key, value))
    found: dict[str, LastLease] = {}
    for scope, pairs in noted.items():
        what = f"a lease of {scope}"
        last = leases.last_lease(SessionLease, what, pairs, _KINDS, ("owner", "until"))
        if last is not None:
            found[scope] = last
    return found


@dataclass(frozen=True, slots=True)
class Ending:
    """How the last lease of a session stands."""

    is_held: bool
    """Whether its process lives, as far as can be told."""
    may_have_unknown: bool
    owner: str


def endings(
    engine: Engine, sessions: Collection[tuple[str, str]]
) -> Plan[dict[tuple[str, str], Ending]]:
    """Return how the last leases of sessions stand; those that never had one are left out."""
    scopes = {scope_of(*session): session for session in sessions}
    found = (yield from _last_leases(engine, list(scopes))) if scopes else {}
    return {scopes[scope]: _stands(last) for scope, last in found.items()}


def _stands(last: LastLease) -> Ending:
    owner = last.told["owner"]
    unknown = not last.is_released or bool(last.told.get("unknown", 0))
    return Ending(not last.is_over and not is_dead(owner), unknown, told(owner))


def _ending(last: LastLease | None) -> str | None:
    if last is None:
        return None
    left = last.told.get("left")
    return CRASHED if not last.is_released else left if left in (CLEAN, BEHIND) else RELEASED


def _check_free(session_id: str, last: LastLease, takeover: bool) -> None:
    owner = told(last.told["owner"])
    if not last.is_over:
        raise SessionBusyError(
            f"session {session_id!r} is worked on by {owner} until {last.until:%H:%M:%S} UTC "
            "and then on while that process lives: wait for it, or use another session_id"
        )
    if not takeover:
        raise SessionBusyError(
            f"session {session_id!r} was worked on by {owner}, which has not been heard of "
            f"since {last.until:%H:%M:%S} UTC: open it with takeover=True if that process is gone"
        )


def release(engine: Engine, lease: SessionLease, left: str, unknown: int) -> Plan[None]:
    """Give a lease back, and say how the files were left, and how many calls are of unknown end."""
    batch = notes.NoteBatch()
    value = {**lease.value(), "left": left, "unknown": unknown}
    batch.add(engine, lease.scope, f"{lease.key}/{leases.RELEASED}", value)
    lease.replace_renewal(batch)
    try:
        yield from batch.write(is_quiet=True)
    except NoteExistsError:
        return
