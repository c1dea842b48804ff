"""Records and notes as the Redis store keeps them."""

from __future__ import annotations

from datetime import datetime
from itertools import product
from typing import NamedTuple

import ormsgpack

from holdfast.core.codec import pack
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.model.decoding import info_of_packed
from holdfast.model.record import packed_of
from holdfast.stores.base import Note
from holdfast.stores.redis.keys import SEQ, STAMP, Keys, as_bytes, joined, place, seq_of
from holdfast.stores.shared.rows import unpacked


def pack_record(info: CheckpointInfo, token: bytes) -> bytes:
    """Return a record, with a token by which the call that wrote it knows it again."""
    packed = packed_of(info.__dict__)
    packed[0] = token  # in place of its id, which is the key
    return pack(packed)


class PlacedRecord(NamedTuple):
    """A record, and where it stands among others."""

    place: bytes
    info: CheckpointInfo


def unpack_record(checkpoint_id: str, value: bytes) -> PlacedRecord:
    """Return the record of that id; its place is kept with it where its time does not tell it."""
    try:
        packed = unpacked(value)
        stamp = packed.pop() if type(packed[-1]) is str else None
        packed[0] = checkpoint_id
        info = info_of_packed(packed)
        if stamp is None:
            return PlacedRecord(place(info.created_at, checkpoint_id), info)
        if len(stamp) != STAMP or not stamp.isascii():
            raise ValueError("its place is none")
        return PlacedRecord(stamp.encode() + as_bytes(checkpoint_id), info)
    except (AttributeError, LookupError, OverflowError, TypeError, ValueError) as error:
        raise CheckpointIntegrityError(checkpoint_id, f"unreadable record ({error})") from None
    except CheckpointIntegrityError as error:
        raise CheckpointIntegrityError(checkpoint_id, error.reason) from None


_NAME, _NAME_OR_NONE = (str,), (str, type(None))
_ENTRY_TYPES = set(
    product(_NAME, (bytes,), _NAME, _NAME, _NAME_OR_NONE, _NAME_OR_NONE, (int,), (int, type(None)))
)
"""What an entry may be made of."""


class IndexEntry(NamedTuple):
    """Where a record is to be found: all that is needed to find it, count it and remove it."""

    checkpoint_id: str
    place: bytes
    agent_id: str
    session_id: str
    parent_id: str | None
    handoff_target: str | None
    size: int
    expires: int | None

    @classmethod
    def of(cls, info: CheckpointInfo, at: bytes | None = None) -> IndexEntry:
        """Return the entry of a record: at its place, or at that of its time."""
        expires = info.expires_at
        return cls(
            info.checkpoint_id,
            at or place(info.created_at, info.checkpoint_id),
            info.agent_id,
            info.session_id,
            info.parent_id,
            info.handoff_target,
            info.size,
            None if expires is None else microseconds(expires),
        )

    @classmethod
    def expiring(cls, member: bytes) -> IndexEntry:
        """Return the entry that ``expiry`` gave."""
        try:
            entry = cls(*ormsgpack.unpackb(member[1:]))
            if tuple(map(type, entry)) not in _ENTRY_TYPES:
                raise ValueError("of another shape")
            return entry
        except (TypeError, ValueError) as error:
            raise CheckpointIntegrityError(None, f"unreadable entry ({error})") from None

    @property
    def expiry(self) -> bytes:
        """Its entry among those that expire; it outlives the record, which Redis removes."""
        return b"" if self.expires is None else b"r" + ormsgpack.packb(list(self))

    @property
    def session(self) -> tuple[str, str]:
        """The agent and the session it belongs to."""
        return self.agent_id, self.session_id

    @property
    def who(self) -> bytes:
        """Its session, as that is listed by its name."""
        return joined(self.session_id, self.agent_id)

    @property
    def child(self) -> bytes:
        """Its entry among the children of its parent."""
        return b"" if self.parent_id is None else as_bytes(self.parent_id) + b"\0" + self.place

    @property
    def target(self) -> bytes:
        """Its entry among what is handed to an agent."""
        target = self.handoff_target
        return b"" if target is None else as_bytes(target) + b"\0" + self.place

    def entries(self, keys: Keys) -> list[tuple[bytes, int, bytes, int]]:
        """Return every sorted set it stands in, its score, member, and where in that the place is.

        The server may have to give it another place; -1 where the member tells none.
        """
        entries = [
            (keys.all, 0, self.place, 0),
            (keys.ids, 0, as_bytes(self.checkpoint_id), -1),
            (keys.agent(self.agent_id), 0, self.place, 0),
            (keys.session(*self.session), 0, self.place, 0),
            (keys.sessions, 0, self.who, -1),
            (keys.agents, 0, joined(self.agent_id, self.session_id), -1),
        ]
        for key, member in ((keys.children, self.child), (keys.targets, self.target)):
            if member:
                entries.append((key, 0, member, len(member) - len(self.place)))
        if self.expires is not None:
            entries.append((keys.expiry, self.expires, self.expiry, self._place_in_expiry()))
        return entries

    def _place_in_expiry(self) -> int:
        before = len(ormsgpack.packb(self.checkpoint_id))
        return len(b"r") + 1 + before + len(ormsgpack.packb(self.place)) - len(self.place)

    def keys_to_remove(self, keys: Keys) -> list[bytes]:
        """Return the keys of the script that removes it."""
        return [
            keys.record(self.checkpoint_id),
            keys.all,
            keys.ids,
            keys.agent(self.agent_id),
            keys.session(*self.session),
            keys.children,
            keys.targets,
            keys.sessions,
            keys.agents,
            keys.expiry,
            keys.totals,
            keys.touched,
            keys.tags,
            keys.filed,
        ]

    def members_to_remove(self) -> list[bytes | int]:
        """Return its members of those."""
        return [
            as_bytes(self.checkpoint_id),
            self.place,
            self.child,
            self.target,
            self.who,
            joined(self.agent_id, self.session_id),
            self.expiry,
            -self.size,
        ]


def pack_note(note: Note, token: bytes) -> bytes:
    """Return a note; the server puts its place before it."""
    expires = None if note.expires_at is None else microseconds(note.expires_at)
    return ormsgpack.packb([token, expires, note.checksum, note.body])


def unpack_note(scope: str, key: str, value: bytes) -> Note:
    """Return the note of that scope and key."""
    try:
        _, expires, checksum, body = ormsgpack.unpackb(value[SEQ:])
        if type(body) is not bytes or type(checksum) is not bytes:
            raise ValueError("its body is none")
        end: datetime | None = None if expires is None else moment(expires)
        return Note(scope, key, body, checksum, end, seq_of(value))
    except (OverflowError, TypeError, ValueError) as error:
        raise CheckpointIntegrityError(scope, f"unreadable note {key!r} ({error})") from None
