"""The keys of the Redis store, and how records are ordered in them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from holdfast.errors import CheckpointIntegrityError, InvalidArgumentError
from holdfast.model import microseconds
from holdfast.stores.base import NOTE_TIES
from holdfast.stores.shared.tags import numbers_of

VERSION = 3
FORMAT = b"v%d" % VERSION
"""The version of this layout, kept beside the data. Scripts of before take it for no number."""
OLDER = (b"1", b"2")
"""Those that are brought to this one when they are opened: their sessions are not filed."""

_PREFIX = re.compile(r"[A-Za-z0-9._:/-]{1,64}")
_BEFORE_ALL = 2**62
NUMBER = 8
"""How many bytes the number of a tag has."""
SEQ = 17
"""How many digits the place of a note has."""


class Keys:
    """The names of all keys. Those in braces lie in one slot; every chunk lies in its own."""

    def __init__(self, prefix: str) -> None:
        if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
            raise InvalidArgumentError(
                "the prefix of a Redis store has 1 to 64 letters, digits or . _ : / -"
            )
        self.prefix = prefix
        self._chunk = f"{prefix}:c:".encode()
        self._together = b"{%s}:" % prefix.encode()
        self.format = self._key("format")
        self.chunks = self._key("chunks")
        self.totals = self._key("totals")
        self.last = self._key("last")
        self.notes = self._key("notes")
        self.expiry = self._key("expiry")
        self.wake = self._key("wake")
        self.all = self._key("all")
        self.ids = self._key("ids")
        self.children = self._key("children")
        self.targets = self._key("targets")
        self.sessions = self._key("sessions")
        self.agents = self._key("agents")
        self.touched = self._key("touched")
        self.tags = self._key("tags")
        self.filed = self._key("filed")
        self.filing = self._key("filing")

    def _key(self, kind: str, *names: bytes) -> bytes:
        return self._together + b":".join([kind.encode(), *names])

    def chunk(self, name: bytes) -> bytes:
        """Return a chunk: eight bytes of when it was written, and its data."""
        return self._chunk + name.hex().encode()

    def record(self, checkpoint_id: str) -> bytes:
        """Return a record: the truth of whether there is such a checkpoint."""
        return self._key("r", as_bytes(checkpoint_id))

    def agent(self, agent_id: str) -> bytes:
        """Return the records of an agent, by time."""
        return self._key("a", as_bytes(agent_id))

    def session(self, agent_id: str, session_id: str) -> bytes:
        """Return the records of a session, by time."""
        return self._key("s", joined(agent_id, session_id))

    def session_of(self, who: bytes) -> bytes:
        """Return the same of a session as the list of all names it."""
        session_id, agent_id = parted(who)
        return self.session(agent_id, session_id)

    def note(self, scope: str, key: str) -> bytes:
        """Return a note."""
        return self._key("n", joined(scope, key))

    def order(self, scope: str) -> bytes:
        """Return the notes of a scope, by their place."""
        return self._key("o", as_bytes(scope))


def as_bytes(text: str) -> bytes:
    """Return any text, so that the order of the bytes is that of the text."""
    return text.encode("utf-8", "surrogatepass")


def as_text(data: bytes) -> str:
    """Return what ``as_bytes`` was given."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        raise CheckpointIntegrityError(None, f"a listing holds {data[:40]!r}, no name") from None


def joined(first: str, second: str) -> bytes:
    """Return two names as one; no name holds a NUL."""
    return b"%s\0%s" % (as_bytes(first), as_bytes(second))


def parted(both: bytes) -> tuple[str, str]:
    """Return the names that ``joined`` was given."""
    first, _, second = both.partition(b"\0")
    return as_text(first), as_text(second)


def numbers_filed(name: str, value: Any) -> list[bytes]:
    """Return the numbers under which sessions with a tag are filed: of its name, and its value."""
    return list(map(number_filed, numbers_of(name, value)))


def number_filed(number: int) -> bytes:
    """Return one of these, as it is stored."""
    return (number % 2**64).to_bytes(NUMBER, "big")


def stamp(moment: datetime) -> bytes:
    """Return a time, exact to the microsecond, so that the order of the bytes is that of time.

    Scores of sorted sets would not do: they are floats, and have no room for equal times.
    """
    return b"%016x" % (microseconds(moment) + _BEFORE_ALL)


STAMP = 16
"""How many digits a time has, as ``stamp`` writes it."""


def place(created_at: datetime, checkpoint_id: str) -> bytes:
    """Return where a record stands among others, unless its session has later ones already."""
    return stamp(created_at) + as_bytes(checkpoint_id)


def touch(place: bytes, who: bytes) -> bytes:
    """Return the entry of a session, as ``joined`` names it, by where its newest record stands."""
    return b"%s\0%s" % (place, who)


def touched_by(member: bytes) -> tuple[bytes, bytes]:
    """Return what ``touch`` was given: no id holds a NUL."""
    place, _, who = member.partition(b"\0")
    return place, who


def id_at(member: bytes) -> str:
    """Return the id of the record that stands there."""
    return as_text(member[STAMP:])


def seq_digits(seq: int) -> bytes:
    """Return the place of a note as it is stored: 14 digits of microseconds and 3 of the count."""
    seq = max(0, min(seq, 2**56 * NOTE_TIES - 1))
    return b"%014x%03x" % divmod(seq, NOTE_TIES)


def seq_of(digits: bytes) -> int:
    """Return the place of a note."""
    return int(digits[:14], 16) * NOTE_TIES + int(digits[14:SEQ], 16)
