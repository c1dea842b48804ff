"""Records and notes as rows of SQLite, and back."""

from __future__ import annotations

from datetime import UTC, datetime

from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.stores.base import Note, SessionInfo
from holdfast.stores.shared.id_bounds import uuid_bytes, uuid_text
from holdfast.stores.shared.rows import Row, info_of, made_at, packed_body

RecordAtPlace = tuple[int, CheckpointInfo]
"""A record with its place."""


def now() -> int:
    """Return microseconds since 1970."""
    return microseconds(datetime.now(UTC))


def key_of(name: str) -> bytes | str:
    """Return an id or scope as it is stored: a UUID in 16 bytes."""
    return uuid_bytes(name) or name


def name_of(key: bytes | str) -> str:
    """Return the id or scope that is stored so."""
    # What is neither bytes nor text is damaged, and found under no id.
    return uuid_text(key) if isinstance(key, bytes) else str(key)


def record_row(info: CheckpointInfo, session: int, seq: int) -> Row:
    """Return a record as the row of a session at a place."""
    expires = info.expires_at
    return (
        seq,
        made_at(info.created_at, seq),
        key_of(info.checkpoint_id),
        session,
        None if info.parent_id is None else key_of(info.parent_id),
        None if expires is None else microseconds(expires),
        info.handoff_target,
        bytes.fromhex(info.content_id),
        info.size,
        packed_body(info),
        bytes.fromhex(info.checksum),
    )


def placed_of(row: Row) -> RecordAtPlace:
    """Return the record of a row with its place."""
    return row[0], record_of(row)


def record_of(row: Row) -> CheckpointInfo:
    """Return the record of a row."""
    return info_of(row, name_of)


def session_of(row: Row) -> SessionInfo:
    """Return the session of a row: its newest record, and how many it has."""
    head = record_of(row[:-1])
    return SessionInfo(head.agent_id, head.session_id, head, row[-1])


def note_row(seq: int, note: Note) -> Row:
    """Return a note as the row at a place."""
    expires = None if note.expires_at is None else microseconds(note.expires_at)
    return seq, key_of(note.scope), note.key, expires, note.body, note.checksum


def note_of(row: Row) -> Note:
    """Return the note of a row; one that is damaged does not fit its checksum."""
    seq, scope, key, expires, body, checksum = row
    name = name_of(scope)
    try:
        if not (type(key) is str and type(body) is bytes and type(checksum) is bytes):
            raise TypeError
        end = None if expires is None else moment(expires)
        return Note(name, key, body, checksum, end, seq)
    except (OverflowError, TypeError):  # damaged: no checksum fits it
        return Note(name, str(key), b"", b"", seq=seq)
