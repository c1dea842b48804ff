"""Packs: the chunks of a save in one object, and what is noted of each."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from holdfast.core.chunk_format import ID_BYTES, compress, decompress
from holdfast.core.codec import pack, unpack
from holdfast.errors import CheckpointIntegrityError
from holdfast.stores.base import Note
from holdfast.stores.objects.keys import UPLOAD_BYTES, StoredObject, stub_in_pack

PACK_BYTES = 4 * 2**20
"""About how large a pack gets: large ones are sent and fetched side by side."""
PACK_CHUNKS = 4096
SCOPE = "/objects"
"""The name under which this store notes things for itself in the store within."""
USES = tuple(f"{SCOPE}/uses/{digit:x}" for digit in range(16))
"""Where saves tell of themselves: in several places, as writers of one go one after the other."""
CLAIM = "claim"
_CLAIM_LASTS = timedelta(days=7)
"""Longer than any save takes from its first question to its commit."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A pack that is to be uploaded."""

    owner: bytes
    object: StoredObject
    names: tuple[bytes, ...]

    def stubs(self, sizes: Mapping[bytes, int], tag: bytes) -> dict[bytes, bytes]:
        """Return what leads to each of its chunks, once it is there."""
        found, start = dict[bytes, bytes](), 0
        for name in self.names:
            size = sizes[name]
            found[name] = stub_in_pack(self.owner, self.object, start, size, tag)
            start += size
        return found

    def claim(self) -> Note:
        """Return the claim of its upload, which also says as long as it is there what is in it."""
        return Note.of(scope_of(self.object.upload), CLAIM, compress(pack(b"".join(self.names))))


def sizes_of(chunks: Mapping[bytes, bytes]) -> dict[bytes, int]:
    """Return how large each chunk is."""
    return {name: len(data) for name, data in chunks.items()}


def packs_of(owner: bytes, sizes: Mapping[bytes, int]) -> list[Pack]:
    """Return the packs that chunks of such sizes go into, in their order."""
    groups: list[list[bytes]] = []
    room = 0
    for name, size in sizes.items():
        if not groups or size > room or len(groups[-1]) == PACK_CHUNKS:
            groups.append([])
            room = PACK_BYTES
        groups[-1].append(name)
        room -= size
    found: list[Pack] = []
    for names in groups:
        size = sum(sizes[name] for name in names)
        stored = StoredObject.of_pack(owner, new_upload(), len(names), size)
        found.append(Pack(owner, stored, tuple(names)))
    return found


def new_upload() -> bytes:
    """Return an id for an upload; they are listed in about the order in which they were made."""
    moment = (time.time_ns() // 2**20).to_bytes(6, "big")
    return moment + os.urandom(UPLOAD_BYTES - len(moment))


def scope_of(upload: bytes) -> str:
    """Return under which name things are noted of an upload."""
    return f"{SCOPE}/{upload.hex()}"


def claim_of(upload: bytes) -> Note:
    """Return the note that who commits or removes the objects of an upload has to be first with."""
    until = datetime.now(UTC) + _CLAIM_LASTS
    return Note.of(scope_of(upload), CLAIM, compress(pack(None)), until)


def use_of(upload: bytes) -> Note:
    """Return the note that tells of a save, by its claim to be, which relies on what is stored."""
    until = datetime.now(UTC) + _CLAIM_LASTS
    return Note.of(USES[upload[-1] % len(USES)], upload.hex(), compress(pack(None)), until)


def names_in(claim: Note) -> tuple[bytes, ...] | None:
    """Return the chunks of a pack that was committed; None for the claim of anything else."""
    if not claim.is_intact():
        raise CheckpointIntegrityError(None, f"the note {claim.scope} that says what a pack holds")
    names = unpack(decompress(claim.body))
    if names is None:
        return None
    if type(names) is not bytes or len(names) % ID_BYTES:
        raise CheckpointIntegrityError(None, f"the note {claim.scope} does not say what a pack is")
    return tuple(names[at : at + ID_BYTES] for at in range(0, len(names), ID_BYTES))
