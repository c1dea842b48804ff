"""Events: what was announced on a channel, kept in order, read from any place on."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Any

from holdfast.errors import InvalidArgumentError
from holdfast.ids import new_id
from holdfast.model import checked_name, moment
from holdfast.runtime import steps
from holdfast.runtime.engine import Engine
from holdfast.runtime.steps import Plan
from holdfast.stores.base import NOTE_TIES, Note
from holdfast.stores.capabilities import Waits
from holdfast.verbs import notes, stored_values
from holdfast.verbs.ids import resolve

PAGE = 500
_POLL = 0.02
_LONGEST_WAIT = 30.0


@dataclass(frozen=True, slots=True)
class Event:
    """Something announced on a channel."""

    channel: str
    cursor: str
    """Where it stands: give it as ``after`` to go on behind it, also in another process."""
    checkpoint_id: str | None
    data: dict[str, Any]
    published_at: datetime


def scope(channel: str) -> str:
    """Return where the events of a channel are kept."""
    return f"/events/{checked_name('channel', channel)}"


def note(
    engine: Engine,
    written: notes.NoteBatch,
    channel: str,
    checkpoint_id: str | None,
    data: dict[str, Any],
    ttl_seconds: float | None,
) -> None:
    """Add an event to what is to be written."""
    expires = None if ttl_seconds is None else datetime.now(UTC) + timedelta(seconds=ttl_seconds)
    value = {"checkpoint_id": checkpoint_id, "data": data}
    written.add(engine, scope(channel), new_id(), value, expires)


def publish(
    engine: Engine,
    channel: str,
    checkpoint_id: str | None,
    data: dict[str, Any],
    ttl_seconds: float | None,
) -> Plan[None]:
    """Announce something on a channel; it is durable when this returns."""
    whole_id = None if checkpoint_id is None else (yield from resolve(checkpoint_id))
    written = notes.NoteBatch()
    note(engine, written, channel, whole_id, data, ttl_seconds)
    yield from written.write()


def read(engine: Engine, channel: str, after: int) -> Plan[list[Event]]:
    """Return the next events of a channel, in their order."""
    found = yield from notes.read(engine, [scope(channel)], after, PAGE, on_unknown="raw")
    return [_event(channel, note, value) for note, value in found]


_KINDS: dict[str, stored_values.Kind] = {
    "checkpoint_id": stored_values.MAYBE_TEXT,
    "data": stored_values.FIELDS,
}


def _event(channel: str, note: Note, value: Any) -> Event:
    said = stored_values.fields_of(f"an event of {channel!r}", value, _KINDS, tuple(_KINDS))
    at = moment(note.seq // NOTE_TIES)
    return Event(channel, str(note.seq), said["checkpoint_id"], said["data"], at)


def place(after: str | Event | None) -> int:
    """Return the place that a cursor names; the beginning for None."""
    text = after.cursor if isinstance(after, Event) else after
    if text is None:
        return 0
    if isinstance(text, str) and text.isdecimal():
        return int(text)
    raise InvalidArgumentError(f"after is the cursor of an event, not {after!r}")


def wait(engine: Engine, channel: str, after: int, timeout: float | None) -> Plan[bool]:
    """Return True as soon as there is an event past that place, and False in the end."""
    at, deadline = scope(channel), None if timeout is None else monotonic() + timeout
    seen: Any = None
    while True:
        tick = engine.tick()
        if (tick is None or tick != seen) and (yield from steps.notes([at], after, 1)):
            return True
        seen = tick
        left = _LONGEST_WAIT if deadline is None else min(_LONGEST_WAIT, deadline - monotonic())
        if left <= 0:
            return False
        if engine.can(Waits):
            yield from steps.wait(at, after, left)
        else:
            yield from steps.rest(min(_POLL, left))
