"""Records and notes as rows of PostgreSQL, and back."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from holdfast.core.chunk_decoder import references
from holdfast.core.chunk_format import decompress
from holdfast.core.codec import pack
from holdfast.errors import CheckpointIntegrityError
from holdfast.model import CheckpointInfo, microseconds, moment
from holdfast.stores.base import Note, seq_of
from holdfast.stores.shared.id_bounds import byte_bounds, uuid_bounds, uuid_bytes, uuid_text
from holdfast.stores.shared.rows import Row, check_time, info_of, packed_body

_IS_UUID = b"\x00"
_NOTHING = (b"\x01", b"\x00")
_NO_TEXT = re.compile("[\x00\ud800-\udfff]")

_NEAR = 8
"""How many chunks are read together with the root."""


def now() -> int:
    """Return microseconds since 1970."""
    return microseconds(datetime.now(UTC))


def key_of(name: str) -> bytes:
    """Return an id or scope as it is stored: a UUID in 17 bytes; no name begins with 0."""
    uuid = uuid_bytes(name)
    return text_bytes(name) if uuid is None else _IS_UUID + uuid


def text_bytes(text: str) -> bytes:
    """Return any text at all; what no name can hold is found nowhere, and is no error."""
    return text.encode(errors="surrogatepass")


def is_text(value: str) -> bool:
    """Return whether PostgreSQL can hold this text."""
    return not _NO_TEXT.search(value)


def name_of(key: bytes) -> str:
    """Return the id or scope that is stored so."""
    if key.startswith(_IS_UUID):
        return uuid_text(key[1:])
    return key.decode(errors="surrogatepass")


def bounds_of(prefix: str) -> tuple[bytes, bytes, bytes, bytes]:
    """Return the first and last UUID that begin so, the first text that does and one past the last.

    >>> from holdfast.stores.postgres.rows import bounds_of
    >>> bounds_of("no uuid")
    (b'\\x01', b'\\x00', b'no uuid', b'no uuid\\xff')
    """
    uuids = uuid_bounds(prefix)
    lowest, highest = _NOTHING if uuids is None else (_IS_UUID + each for each in uuids)
    first, past = byte_bounds(text_bytes(prefix))
    return lowest, highest, max(first, b"\x01"), past


def session_name(agent_id: str, session_id: str) -> bytes:
    """Return what a session is found by, however long its names are."""
    return hashlib.sha256(pack([agent_id, session_id])).digest()[:16]


def record_row(info: CheckpointInfo, chunks: Mapping[bytes, bytes]) -> Row:
    """Return a record as the function ``keep`` takes it, from ``_seq`` on."""
    root = bytes.fromhex(info.content_id)
    check_time(info.created_at)
    expires = info.expires_at
    return (
        seq_of(info.created_at),
        None if expires is None else microseconds(expires),
        info.size,
        key_of(info.checkpoint_id),
        None if info.parent_id is None else key_of(info.parent_id),
        root,
        _beneath(chunks.get(root)),
        bytes.fromhex(info.checksum),
        info.handoff_target,
        packed_body(info),
        session_name(info.agent_id, info.session_id),
        info.agent_id,
        info.session_id,
    )


def _beneath(stored: bytes | None) -> list[bytes] | None:
    """Return what to read with a root: all it refers to if that is little, else the indexes."""
    if stored is None:
        return None
    try:
        found = references(decompress(stored))
    except CheckpointIntegrityError:  # which whoever loads it will find
        return None
    names = [name for name, refers in found if refers or len(found) <= _NEAR]
    return names[:_NEAR] or None


def record_of(row: Row) -> CheckpointInfo:
    """Return the record of a row of ``RECORD_COLUMNS``."""
    return info_of(tuple(row), name_of, _shown)


def _shown(key: bytes) -> str:
    return name_of(key) if key.startswith(_IS_UUID) else key.decode(errors="backslashreplace")


def note_columns(notes: Sequence[Note]) -> Row:
    """Return notes as the function ``keep`` takes them: a list for each column, or nothing."""
    if not notes:
        return (None,) * 5
    return (
        [key_of(note.scope) for note in notes],
        [text_bytes(note.key) for note in notes],
        [note.checksum for note in notes],
        [note.body for note in notes],
        [None if note.expires_at is None else microseconds(note.expires_at) for note in notes],
    )


def note_of(row: Row) -> Note:
    """Return the note of a row."""
    seq, scope, key, expires, body, checksum = row
    try:
        end = None if expires is None else moment(expires)
        return Note(name_of(scope), key.decode(errors="surrogatepass"), body, checksum, end, seq)
    except (OverflowError, UnicodeDecodeError) as error:
        raise CheckpointIntegrityError(None, f"unreadable note ({error})") from None
