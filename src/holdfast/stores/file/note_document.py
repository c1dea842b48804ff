"""One note as a JSON document, to be read by people and given back exactly.

It is written in one way only and proven by the note's checksum, so that no byte can change
unnoticed. Its value is readable where it packs into the same bytes again, else it is base64.
"""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime
from typing import Any

from holdfast.core.chunk_format import chunk_id, decompress, uncompressed
from holdfast.core.codec import pack
from holdfast.core.json_form import dumps, loads, state_to_json, unrevived
from holdfast.errors import CheckpointIntegrityError, SerializationError, StoreFormatError
from holdfast.stores.base import Note

FORMAT = 1
_FIELDS = {
    "scope": (str,),
    "key": (str,),
    "seq": (int,),
    "expires_at": (str, type(None)),
    "checksum": (str,),
}


def compose_note(note: Note, seq: int) -> bytes:
    """Return the document of a note."""
    until = note.expires_at
    head = {
        "scope": note.scope,
        "key": note.key,
        "seq": seq,
        "expires_at": None if until is None else until.astimezone(UTC).isoformat(),
        "checksum": note.checksum.hex(),
    }
    try:
        raw = decompress(note.body)
        value = state_to_json(chunk_id(raw), {chunk_id(raw): raw})
        readable = _rendered({"holdfast": FORMAT, "note": head, "value": value})
        if _body({"value": loads(readable)["value"]}) == note.body:
            return readable
    except (CheckpointIntegrityError, SerializationError, ValueError):
        pass  # it cannot be said in JSON, or not so that the same bytes come back
    body = base64.b64encode(note.body).decode()
    return _rendered({"holdfast": FORMAT, "note": head, "body": body})


def read_note(document: bytes) -> Note:
    """Return the note of a document; damage is CheckpointIntegrityError without an id."""
    data = loads(document)
    if type(data) is not dict or type(data.get("holdfast")) is not int:
        raise _damaged("it is not the document of a note")
    if data["holdfast"] > FORMAT:
        raise StoreFormatError(
            f"it has format {data['holdfast']}, this Holdfast reads up to {FORMAT}: "
            "upgrade Holdfast to open it"
        )
    if list(data) not in (["holdfast", "note", "value"], ["holdfast", "note", "body"]):
        raise _damaged("it is of another shape")
    head = data["note"]
    if type(head) is not dict or list(head) != list(_FIELDS):
        raise _damaged("its head has other fields")
    for name, types in _FIELDS.items():
        if type(head[name]) not in types:
            raise _damaged(f"{name} is of another type")
    try:
        end = head["expires_at"]
        until = None if end is None else datetime.fromisoformat(end)
        checksum = bytes.fromhex(head["checksum"])
        note = Note(head["scope"], head["key"], _body(data), checksum, until, head["seq"])
        if not note.is_intact() or compose_note(note, note.seq) != document:
            raise _damaged("its checksum does not fit; it was altered after it was written")
    except (OverflowError, RecursionError, SerializationError, TypeError, ValueError) as error:
        raise _damaged(f"it cannot be read ({error})") from None
    return note


def _rendered(data: Any) -> bytes:
    return (dumps(data) + "\n").encode()


def _body(data: dict[str, Any]) -> bytes:
    if "value" in data:
        return uncompressed(pack(unrevived(data["value"])))
    if type(data["body"]) is not str:
        raise _damaged("its body is of another type")
    try:
        return base64.b64decode(data["body"], validate=True)
    except binascii.Error as error:
        raise _damaged(f"its body cannot be read ({error})") from None


def _damaged(reason: str) -> CheckpointIntegrityError:
    return CheckpointIntegrityError(None, reason)
