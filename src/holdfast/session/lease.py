"""Leases: who works on a session now.

A lease is a note under the session's name, ``lease/1``, ``lease/2``, …, renewed while its owner
lives and released at the end. Whatever the owner of one writes is written unless the next one is
there, in the same transaction. So a process that was stopped for a while, and lost the session to
another, can write nothing that counts, whatever it still believes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.errors import FencedError, NoteExistsError, SessionBusyError, SessionLostError
from holdfast.ids import new_id
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import Fence
from holdfast.verbs import notes, stored_values

DEFAULT_LEASE = 30.0
CRASHED, BEHIND, CLEAN, RELEASED = "crashed", "behind", "clean", "released"
"""How a lease ended: not given back; given back, with files that are not as recorded, or that are;
or given back by a version that did not say."""


@dataclass(frozen=True, slots=True)
class Lease:
    """A process's right to work on a session, for a time."""

    scope: str
    number: int
    owner: str
    seconds: float
    until: datetime
    before: str | None = None
    """How the lease before ended: one of CRASHED, BEHIND, CLEAN and RELEASED; None if none was."""

    @property
    def fence(self) -> Fence:
        """The note that whoever takes the session over writes first."""
        return self.scope, f"lease/{self.number + 1}"

    def renewed(self) -> Lease:
        return replace(self, until=_end(self.seconds))

    @property
    def is_half_over(self) -> bool:
        return datetime.now(UTC) >= self.until - timedelta(seconds=self.seconds / 2)


def scope_of(agent_id: str, session_id: str) -> str:
    """Where the leases of a session are noted; no two sessions share a place."""
    return f"/sessions/{quote(agent_id, safe='', errors='surrogatepass')}/{session_id}"


def acquire(
    engine: Engine, agent_id: str, session_id: str, seconds: float, takeover: bool
) -> Plan[Lease]:
    """Take the lease of a session; an error if another process holds it, or may."""
    scope = scope_of(agent_id, session_id)
    held = yield from _held(engine, scope)
    taken = held is not None and not held["released"] and not _is_dead(held["owner"])
    if held is not None and taken:
        _check_free(session_id, held, takeover)
    number = 1 if held is None else held["number"] + 1
    lease = Lease(scope, number, _this_process(), seconds, _end(seconds), _ending(held))
    written = notes.Written()
    written.add(engine, scope, f"lease/{number}", _value(lease))
    try:
        yield from written.write()
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


def _held(engine: Engine, scope: str) -> Plan[dict[str, Any] | None]:
    """The last lease of a session and how it stands."""
    return (yield from _lasts(engine, [scope])).get(scope)


def _lasts(engine: Engine, scopes: Collection[str]) -> Plan[dict[str, dict[str, Any]]]:
    """The last lease of each of some sessions."""
    found: dict[str, dict[str, Any]] = {}
    for note, value in (yield from notes.read(engine, list(scopes), on_unknown="raw")):
        last = found.get(note.scope)
        text, _, mark = note.key.removeprefix("lease/").partition("/")
        what = f"a lease of {note.scope}"
        number = stored_values.number_in(what, text)
        value = stored_values.fields_of(what, value, _KINDS, ("owner", "until"))
        if last is None or number > last["number"]:
            found[note.scope] = {"number": number, "released": False, **value}
        elif number == last["number"]:
            # A renewal under way may be written after the lease was given back.
            is_over = last["released"] or mark == "released"
            found[note.scope] = {**last, **value, "released": is_over}
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
    """How the last leases of sessions stand; those that never had one are left out."""
    scopes = {scope_of(*session): session for session in sessions}
    found = (yield from _lasts(engine, list(scopes))) if scopes else {}
    return {scopes[scope]: _stands(held) for scope, held in found.items()}


def _stands(held: dict[str, Any]) -> Ending:
    is_over = held["released"] or _is_dead(held["owner"]) or datetime.now(UTC) >= held["until"]
    unknown = not held["released"] or bool(held.get("unknown", 0))
    return Ending(not is_over, unknown, _shown(held["owner"]))


def was_clean(lease: Lease, unknown: Collection[Any]) -> bool:
    """Whether the files were as recorded when the session was let go of before this lease.

    Versions that did not say let go of it also where a call had been cut off.
    """
    return lease.before in (None, CLEAN) or (lease.before == RELEASED and not unknown)


def _ending(held: dict[str, Any] | None) -> str | None:
    if held is None:
        return None
    left = held.get("left")
    return CRASHED if not held["released"] else left if left in (CLEAN, BEHIND) else RELEASED


def _check_free(session_id: str, held: dict[str, Any], takeover: bool) -> None:
    owner, until = held["owner"], held["until"]
    if datetime.now(UTC) < until:
        raise SessionBusyError(
            f"session {session_id!r} is worked on by {_shown(owner)} until {until:%H:%M:%S} UTC "
            "and then on while that process lives: wait for it, or use another session_id"
        )
    if not takeover:
        raise SessionBusyError(
            f"session {session_id!r} was worked on by {_shown(owner)}, which has not been heard of "
            f"since {until:%H:%M:%S} UTC: open it with takeover=True if that process is gone"
        )


def renew(engine: Engine, lease: Lease) -> Plan[Lease]:
    """Hold on to a lease; SessionLostError if another process has taken the session."""
    again = lease.renewed()
    written = notes.Written()
    written.add(engine, lease.scope, f"lease/{lease.number}/{new_id()}", _value(again), again.until)
    try:
        yield from written.write(lease.fence)
    except FencedError:
        raise lost(lease) from None
    return again


def release(engine: Engine, lease: Lease, left: str = CLEAN, unknown: int = 0) -> Plan[None]:
    """Give a lease back, and say how the files were left, and how many calls are of unknown end."""
    written = notes.Written()
    value = {**_value(lease), "left": left, "unknown": unknown}
    written.add(engine, lease.scope, f"lease/{lease.number}/released", value)
    try:
        yield from written.write()
    except NoteExistsError:
        return


def lost(lease: Lease) -> SessionLostError:
    """What to tell who does not hold the session any more."""
    return SessionLostError(
        f"another process took over the session of {_name(lease)}: "
        "nothing more is saved by this one"
    )


def overtaken(lease: Lease, checkpoint_id: str) -> SessionLostError:
    """What to tell a run whose session was written on by other means."""
    return SessionLostError(
        f"checkpoint {checkpoint_id} was written on the session of {_name(lease)} while this run "
        "was open, by client.save() or the like: nothing more is saved by this one; open the "
        "session again to go on from there"
    )


def _name(lease: Lease) -> str:
    return lease.scope.removeprefix("/sessions/")


def _value(lease: Lease) -> dict[str, Any]:
    return {"owner": lease.owner, "until": lease.until}


def _end(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def _this_process() -> str:
    return f"{_machine()}:{_boot()}:{os.getpid()}:{_started(os.getpid()) or ''}"


def _machine() -> str:
    """The host and, as containers may share its name, the namespace in which pids are counted."""
    try:
        return f"{socket.gethostname()}/{Path('/proc/self/ns/pid').stat().st_ino}"
    except OSError:
        return socket.gethostname()


def _is_dead(owner: str) -> bool:
    """Whether a process of this very machine is known to have ended."""
    host, boot, pid, started = [*owner.rsplit(":", 3), "", "", ""][:4]
    if host != _machine() or boot != _boot() or not boot or not pid.isdecimal():
        return False
    now = _started(int(pid))
    # Where a mount of /proc hides others' processes (hidepid), only a signal tells.
    return now != started if now is not None else not _answers(int(pid))


def _answers(pid: int) -> bool:
    """Whether there is a process of that number, whoever it belongs to."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the boot; nothing for one that has ended.

    None where it cannot be seen.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def _shown(owner: str) -> str:
    host, _, pid, _ = [*owner.rsplit(":", 3), "", "", ""][:4]
    return f"process {pid} on {host.partition('/')[0]}"
