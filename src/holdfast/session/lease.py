"""Leases: who works on a session now. They keep two processes apart; notes on heads keep them safe.

A lease is a note under the session's name, ``lease/1``, ``lease/2``, …, renewed while its owner
lives and released at the end. Even where two believe they hold it, only one can write what follows
a head, because a head has the note ``next`` once.
"""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

from holdfast.errors import SessionBusyError, SessionLostError
from holdfast.ids import new_id
from holdfast.stores.base import NoteExists
from holdfast.verbs import kept, notes
from holdfast.verbs.engine import Engine
from holdfast.verbs.plan import Plan

DEFAULT_LEASE = 30.0


@dataclass(frozen=True, slots=True)
class Lease:
    """A process's right to work on a session, for a time."""

    scope: str
    number: int
    owner: str
    seconds: float
    until: datetime
    is_taken_over: bool = False
    """Whether the process that held it before may still be alive."""

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
    lease = Lease(scope, number, _this_process(), seconds, _end(seconds), taken)
    written = notes.Written()
    written.add(engine, scope, f"lease/{number}", _value(lease))
    try:
        yield from written.write()
    except NoteExists:
        raise SessionBusyError(
            f"session {session_id!r} was opened by another process just now"
        ) from None
    return lease


_KINDS: dict[str, kept.Kind] = {"owner": kept.TEXT, "until": kept.MOMENT}


def _held(engine: Engine, scope: str) -> Plan[dict[str, Any] | None]:
    """The last lease of a session and how it stands."""
    last: dict[str, Any] | None = None
    for note, value in (yield from notes.read(engine, [scope], on_unknown="raw")):
        text, _, mark = note.key.removeprefix("lease/").partition("/")
        number = kept.number_in(f"a lease of {scope}", text)
        value = kept.fields_of(f"a lease of {scope}", value, _KINDS, ("owner", "until"))
        if last is None or number > last["number"]:
            last = {"number": number, "released": False, **value}
        elif number == last["number"]:
            # A renewal under way may be written after the lease was given back.
            last = {**last, **value, "released": last["released"] or mark == "released"}
    return last


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
    if not (yield from is_held(engine, lease)):
        raise lost(lease)
    again = lease.renewed()
    written = notes.Written()
    written.add(engine, lease.scope, f"lease/{lease.number}/{new_id()}", _value(again), again.until)
    yield from written.write()
    return again


def is_held(engine: Engine, lease: Lease) -> Plan[bool]:
    """Whether nobody else took the session since."""
    held = yield from _held(engine, lease.scope)
    return held is None or held["number"] == lease.number


def release(engine: Engine, lease: Lease) -> Plan[None]:
    """Give a lease back."""
    written = notes.Written()
    written.add(engine, lease.scope, f"lease/{lease.number}/released", _value(lease))
    try:
        yield from written.write()
    except NoteExists:
        return


def lost(lease: Lease) -> SessionLostError:
    """What to tell who does not hold the session any more."""
    return SessionLostError(
        f"another process took over the session of {lease.scope.removeprefix('/sessions/')}: "
        "nothing more is saved by this one"
    )


def _value(lease: Lease) -> dict[str, Any]:
    return {"owner": lease.owner, "until": lease.until}


def _end(seconds: float) -> datetime:
    return datetime.now(UTC) + timedelta(seconds=seconds)


def _this_process() -> str:
    return f"{_machine()}:{_boot()}:{os.getpid()}:{_started(os.getpid())}"


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
    return _started(int(pid)) != started


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When a process started, in ticks since the boot; nothing if there is none."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def _shown(owner: str) -> str:
    host, _, pid, _ = [*owner.rsplit(":", 3), "", "", ""][:4]
    return f"process {pid} on {host.partition('/')[0]}"
