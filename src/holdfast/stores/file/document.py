"""One checkpoint as a document: a first line for listings, then the payload.

A JSON document is valid JSON as a whole; a binary one is its first line followed by packed chunks.
The first line is written in one way only, proven by its checksum, and has the SHA-256 of the rest,
so that no byte can change unnoticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ormsgpack

from holdfast.core.json_form import (
    dumps,
    from_json,
    loads,
    state_from_json,
    state_to_json,
    to_json,
    unrevived,
)
from holdfast.errors import CheckpointIntegrityError, SerializationError, StoreFormatError
from holdfast.model import CheckpointInfo, checksum_fits
from holdfast.model.decoding import info_of_text, revived
from holdfast.model.record import text_of
from holdfast.stores.base import Commit, gather, seq_of
from holdfast.system.bytes_on_disk import BytesOnDisk

FORMAT = 2
"""Of documents that say their place, as their time does not tell it; others are of format 1."""


@dataclass(frozen=True, slots=True)
class Head:
    """What the first line of a document says."""

    info: CheckpointInfo
    rest_bytes: int
    rest_sha256: str
    is_json: bool
    seq: int
    """Its place among the records of its session."""
    is_placed: bool = False
    """Whether it says so itself."""

    def fits(self, rest: bytes) -> bool:
        """Return whether what follows the first line is what was written there."""
        place = self.seq if self.is_placed else None
        return len(rest) == self.rest_bytes and _digest(rest, place) == self.rest_sha256


def compose(commit: Commit, as_json: bool, seq: int | None = None) -> bytes:
    """Return the document of a whole commit; with its place, where its time does not tell it."""
    info = commit.info
    root = bytes.fromhex(info.content_id)
    chunks = gather(root, lambda _: commit.chunks)
    if as_json:
        payload = state_to_json(root, chunks)
        if state_from_json(payload, BytesOnDisk).root != root:
            raise SerializationError("$", 'cannot be kept exactly as JSON; use fmt="pickle"')
        del chunks
        text = dumps(payload)
        del payload  # it is the state once more, and so is each that follows
        rest = b'"payload": %b\n}\n' % text.encode()
        del text
    else:
        parts = [part for name in chunks for part in (name, commit.chunks[name])]
        rest = ormsgpack.packb(parts)
    line = _first_line(info, rest, as_json, seq)
    read_head(line)  # what is not proven now would be found when it is too late
    return line + rest


def _digest(rest: bytes, seq: int | None) -> str:
    digest = hashlib.sha256(b"" if seq is None else b"%d\n" % seq)
    digest.update(rest)
    return digest.hexdigest()


def _first_line(info: CheckpointInfo, rest: bytes, as_json: bool, seq: int | None) -> bytes:
    head: dict[str, Any] = {
        "holdfast": 1 if seq is None else FORMAT,
        "info": to_json(text_of(info.__dict__)),
        "bytes": len(rest),
        "sha256": _digest(rest, seq),
    }
    if seq is not None:
        head["seq"] = seq
    return _rendered(head, as_json)


def _rendered(head: Any, as_json: bool) -> bytes:
    line = dumps(head, levels=0)
    return (line.removesuffix("}") + ",\n" if as_json else line + "\n").encode()


def _is_rendered(head: Any, as_json: bool, line: bytes) -> bool:
    try:
        return _rendered(head, as_json) == line
    except (RecursionError, ValueError):  # such as 1e999, or half of a surrogate pair
        return False


def read_head(line: bytes, verify: bool = True) -> Head:
    """Return what a document's first line says; CheckpointIntegrityError names no id."""
    is_json = line.endswith(b",\n")
    if not is_json and not line.endswith(b"}\n"):
        raise _damaged("its first line is cut off")
    data = loads(line[:-2] + b"}")
    if type(data) is not dict or type(data.get("holdfast")) is not int:
        raise _damaged("its first line is not that of a checkpoint")
    if data["holdfast"] > FORMAT:
        raise StoreFormatError(
            f"it has format {data['holdfast']}, this Holdfast reads up to {FORMAT}: "
            "upgrade Holdfast to open it"
        )
    is_placed = data["holdfast"] == FORMAT
    shape = ["holdfast", "info", "bytes", "sha256", *(["seq"] if is_placed else [])]
    if data["holdfast"] < 1 or list(data) != shape or type(data["bytes"]) is not int:
        raise _damaged("its first line is of another shape")
    if is_placed and type(data["seq"]) is not int:
        raise _damaged("its place is none")
    if verify and not _is_rendered(data, is_json, line):
        raise _damaged("its first line was altered")
    info = _read_info(data["info"], verify)
    seq = data["seq"] if is_placed else seq_of(info.created_at)
    return Head(info, data["bytes"], str(data["sha256"]), is_json, seq, is_placed)


def _read_info(data: Any, verify: bool) -> CheckpointInfo:
    try:
        info = info_of_text(unrevived(data))
        bytes.fromhex(info.content_id)
    except (LookupError, TypeError, ValueError) as error:
        raise _damaged(f"its record cannot be read ({error})") from None
    # Over the metadata as stored: classes it names may be unknown here, or have changed.
    if verify and not checksum_fits(info):
        raise _damaged("its checksum does not fit; it was altered after it was saved")
    try:
        return revived(info, lambda name: from_json(data[name], "raw"))
    except ValueError as error:
        raise _damaged(f"its record cannot be read ({error})") from None


def read_chunks(
    head: Head, rest: bytes, verify: bool = True
) -> tuple[bytes, Mapping[bytes, bytes]]:
    """Return the root and the chunks of a document, given all that follows its first line."""
    if verify and not head.fits(rest):
        raise _damaged("its payload was cut off or altered")
    named = bytes.fromhex(head.info.content_id)
    if not head.is_json:
        stored = _unpacked(rest)
        return named, gather(named, lambda _: stored, verify)
    data = loads(b"{" + rest)
    if type(data) is not dict or list(data) != ["payload"]:
        raise _damaged("its payload is of another shape")
    encoded = state_from_json(data.pop("payload"), BytesOnDisk)
    if verify and encoded.root != named:
        raise _damaged("its payload is not that of its content id")
    return encoded.root, encoded.chunks


def _unpacked(rest: bytes) -> Mapping[bytes, bytes]:
    try:
        parts = ormsgpack.unpackb(rest)
    except ValueError as error:
        raise _damaged(f"its chunks cannot be read ({error})") from None
    if type(parts) is not list or len(parts) % 2 or set(map(type, parts)) - {bytes}:
        raise _damaged("its chunks are of another shape")
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _damaged(reason: str) -> CheckpointIntegrityError:
    return CheckpointIntegrityError(None, reason)
