"""Hostile bundles: each is whole by its checksum, and made to do harm in one way."""

import hashlib
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import ormsgpack
import zstandard

from holdfast import SyncClient
from holdfast.core.chunk_encoder import encode
from holdfast.core.chunk_format import MAX_CHUNK, REF_NODE, chunk_id, compress, uncompressed
from holdfast.core.codec import pack
from holdfast.model import CheckpointInfo, checksum, new_info
from holdfast.model.record import plain_of as as_plain
from holdfast.stores.base import Note
from tests.hostile.child import AGENT, SESSION
from tests.hostile.kit import fill

Frame = tuple[bytes, bytes]
HEADER = {"format": "holdfast-bundle", "version": 2, "holdfast": "0.3.0", "checkpoints": 1}


def written(frames: list[Frame], header: Any = HEADER) -> bytes:
    """A bundle of these frames, with the checksum that fits."""
    line = header if isinstance(header, bytes) else json.dumps(header).encode()
    data = line + b"\n"
    for kind, body in frames:
        data += kind + len(body).to_bytes(4, "big") + body
    data += b"e" + bytes(4)
    return data + hashlib.sha256(data).digest()


def frames_of(bundle: bytes) -> Iterator[Frame]:
    at = bundle.index(b"\n") + 1
    while bundle[at : at + 1] != b"e":
        length = int.from_bytes(bundle[at + 1 : at + 5], "big")
        yield bundle[at : at + 1], bundle[at + 5 : at + 5 + length]
        at += 5 + length


def record(plain: dict[str, Any]) -> Frame:
    return b"r", pack(plain)


def plain_of(info: CheckpointInfo, **changes: Any) -> dict[str, Any]:
    """A record as a bundle holds it, with other values and a checksum that fits if one can."""
    values = {**vars(info), **changes}
    if "checksum" not in changes:
        try:
            values["checksum"] = checksum(values)
        except Exception:  # of values that no record has there is none
            values["checksum"] = "00" * 32
    created = values["created_at"]
    if not isinstance(created, (int, float, str, type(None))):
        values["created_at"] = (created - EPOCH) // timedelta(microseconds=1)
    values["framework"] = getattr(values["framework"], "value", values["framework"])
    return values


EPOCH = new_info(agent_id="a").created_at.replace(year=1970, month=1, day=1, hour=0, minute=0)
EPOCH = EPOCH.replace(second=0, microsecond=0)


def checkpoint(
    payload: Any = None, session_id: str = SESSION, **fields: Any
) -> tuple[CheckpointInfo, list[Frame]]:
    """A checkpoint with this payload, whatever it is, and the frames of its chunks."""
    if payload is None:
        payload = {"execution_state": {"n": 1}, "agent_context": {}}
    encoded = encode(payload)
    info = new_info(agent_id=AGENT, session_id=session_id)
    info = info.with_(content_id=encoded.root.hex(), size=encoded.size, **fields)
    return info, [(b"c", name + compress(raw)) for name, raw in encoded.chunks.items()]


def note(scope: str, key: str, value: Any) -> Frame:
    made = Note.of(scope, key, uncompressed(pack(value)))
    return b"n", pack([made.scope, made.key, None, made.body, made.checksum])


def one(payload: Any = None, notes: dict[str, Any] | None = None, **fields: Any) -> bytes:
    """A bundle of one checkpoint and its notes."""
    info, chunks = checkpoint(payload, **fields)
    noted = [note(info.checkpoint_id, key, value) for key, value in (notes or {}).items()]
    return written([*chunks, record(plain_of(info)), *noted])


def odd(**changes: Any) -> bytes:
    """A bundle whose record has other values than any record."""
    info, chunks = checkpoint()
    return written([*chunks, record(plain_of(info, **changes))])


def to_come(later: dict[str, Any]) -> bytes:
    """A bundle whose record has fields that no Holdfast knows yet."""
    info, chunks = checkpoint()
    newer = replace(info, schema_version="9.9", later=later).with_()
    return written([*chunks, record(as_plain(newer.__dict__))])


def parents_in_a_circle(count: int, sessions: int = 1) -> bytes:
    made = [checkpoint(session_id=f"{SESSION}{n % sessions or ''}") for n in range(count)]
    ids = [info.checkpoint_id for info, _ in made]
    frames: list[Frame] = []
    for (info, chunks), parent in zip(made, [*ids[1:], ids[0]], strict=True):
        frames += [*chunks, record(plain_of(info, parent_id=parent))]
    return written(frames)


def notes_in_a_circle(count: int, session_id: str = SESSION) -> bytes:
    made = [checkpoint() for _ in range(count - 1)]
    made.append(checkpoint(session_id=session_id))
    ids = [info.checkpoint_id for info, _ in made]
    frames: list[Frame] = []
    for (info, chunks), following in zip(made, [*ids[1:], ids[0]], strict=True):
        frames += [*chunks, record(plain_of(info))]
        frames.append(note(info.checkpoint_id, "next", {"checkpoint": following}))
    return written(frames)


def led_to_another_session() -> bytes:
    first, chunks = checkpoint()
    second, _ = checkpoint(session_id="other")
    noted = note(first.checkpoint_id, "next", {"checkpoint": second.checkpoint_id})
    return written([*chunks, record(plain_of(first)), noted, record(plain_of(second))])


def laughing(levels: int = 40, width: int = 2, *, in_note: bool = False) -> bytes:
    """Chunks that refer to each other, each so many times to the next."""
    raw = ormsgpack.packb(["ha"])
    chunks = {chunk_id(raw): raw}
    for _ in range(levels):
        (*_, last) = chunks
        raw = ormsgpack.packb([ormsgpack.Ext(REF_NODE, last)] * width)
        chunks[chunk_id(raw)] = raw
    (*_, last) = chunks
    laugh = ormsgpack.Ext(REF_NODE, last)
    frames = [(b"c", name + uncompressed(raw)) for name, raw in chunks.items()]
    root = ormsgpack.packb({"execution_state": [] if in_note else laugh, "agent_context": {}})
    info, _ = checkpoint()
    plain = plain_of(info, content_id=chunk_id(root).hex())
    frames += [(b"c", chunk_id(root) + uncompressed(root)), record(plain)]
    if in_note:
        made = Note.of(info.checkpoint_id, "call/0/started", uncompressed(ormsgpack.packb([laugh])))
        frames.append((b"n", pack([made.scope, made.key, None, made.body, made.checksum])))
    return written(frames)


def bombs(count: int) -> bytes:
    """Chunks of a few kilobytes that unpack into 60 MB each."""
    parts = {}
    for n in range(count):
        raw = ormsgpack.packb(bytes([n]) + bytes(60 * 2**20))
        parts[chunk_id(raw)] = b"\x01" + zstandard.compress(raw)
    state = [ormsgpack.Ext(REF_NODE, name) for name in parts]
    root = ormsgpack.packb({"execution_state": state, "agent_context": {}})
    info, _ = checkpoint()
    plain = plain_of(info, content_id=chunk_id(root).hex())
    frames = [(b"c", name + data) for name, data in parts.items()]
    return written([*frames, (b"c", chunk_id(root) + uncompressed(root)), record(plain)])


def claiming(size: int) -> bytes:
    """A chunk whose compressed form claims to be larger than it is."""
    info, chunks = checkpoint()
    kind, data = chunks[0]
    head = bytes.fromhex("28b52ffd") + b"\xe0" + size.to_bytes(8, "little")
    return written([(kind, data[:20] + b"\x01" + head + b"\x01\0\0"), record(plain_of(info))])


def deep(levels: int) -> bytes:
    """A state of lists in lists, made by hand."""
    value = b"\x91" * levels + b"\xc0"
    root = b"\x82" + pack("execution_state") + value + pack("agent_context") + b"\x80"
    info, _ = checkpoint()
    plain = plain_of(info, content_id=chunk_id(root).hex())
    return written([(b"c", chunk_id(root) + uncompressed(root)), record(plain)])


def good() -> bytes:
    """What a healthy store exports."""
    with SyncClient.memory() as client:
        fill(client)
        path = Path(f"/tmp/holdfast-good-{id(client)}.bundle")
        client.export(path)
    try:
        return path.read_bytes()
    finally:
        path.unlink()


def _twice(kind: bytes) -> bytes:
    frames = list(frames_of(good()))
    at = next(n for n, frame in enumerate(frames) if frame[0] == kind)
    return written([*frames[: at + 1], *frames[at:]])


BOMB = 10**9
STATE: dict[str, Any] = {"execution_state": {}, "agent_context": {}}

BUNDLES: dict[str, Callable[[], bytes]] = {
    "a checkpoint that is its own parent": lambda: parents_in_a_circle(1),
    "two checkpoints that are each other's parents": lambda: parents_in_a_circle(2),
    "parents in a circle through two sessions": lambda: parents_in_a_circle(4, sessions=2),
    "a thousand parents in a circle": lambda: parents_in_a_circle(1000),
    "a note that leads to its own checkpoint": lambda: notes_in_a_circle(1),
    "notes that lead in a circle": lambda: notes_in_a_circle(3),
    "notes that lead in a circle through a session": lambda: notes_in_a_circle(3, "other"),
    "a note that leads to another session": led_to_another_session,
    "a note that leads nowhere": lambda: one(notes={"next": {"checkpoint": "nowhere"}}),
    "a note of what followed that is a number": lambda: one(notes={"next": 7}),
    "a note of what followed that names a list": lambda: one(notes={"next": {"checkpoint": []}}),
    "a rollback to itself": lambda: rollback_to_itself(),
    "a rollback that was begun nowhere": lambda: one(
        metadata={"rolled_back_from": "nowhere"},
    ),
    "chunks that stand for 2**40 parts": laughing,
    "chunks that stand for 1000**40 parts": lambda: laughing(width=1000),
    "chunks of a note that stand for 2**40 parts": lambda: laughing(in_note=True),
    "chunks of kilobytes that unpack into gigabytes": lambda: bombs(80),
    "a chunk that claims a terabyte": lambda: claiming(2**40),
    "a chunk that claims what is allowed": lambda: claiming(MAX_CHUNK),
    "a chunk of 64 MB of zeros": lambda: one({**STATE, "execution_state": bytes(60 * 2**20)}),
    "lists in lists": lambda: deep(100_000),
    "a record twice": lambda: _twice(b"r"),
    "a chunk twice": lambda: _twice(b"c"),
    "a note twice": lambda: _twice(b"n"),
    "a record without its chunks": lambda: written([record(plain_of(checkpoint()[0]))]),
    "notes of another checkpoint": lambda: written(
        [*checkpoint()[1], record(plain_of(checkpoint()[0])), note("another", "next", 1)]
    ),
    "notes before any record": lambda: written([note("another", "next", 1)]),
    "no frames at all": lambda: written([]),
    "a frame of an unknown kind": lambda: written([(b"z", b"")]),
    "a record that is no record": lambda: written([(b"r", pack([1, 2, 3]))]),
    "a record that is not packed": lambda: written([(b"r", b"\xc1")]),
    "a record of deep lists": lambda: written([(b"r", b"\x91" * 100_000)]),
    "a chunk without a name": lambda: written([(b"c", b"12")]),
    "a version to come": lambda: written([], {**HEADER, "version": 3}),
    "a version that is a list": lambda: written([], {**HEADER, "version": [1]}),
    "a version that is true": lambda: written([], {**HEADER, "version": True}),
    "a version of a thousand digits": lambda: written(
        [], b'{"format": "holdfast-bundle", "version": ' + b"9" * 1000 + b"}"
    ),
    "a first line of deep lists": lambda: written([], b"[" * 4000),
    "a first line without end": lambda: b"{" * 100_000,
    "nothing": lambda: b"",
    "a payload that is a list": lambda: one([1, 2]),
    "a payload with other parts": lambda: one({**STATE, "more": 1}),
    "a context that is a number": lambda: one({"execution_state": 1, "agent_context": 1}),
    "a name with a NUL": lambda: odd(agent_id="a\0b"),
    "a name of a megabyte": lambda: odd(session_id="s" * 2**20),
    "a name that is a path": lambda: odd(checkpoint_id="../../../../etc/passwd"),
    "an empty name": lambda: odd(checkpoint_id=""),
    "an agent that is a number": lambda: odd(agent_id=7),
    "a framework that is unknown": lambda: odd(framework="evil"),
    "a framework that is a list": lambda: odd(framework=[]),
    "a time that is not a number": lambda: odd(created_at=math.nan),
    "a time beyond all time": lambda: odd(created_at=2**80),
    "a time that is text": lambda: odd(created_at="now"),
    "a time to live that is not a number": lambda: odd(ttl_seconds=math.nan),
    "a time to live without end": lambda: odd(ttl_seconds=math.inf),
    "a time to live below nothing": lambda: odd(ttl_seconds=-1),
    "a step below nothing": lambda: odd(step_index=-1),
    "a size beyond all bounds": lambda: odd(size=2**70),
    "content that is named with spaces": lambda: odd(content_id="ab " * 20),
    "content that has no name": lambda: odd(content_id=""),
    "content of another length": lambda: odd(content_id="ab" * 8),
    "metadata that is a list": lambda: odd(metadata=[1]),
    "a version of the schema to come": lambda: odd(schema_version="999.0"),
    "a version of the schema that is none": lambda: odd(schema_version="\x1b[2J"),
    "fields to come": lambda: to_come({"zone": 1}),
    "fields to come that hold any values": lambda: to_come({"zone": {(1, 2): b"x"}, "\ud800": [1]}),
    "fields to come that are not proven": lambda: odd(zone=1),
    "fields to come of a megabyte": lambda: to_come({f"f{n}": "x" * 1000 for n in range(1000)}),
    "an offer that offers nothing": lambda: odd(handoff_target=AGENT, handoff_schema="{"),
    "a workspace that is a number": lambda: one({**STATE, "workspace": 7}),
    "a workspace that leads nowhere": lambda: one(
        {**STATE, "workspace": {"tree_id": "00" * 20, "root": "x"}}
    ),
}
"""Everything that a bundle may say, by what is wrong with it."""


def rollback_to_itself() -> bytes:
    info, chunks = checkpoint()
    intent = {"target": info.checkpoint_id, "scope": ["state"], "name": "back"}
    noted = note(info.checkpoint_id, "rollback", intent)
    tags = {"rolled_back_from": info.checkpoint_id}
    return written([*chunks, record(plain_of(info, metadata=tags)), noted])
